package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// Lock is a held lock of the kernel on a file: it ends with the process that
// holds it, however that ends.
type Lock struct{ file *os.File }

// Unlock lets go. A second call does nothing.
func (l *Lock) Unlock() {
	if l != nil && l.file != nil {
		l.file.Close() // closing is what unlocks; there is nothing to report
		l.file = nil
	}
}

// LockDeadline is how long to wait for a lock that another holds.
const LockDeadline = 60 * time.Second

// repositoryLock is the name of the lock file in a common git directory. It is
// never removed: who waits for a removed file and who makes the next would both
// hold a lock.
const repositoryLock = "hayward.lock"

// LockRepository serialises what changes refs of one user's repository, across
// processes and state directories.
func LockRepository(ctx context.Context, commonDir, id string) (*Lock, *events.Error) {
	l, err := lock(ctx, filepath.Join(commonDir, repositoryLock), LockDeadline)
	if err != nil {
		return nil, events.Errorf(events.CodeTimeout, events.LayerWorkspace, "worktree %s: lock the repository %s: %w", id, commonDir, err).
			WithRemedy("another hayward works on the repository; try again")
	}
	return l, nil
}

// Lease takes the lease of id's tree, which must have a directory. While its
// subagent lives the coordinator holds it.
func (r Root) Lease(ctx context.Context, id string) (*Lock, *events.Error) {
	return r.lease(ctx, id, LockDeadline)
}

// TryLease is Lease without waiting: [events.CodeBusy] means that another holds it.
func (r Root) TryLease(id string) (*Lock, *events.Error) {
	return r.lease(context.Background(), id, 0)
}

func (r Root) lease(ctx context.Context, id string, wait time.Duration) (*Lock, *events.Error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	l, err := lock(ctx, filepath.Join(r.Dir(id), leaseFile), wait)
	if err != nil {
		code := events.CodeStorageFailed
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, context.DeadlineExceeded) {
			code = events.CodeBusy
		}
		return nil, events.Errorf(code, events.LayerWorkspace, "worktree %s: take its lease: %w", id, err).
			WithRemedy("it is in use; wait for its subagent to end")
	}
	return l, nil
}

// The bounds of the pause before a lock is tried again.
const (
	firstPause = 2 * time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// lock takes an exclusive lock of path, a file that is made where it is missing.
// It tries again until ctx or wait ends; wait 0 is one try.
func lock(ctx context.Context, path string, wait time.Duration) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return &Lock{f}, nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK) || wait == 0:
			return nil, errors.Join(err, f.Close())
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-deadline.C:
			err = context.DeadlineExceeded
		}
		again.Stop()
		return nil, errors.Join(err, f.Close())
	}
}
