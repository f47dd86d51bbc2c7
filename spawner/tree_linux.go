package spawner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/cgroup"
)

// tree is the means by which everything a child ever started is ended.
type tree interface {
	kind() events.TreeKill
	// place makes the fork put the child under this means.
	place(attr *syscall.SysProcAttr)
	// path is what a later coordinator needs to find it again.
	path() string
	// kill sends SIGKILL to all of it, beside what the pidfd reaches.
	kill() error
	// end kills until nothing is left or ctx ends, and says how many are left.
	end(ctx context.Context) (left int, err error)
	// close lets go of a tree that has ended.
	close(ctx context.Context) error
}

// newTree picks the best means there is. A child that is pid 1 of its own PID
// namespace needs no other: the kernel ends the namespace with it.
func newTree(ctx context.Context, id string, pidNamespace bool) tree {
	if pidNamespace {
		return namespaceTree{}
	}
	if leaf, err := makeLeaf(ctx, id); err == nil {
		return leaf
	}
	return sweepTree{id: id}
}

// adoptTree is newTree for a child of an earlier coordinator.
func adoptTree(id string, p *events.Process) tree {
	switch {
	case p == nil, p.PIDNamespace != 0 && p.PIDNamespace != ownPIDNamespace():
		return namespaceTree{}
	case p.CgroupPath != "":
		if group, err := cgroup.Open(p.CgroupPath); err == nil {
			if t, err := openLeaf(group); err == nil {
				return t
			}
		}
	}
	return sweepTree{id: id}
}

func ownPIDNamespace() uint64 {
	ino, err := pidNamespace("self")
	if err != nil {
		return 0
	}
	return ino
}

// namespaceTree: the readable pidfd of pid 1 is the proof that nothing is left.
type namespaceTree struct{}

func (namespaceTree) kind() events.TreeKill            { return events.TreeKillPIDNamespace }
func (namespaceTree) place(*syscall.SysProcAttr)       {}
func (namespaceTree) path() string                     { return "" }
func (namespaceTree) kill() error                      { return nil }
func (namespaceTree) end(context.Context) (int, error) { return 0, nil }
func (namespaceTree) close(context.Context) error      { return nil }

// cgroupTree is a cgroup v2 leaf of the child's own.
type cgroupTree struct {
	group cgroup.Group
	fd    *os.File
}

// leafName is the name of a child's control groups. It follows from the id, so
// that what a coordinator left that died before it recorded them is found.
func leafName(id string) string { return "hayward-" + id }

func makeLeaf(ctx context.Context, id string) (*cgroupTree, error) {
	parent, err := cgroup.Find(cgroup.Unified)
	if err != nil {
		return nil, err
	}
	group, err := parent.Make(ctx, leafName(id))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(group.Dir, "cgroup.kill")); err != nil {
		return nil, errors.Join(fmt.Errorf("the kernel has no cgroup.kill: %w", err), group.Remove(ctx))
	}
	return openLeaf(group)
}

func openLeaf(group cgroup.Group) (*cgroupTree, error) {
	fd, err := os.Open(group.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the cgroup leaf: %w", err)
	}
	return &cgroupTree{group: group, fd: fd}, nil
}

func (*cgroupTree) kind() events.TreeKill                  { return events.TreeKillCgroup }
func (t *cgroupTree) path() string                         { return t.group.Dir }
func (t *cgroupTree) kill() error                          { return t.group.Kill() }
func (t *cgroupTree) end(ctx context.Context) (int, error) { return t.group.End(ctx) }
func (t *cgroupTree) place(attr *syscall.SysProcAttr) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(t.fd.Fd())
}

func (t *cgroupTree) close(ctx context.Context) error {
	return errors.Join(t.fd.Close(), t.group.Remove(ctx))
}

// sweepTree finds processes by the variable that every command gets. A hostile
// command can hide from it, which is why the record says "sweep"; the
// supervisor's own sweep of its descendants comes before.
type sweepTree struct{ id string }

func (sweepTree) kind() events.TreeKill       { return events.TreeKillSweep }
func (sweepTree) place(*syscall.SysProcAttr)  {}
func (sweepTree) path() string                { return "" }
func (sweepTree) close(context.Context) error { return nil }

func (t sweepTree) kill() error {
	_, err := t.sweep()
	return err
}

// end sweeps until two sweeps in a row find nothing: a process between fork and
// exec can be missed by one.
func (t sweepTree) end(ctx context.Context) (int, error) {
	for clean := 0; clean < 2; {
		n, err := t.sweep()
		switch {
		case err != nil:
			return n, err
		case n == 0:
			clean++
			continue
		}
		clean = 0
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-time.After(5 * time.Millisecond): // SIGKILL takes effect
		}
	}
	return 0, nil
}

// sweep kills what it finds, through pidfds, and returns how many there were.
func (t sweepTree) sweep() (int, error) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("sweep %s: %w", t.id, err)
	}
	marker := "HAYWARD_SUBAGENT_ID=" + t.id + "\x00"
	found := 0
	for _, entry := range procs {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // gone
		}
		env, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && strings.Contains(string(env), marker) {
			found++
			if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				unix.Close(fd)
				return found, fmt.Errorf("sweep %s: kill %d: %w", t.id, pid, err)
			}
		}
		unix.Close(fd)
	}
	return found, nil
}
