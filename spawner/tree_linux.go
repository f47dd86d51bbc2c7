package spawner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
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
	close()
}

// newTree picks the best means there is. A child that is pid 1 of its own PID
// namespace needs no other: the kernel ends the namespace with it.
func newTree(id string, pidNamespace bool) (tree, error) {
	if pidNamespace {
		return namespaceTree{}, nil
	}
	if dir, err := makeLeaf(id); err == nil {
		return openLeaf(dir)
	}
	return sweepTree{id: id}, nil
}

// adoptTree is newTree for a child of an earlier coordinator.
func adoptTree(id string, p *events.Process) (tree, error) {
	switch {
	case p == nil, p.PIDNamespace != 0 && p.PIDNamespace != ownPIDNamespace():
		return namespaceTree{}, nil
	case p.CgroupPath != "":
		if t, err := openLeaf(p.CgroupPath); err == nil {
			return t, nil
		}
	}
	return sweepTree{id: id}, nil
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
func (namespaceTree) close()                           {}

// cgroupTree is a cgroup v2 leaf of the child's own.
type cgroupTree struct {
	dir string
	fd  *os.File
}

// makeLeaf makes a cgroup below our own in the v2 hierarchy.
func makeLeaf(id string) (string, error) {
	base, err := ownCgroup()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "hayward-"+id)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a cgroup leaf: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
		os.Remove(dir)
		return "", fmt.Errorf("the kernel has no cgroup.kill: %w", err)
	}
	return dir, nil
}

// ownCgroup is this process's directory in the cgroup v2 hierarchy.
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find cgroup v2: %w", err)
	}
	var root string
	for line := range strings.Lines(string(mounts)) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if ok && strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			root = fields[4]
		}
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("find cgroup v2: %w", err)
	}
	for line := range strings.Lines(string(own)) {
		if rel, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && root != "" {
			return filepath.Join(root, rel), nil
		}
	}
	return "", errors.New("find cgroup v2: it is not mounted")
}

func openLeaf(dir string) (*cgroupTree, error) {
	fd, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cgroup leaf: %w", err)
	}
	return &cgroupTree{dir: dir, fd: fd}, nil
}

func (*cgroupTree) kind() events.TreeKill { return events.TreeKillCgroup }
func (t *cgroupTree) path() string        { return t.dir }

func (t *cgroupTree) place(attr *syscall.SysProcAttr) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(t.fd.Fd())
}

func (t *cgroupTree) kill() error {
	err := os.WriteFile(filepath.Join(t.dir, "cgroup.kill"), []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (t *cgroupTree) end(ctx context.Context) (int, error) {
	for {
		if err := t.kill(); err != nil {
			return t.left(), err
		}
		populated, err := t.awaitChange(ctx)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && !populated) {
			return 0, nil
		}
		if err != nil || ctx.Err() != nil {
			return t.left(), errors.Join(err, ctx.Err())
		}
	}
}

// awaitChange reads cgroup.events and, while processes are left, waits for the
// kernel to announce a change.
func (t *cgroupTree) awaitChange(ctx context.Context) (populated bool, err error) {
	f, err := os.Open(filepath.Join(t.dir, "cgroup.events"))
	if err != nil {
		return false, err
	}
	defer f.Close()
	read := func() (bool, error) {
		b := make([]byte, 256)
		n, err := f.ReadAt(b, 0)
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

func (t *cgroupTree) left() int {
	b, err := os.ReadFile(filepath.Join(t.dir, "cgroup.procs"))
	if err != nil {
		return 0
	}
	return len(strings.Fields(string(b)))
}

func (t *cgroupTree) close() {
	t.fd.Close()
	os.Remove(t.dir) // fails while it is populated: then a later coordinator adopts it
}

// sweepTree finds processes by the variable that every command gets. A hostile command can hide from it, which is why the record says
// "sweep"; the supervisor's own sweep of its descendants comes before.
type sweepTree struct{ id string }

func (sweepTree) kind() events.TreeKill      { return events.TreeKillSweep }
func (sweepTree) place(*syscall.SysProcAttr) {}
func (sweepTree) path() string               { return "" }
func (sweepTree) close()                     {}

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
