// Package cgroup makes, limits and removes control groups of one subagent's
// process tree, in the v2 hierarchy or in those of v1 controllers.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Unified names the v2 hierarchy where a v1 controller could be named.
const Unified = ""

// Parent is a group that new ones can be made in: this process's own in one
// hierarchy.
type Parent struct {
	// Dir is its directory.
	Dir string
	// V2 tells the v2 hierarchy from that of a v1 controller.
	V2 bool
}

// ErrNone says that there is no group in which a limit could be set.
var ErrNone = errors.New("no control group can be used")

// Find returns where groups with a controller, or with [Unified] just groups of
// v2, can be made. It fails with [ErrNone] where none can.
func Find(controller string) (Parent, error) {
	root, v2, err := mountOf(controller)
	if err != nil {
		return Parent{}, err
	}
	own, err := ownGroup(controller, v2)
	if err != nil {
		return Parent{}, err
	}
	p := Parent{Dir: filepath.Join(root, around(own, v2)), V2: v2}
	if err := unix.Access(p.Dir, unix.W_OK); err != nil {
		return Parent{}, fmt.Errorf("%w: make groups in %s: %w", ErrNone, p.Dir, err)
	}
	if v2 && controller != Unified {
		if err := p.offer(controller); err != nil {
			return Parent{}, err
		}
	}
	return p, nil
}

// Subgroup is the group in which the units of deploy put the daemon by itself, so
// that the one around it, which is delegated, may lend controllers of v2.
const Subgroup = "daemon"

// around is the group to make others in: a process's own, or the one around the
// daemon's subgroup.
func around(own string, v2 bool) string {
	if dir, name := filepath.Split(own); v2 && name == Subgroup && strings.HasSuffix(dir, ".service/") {
		return filepath.Clean(dir)
	}
	return own
}

// offer makes sure that groups below p have a controller of v2. The kernel
// refuses it for a group with processes in it, unless that is the root.
func (p Parent) offer(controller string) error {
	file := filepath.Join(p.Dir, "cgroup.subtree_control")
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	if has(string(b), controller) {
		return nil
	}
	if err := os.WriteFile(file, []byte("+"+controller), 0); err != nil {
		return fmt.Errorf("%w: give groups below %s the %s controller: %w", ErrNone, p.Dir, controller, err)
	}
	return nil
}

func has(list, word string) bool {
	for field := range strings.FieldsSeq(list) {
		if field == word {
			return true
		}
	}
	return false
}

// mountOf finds where a controller is mounted: with v1, else within v2.
func mountOf(controller string) (root string, v2 bool, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false, fmt.Errorf("find the control groups: %w", err)
	}
	var unified string
	for line := range strings.Lines(string(mounts)) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(place) < 5 || len(kind) < 3 {
			continue
		}
		switch {
		case kind[0] == "cgroup2":
			unified = place[4]
		case kind[0] == "cgroup" && controller != Unified && hasOption(kind[2], controller):
			return place[4], false, nil
		}
	}
	if unified == "" {
		return "", false, fmt.Errorf("%w: neither v2 nor the v1 controller %q is mounted", ErrNone, controller)
	}
	if controller != Unified {
		b, err := os.ReadFile(filepath.Join(unified, "cgroup.controllers"))
		if err != nil || !has(string(b), controller) {
			return "", false, fmt.Errorf("%w: there is no %s controller", ErrNone, controller)
		}
	}
	return unified, true, nil
}

func hasOption(options, word string) bool {
	return has(strings.ReplaceAll(options, ",", " "), word)
}

// ownGroup is this process's group within a hierarchy.
func ownGroup(controller string, v2 bool) (string, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("find the own control group: %w", err)
	}
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if v2 && parts[0] == "0" && parts[1] == "" || !v2 && hasOption(parts[1], controller) {
			return parts[2], nil
		}
	}
	return "", fmt.Errorf("%w: this process is in no group of controller %q", ErrNone, controller)
}

// Path is where [Parent.Make] makes the group of that name.
func (p Parent) Path(name string) string { return filepath.Join(p.Dir, name) }

// Make makes a group. One that an earlier coordinator left is ended and replaced.
func (p Parent) Make(ctx context.Context, name string) (Group, error) {
	g := Group{Dir: p.Path(name), V2: p.V2}
	err := os.Mkdir(g.Dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		if err = g.Remove(ctx); err == nil {
			err = os.Mkdir(g.Dir, 0o755)
		}
	}
	if err != nil {
		return Group{}, fmt.Errorf("make a control group: %w", err)
	}
	return g, nil
}

// Group is one control group.
type Group struct {
	Dir string
	V2  bool
}

