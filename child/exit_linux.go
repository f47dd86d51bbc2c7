package child

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watchExit returns a channel that is closed when p has ended; it is not reaped by
// that. The wait is on p's pidfd by the runtime's poller: a thread that blocks in
// waitid would take the supervisor's only processor with it, until the runtime's
// monitor comes to take it back.
func watchExit(p *os.Process) <-chan struct{} {
	exited := make(chan struct{})
	wait := func() {
		// It can only fail if somebody else reaped the process, which is as ended
		// as it can be.
		_, _ = waitable(unix.P_PID, p.Pid, 0)
	}
	if poll, err := pollExit(p); err == nil {
		wait = poll
	}
	go func() {
		defer close(exited)
		wait()
	}()
	return exited
}

// pollExit returns what waits for p's end without a thread. It fails where the
// kernel has no pidfds that can be polled.
func pollExit(p *os.Process) (wait func(), err error) {
	pidfd := -1
	var dupErr error
	if err := p.WithHandle(func(handle uintptr) {
		pidfd, dupErr = unix.FcntlInt(handle, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, dupErr
	}
	if err := unix.SetNonblock(pidfd, true); err != nil {
		unix.Close(pidfd)
		return nil, err
	}
	f := os.NewFile(uintptr(pidfd), "pidfd")
	// A descriptor that the poller does not take knows no deadline.
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		f.Close()
		return nil, err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		defer f.Close()
		if conn.Read(func(fd uintptr) bool {
			pid, err := waitable(unix.P_PIDFD, int(fd), unix.WNOHANG)
			return err != nil && !errors.Is(err, unix.EAGAIN) || pid != 0
		}) != nil {
			_, _ = waitable(unix.P_PID, p.Pid, 0)
		}
	}, nil
}
