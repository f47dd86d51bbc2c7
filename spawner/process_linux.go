package spawner

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// process is hayward-child as seen through its pidfd, which keeps meaning this
// process whatever becomes of its pid.
type process struct {
	identity events.Process
	pidfd    *os.File
	// own is true for a child of this process, which has to reap it.
	own bool
	// gone is closed once the process has ended and, if own, was reaped.
	gone chan struct{}
	// state and known are the wait status; written before gone is closed.
	state unix.WaitStatus
	known bool

	watcher sync.WaitGroup
}

// newProcess takes over the pidfd. It is watched by the runtime's poller, so a
// live child costs a goroutine and no thread.
func newProcess(pid, pidfd int, own bool) (*process, error) {
	if err := unix.SetNonblock(pidfd, true); err != nil {
		unix.Close(pidfd)
		return nil, fmt.Errorf("make the pidfd of %d non-blocking: %w", pid, err)
	}
	p := &process{
		identity: events.Process{PID: pid},
		pidfd:    os.NewFile(uintptr(pidfd), "pidfd"),
		own:      own,
		gone:     make(chan struct{}),
	}
	conn, err := p.pidfd.SyscallConn()
	if err != nil {
		p.pidfd.Close()
		return nil, fmt.Errorf("watch the pidfd of %d: %w", pid, err)
	}
	p.watcher.Go(func() {
		ended := false
		err := conn.Read(func(fd uintptr) bool {
			ended = p.ended(int(fd))
			return ended
		})
		// The read also returns when close gives the process up; it lives on then.
		if err == nil && ended {
			close(p.gone)
		}
	})
	return p, nil
}

// ended reaps an own child, or looks whether an adopted one is gone.
func (p *process) ended(pidfd int) bool {
	if !p.own {
		return readable(pidfd)
	}
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PIDFD, pidfd, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return errors.Is(err, unix.ECHILD)
	}
	pid, err := unix.Wait4(p.identity.PID, &p.state, unix.WNOHANG, nil)
	p.known = err == nil && pid == p.identity.PID
	return true
}

// readable reports whether the process of a pidfd has ended.
func readable(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n == 1
}

// identify fills in what tells this process from any other, now and after a
// restart of the coordinator.
func (p *process) identify() error {
	id, err := identityOf(p.identity.PID)
	if err == nil {
		p.identity = id
	}
	return err
}

// identityOf reads the identity of a live process.
func identityOf(pid int) (events.Process, error) {
	id := events.Process{PID: pid}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return id, fmt.Errorf("identify process %d: %w", pid, err)
	}
	if id.StartTime, err = startTime(string(stat)); err != nil {
		return id, fmt.Errorf("identify process %d: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id, fmt.Errorf("identify process %d: %w", pid, err)
	}
	id.BootID = strings.TrimSpace(string(boot))
	if id.PIDNamespace, err = pidNamespace(strconv.Itoa(pid)); err != nil {
		return id, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return id, nil
}

// startTime is field 22 of a stat line. The second field, the program's name,
// may hold spaces and parentheses, so counting starts behind its last one.
func startTime(stat string) (uint64, error) {
	_, rest, ok := strings.Cut(stat[max(strings.LastIndexByte(stat, ')'), 0):], ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return 0, fmt.Errorf("malformed stat line %q", stat)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// pidNamespace is the inode of a process's PID namespace.
func pidNamespace(pid string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+pid+"/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("stat its PID namespace: %w", err)
	}
	return st.Ino, nil
}

// kill sends SIGKILL. A process that has ended is no error.
func (p *process) kill() error {
	if p.pidfd == nil {
		return nil // it was gone before it was found
	}
	conn, err := p.pidfd.SyscallConn()
	if err != nil {
		return fmt.Errorf("kill %d: %w", p.identity.PID, err)
	}
	var killErr error
	if err := conn.Control(func(fd uintptr) {
		killErr = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0)
	}); err != nil {
		return fmt.Errorf("kill %d: %w", p.identity.PID, err)
	}
	if killErr != nil && !errors.Is(killErr, unix.ESRCH) {
		return fmt.Errorf("kill %d: %w", p.identity.PID, killErr)
	}
	return nil
}

// waitGone waits at most d for the end and reports whether it came.
func (p *process) waitGone(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.gone:
		return true
	case <-t.C:
		return false
	}
}

// close gives the process up without ending it.
func (p *process) close() {
	if p.pidfd != nil {
		p.pidfd.Close() // ends the watcher's read
	}
	p.watcher.Wait()
}
