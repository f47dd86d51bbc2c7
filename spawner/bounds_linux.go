package spawner

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/cgroup"
	"github.com/hayward-dev/hayward/sandbox"
)

// The controllers that bound a child's tree.
const (
	memoryController  = "memory"
	processController = "pids"
)

// bounds are the control groups that bound one child's tree.
type bounds struct {
	groups []cgroup.Group
	// memory is the group with the memory limit, nil without one.
	memory *cgroup.Group
}

// makeBounds makes the groups that a child needs. A memory limit that cannot be
// set is an error; a limit of processes is set where it can be and needed: a PID
// namespace has one of its own.
func makeBounds(ctx context.Context, id string, memory int64, pidNamespace bool, leaf string) (*bounds, error) {
	b := &bounds{}
	made := map[string]cgroup.Group{}
	group := func(controller string) (cgroup.Group, error) {
		parent, err := cgroup.Find(controller)
		if err != nil {
			return cgroup.Group{}, err
		}
		dir := parent.Path(leafName(id))
		if dir == leaf { // the leaf that the tree is ended by
			return cgroup.Group{Dir: dir, V2: true}, nil
		}
		if g, ok := made[dir]; ok {
			return g, nil
		}
		g, err := parent.Make(ctx, leafName(id))
		if err == nil {
			made[dir] = g
			b.groups = append(b.groups, g)
		}
		return g, err
	}
	if memory > 0 {
		g, err := group(memoryController)
		if err == nil {
			err = g.LimitMemory(memory)
		}
		if err != nil {
			return b, fmt.Errorf("limit its memory to %d bytes: %w", memory, err)
		}
		b.memory = &g
	}
	if !pidNamespace {
		if g, err := group(processController); err == nil {
			if err := g.LimitProcesses(sandbox.ProcessLimit); err != nil {
				return b, fmt.Errorf("limit its processes: %w", err)
			}
		}
	}
	return b, nil
}

// adoptBounds finds the groups of a child of an earlier coordinator again.
func adoptBounds(p *events.Process) *bounds {
	b := &bounds{}
	if p == nil {
		return b
	}
	for _, dir := range p.Cgroups {
		if g, err := cgroup.Open(dir); err == nil {
			b.groups = append(b.groups, g)
		}
	}
	if g, err := cgroup.Open(p.MemoryCgroup); err == nil {
		b.memory = &g
	}
	return b
}

// join puts a child that waits for its start into the groups.
func (b *bounds) join(pid int) error {
	for _, g := range b.groups {
		if err := g.Join(pid); err != nil {
			return fmt.Errorf("put it into the control group %s: %w", g.Dir, err)
		}
	}
	return nil
}

// record notes what a later coordinator needs.
func (b *bounds) record(p *events.Process) {
	for _, g := range b.groups {
		p.Cgroups = append(p.Cgroups, g.Dir)
	}
	if b.memory != nil {
		p.MemoryCgroup = b.memory.Dir
	}
}

// exceeded reports whether the kernel ended a process for the memory limit.
func (b *bounds) exceeded(log *zap.Logger) bool {
	if b == nil || b.memory == nil {
		return false
	}
	out, err := b.memory.OutOfMemory()
	if err != nil {
		log.Error("not known whether it ran out of memory", zap.Error(err))
	}
	return out
}

func (b *bounds) close(ctx context.Context) error {
	var errs []error
	for _, g := range b.groups {
		errs = append(errs, g.Remove(ctx))
	}
	return errors.Join(errs...)
}

// clearGroups removes what a coordinator left of a child's control groups that
// died before it recorded them.
func (s *Spawner) clearGroups(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Deadlines.KillProof)
	defer cancel()
	for _, controller := range []string{cgroup.Unified, memoryController, processController} {
		parent, err := cgroup.Find(controller)
		if err != nil {
			continue // nothing was made there
		}
		g, err := cgroup.Open(parent.Path(leafName(id)))
		if err != nil {
			continue
		}
		if err := g.Remove(ctx); err != nil {
			s.cfg.Log.Error("control group not removed", zap.String("id", id), zap.Error(err))
		}
	}
}

// CanLimitMemory says whether a memory limit can be set here, or why not.
func CanLimitMemory() error {
	_, err := cgroup.Find(memoryController)
	return err
}
