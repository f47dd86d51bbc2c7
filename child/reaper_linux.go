package child

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reaper buries processes that were left to the supervisor. It looks before it
// waits, so it never takes the end of the runner from its own waiter.
type reaper struct {
	sigchld <-chan os.Signal
	slack   uint64        // timer slack of the runner in ns, 0 for ours
	again   chan struct{} // one slot: look again
	stop    chan struct{}
	done    chan struct{}

	// mu is held while the runner is made: until its pid is known, every child
	// could be it.
	mu     sync.Mutex
	runner int // guarded by mu; 0 when there is none to spare
}

func newReaper(sigchld <-chan os.Signal, slack uint64) *reaper {
	return &reaper{
		sigchld: sigchld,
		slack:   slack,
		again:   make(chan struct{}, 1),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
}

// run reaps until close.
func (r *reaper) run() {
	defer close(r.done)
	for {
		select {
		case <-r.sigchld:
		case <-r.again:
		case <-r.stop:
			return
		}
		r.reap()
	}
}

// close ends run and waits for it.
func (r *reaper) close() {
	close(r.stop)
	<-r.done
}

// spare runs start, which makes the runner and returns its pid, and leaves that
// pid alone from then on.
func (r *reaper) spare(start func() (pid int, err error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slack != 0 {
		// It is a thread's and inherited.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(r.slack), 0, 0, 0); err != nil {
			return fmt.Errorf("set the timer slack: %w", err)
		}
	}
	pid, err := start()
	r.runner = pid
	return err
}

// forget says that the runner was reaped by its owner.
func (r *reaper) forget() {
	r.mu.Lock()
	r.runner = 0
	r.mu.Unlock()
	select {
	case r.again <- struct{}{}:
	default:
	}
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		pid, err := waitable(unix.P_ALL, 0, unix.WNOHANG)
		if err != nil || pid == 0 || pid == r.runner {
			// No child, none ended, or the runner: forget looks again.
			return
		}
		if err := ignoreEINTR(func() error {
			_, err := unix.Wait4(pid, nil, 0, nil)
			return err
		}); err != nil {
			return // somebody else has it
		}
	}
}

// childless reports whether this process has no child, living or to be reaped.
func childless() bool {
	_, err := waitable(unix.P_ALL, 0, unix.WNOHANG)
	return errors.Is(err, unix.ECHILD)
}

// waitable returns the pid of a child that has ended, and leaves it to be
// waited for; 0 if there is none and options has WNOHANG.
func waitable(idType, id, options int) (int, error) {
	var info siginfo
	err := ignoreEINTR(func() error {
		return unix.Waitid(idType, id, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT|options, nil)
	})
	return int(info.pid), err
}

// siginfo is the part of the kernel's siginfo_t that waitid fills, for 64-bit
// systems.
type siginfo struct {
	_   [3]int32 // signo, errno, code
	_   int32
	pid int32
	_   [unsafe.Sizeof(unix.Siginfo{}) - 5*4]byte
}

func ignoreEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
