package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/proc"
)

// tree is everything that the runner started and that is still there.
type tree struct {
	// namespace is true when the supervisor is pid 1 of its own PID namespace.
	namespace bool
	// group is the runner's process group. The runner is not reaped while it is
	// used, so the number cannot have been given to another.
	group int
}

// becomeReaper makes the supervisor the one that orphans are left to.
func becomeReaper() (namespace bool, err error) {
	if os.Getpid() == 1 {
		return true, nil
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return false, fmt.Errorf("become child subreaper: %w", err)
	}
	return false, nil
}

// terminate asks the runner's group to end. SIGCONT follows because a stopped
// process does not see its SIGTERM.
func (t tree) terminate() error {
	return errors.Join(t.signalGroup(unix.SIGTERM), t.signalGroup(unix.SIGCONT))
}

// interrupt asks the runner alone to end what it does and then itself: what it
// started is its own affair.
func (t tree) interrupt() error {
	return errors.Join(ignoreESRCH(unix.Kill(t.group, unix.SIGINT)), t.signalGroup(unix.SIGCONT))
}

// kill ends the group and, in a namespace of our own, everything else at once:
// the kernel holds back forks while it goes through its list.
func (t tree) kill() error {
	if t.namespace {
		return ignoreESRCH(unix.Kill(-1, unix.SIGKILL))
	}
	return t.signalGroup(unix.SIGKILL)
}

func (t tree) signalGroup(sig unix.Signal) error { return ignoreESRCH(unix.Kill(-t.group, sig)) }

// ignoreESRCH: nobody left to signal is what was wanted.
func ignoreESRCH(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// sweep kills every descendant until there is none, for a supervisor without a
// PID namespace. A process may fork between the look and the kill, so it looks
// again until nothing new is found or ctx ends.
func sweep(ctx context.Context, self int) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		living, err := proc.Descendants(self)
		if err != nil {
			return err
		}
		if len(living) == 0 {
			return nil
		}
		var refused error // of this round: one that may not be killed spares no other
		for _, p := range living {
			if err := p.Signal(unix.SIGKILL); err != nil {
				refused = errors.Join(refused, err)
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d processes are left: %w", len(living), ctx.Err()), refused)
		case <-time.After(pause):
		}
	}
}

// countProcesses returns how many processes the namespace holds beside the
// supervisor; 0 when /proc does not show that namespace.
func countProcesses() int {
	if self, err := os.Readlink("/proc/self"); err != nil || self != "1" {
		return 0
	}
	n, err := proc.Count()
	if err != nil {
		return 0
	}
	return max(n-1, 0)
}