// Open returns the group at a recorded path.
func Open(dir string) (Group, error) {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
		return Group{}, fmt.Errorf("open the control group: %w", err)
	}
	_, err := os.Stat(filepath.Join(dir, "cgroup.events"))
	return Group{Dir: dir, V2: err == nil}, nil
}

func (g Group) write(file, value string) error {
	return os.WriteFile(filepath.Join(g.Dir, file), []byte(value), 0)
}

// Join moves a process into the group.
func (g Group) Join(pid int) error { return g.write("cgroup.procs", strconv.Itoa(pid)) }

// LimitMemory bounds the memory, swap included, of the group.
func (g Group) LimitMemory(bytes int64) error {
	limit := strconv.FormatInt(bytes, 10)
	if g.V2 {
		return errors.Join(g.write("memory.max", limit), optional(g.write("memory.swap.max", "0")), optional(g.write("memory.oom.group", "1")))
	}
	return errors.Join(g.write("memory.limit_in_bytes", limit), optional(g.write("memory.memsw.limit_in_bytes", limit)))
}

// optional forgives a file that a kernel without swap accounting, or an older
// one, does not have.
func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// LimitProcesses bounds the processes and threads of the group.
func (g Group) LimitProcesses(n int) error { return g.write("pids.max", strconv.Itoa(n)) }

// OutOfMemory reports whether the kernel ended a process of the group because
// of its memory limit.
func (g Group) OutOfMemory() (bool, error) {
	file := "memory.oom_control"
	if g.V2 {
		file = "memory.events"
	}
	b, err := os.ReadFile(filepath.Join(g.Dir, file))
	if err != nil {
		return false, fmt.Errorf("read how the control group ended: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return n != "0", nil
		}
	}
	return false, nil
}

// Kill sends SIGKILL to all of the group. A group that is gone is no error.
func (g Group) Kill() error {
	if g.V2 {
		return optional(g.write("cgroup.kill", "1"))
	}
	pids, err := g.processes()
	for _, pid := range pids {
		fd, openErr := unix.PidfdOpen(pid, 0)
		if openErr != nil {
			continue // gone
		}
		if killErr := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); killErr != nil && !errors.Is(killErr, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("kill %d: %w", pid, killErr))
		}
		unix.Close(fd)
	}
	return err
}

func (g Group) processes() ([]int, error) {
	b, err := os.ReadFile(filepath.Join(g.Dir, "cgroup.procs"))
	if err != nil {
		return nil, optional(err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(b)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("read the control group %s: %w", g.Dir, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// Left counts the processes of the group.
func (g Group) Left() int {
	pids, err := g.processes()
	if err != nil {
		return 0
	}
	return len(pids)
}

// End kills until nothing of the group is left or ctx ends, and says how many
// processes are left.
func (g Group) End(ctx context.Context) (left int, err error) {
	for {
		if err := g.Kill(); err != nil {
			return g.Left(), err
		}
		populated, err := g.awaitChange(ctx)
		if err == nil && !populated {
			return 0, nil
		}
		if err != nil || ctx.Err() != nil {
			return g.Left(), errors.Join(err, ctx.Err())
		}
	}
}

// changePause is how often a v1 group is looked at: its kernel announces nothing.
const changePause = 5 * time.Millisecond

// awaitChange waits for a change while processes are left.
func (g Group) awaitChange(ctx context.Context) (populated bool, err error) {
	if !g.V2 {
		if g.Left() == 0 {
			return false, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(changePause):
		}
		return g.Left() > 0, nil
	}
	f, err := os.Open(filepath.Join(g.Dir, "cgroup.events"))
	if err != nil {
		return false, optional(err)
	}
	defer f.Close()
	read := func() (bool, error) {
		b := make([]byte, 256)
		n, err := f.ReadAt(b, 0)
		if errors.Is(err, unix.ENODEV) {
			return false, nil // removed meanwhile
		}
		if n == 0 && err != nil {
			return false, err
		}
		return strings.Contains(string(b[:n]), "populated 1"), nil
	}
	if populated, err = read(); err != nil || !populated {
		return populated, err
	}
	wait := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(deadline), 0))
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, int(wait.Milliseconds())); err != nil && !errors.Is(err, unix.EINTR) {
		return true, err
	}
	return read()
}

// Remove ends what is in the group and removes it. One that is gone is no error.
func (g Group) Remove(ctx context.Context) error {
	for {
		if left, err := g.End(ctx); err != nil {
			return fmt.Errorf("remove the control group %s, %d processes are left: %w", g.Dir, left, err)
		}
		err := os.Remove(g.Dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		// The last process counts for a moment after it is no longer listed.
		if !errors.Is(err, unix.EBUSY) || ctx.Err() != nil {
			return fmt.Errorf("remove the control group: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(changePause):
		}
	}
}
