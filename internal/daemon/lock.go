package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

const (
	// orphanedLock is how long a lock may outlive its holder: a child that the
	// holder was just forking has it until it executes its program.
	orphanedLock = 5 * time.Second
	lockPause    = 5 * time.Millisecond
)

// lockState takes the lock of a state directory for this process. The kernel
// frees it when the process ends, however it ends.
func lockState(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "lock the state directory: %w", err).
			WithRemedy("the state directory must be writable; HAYWARD_STATE_DIR names another one")
	}
	for end := time.Now().Add(orphanedLock); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "lock %s: %w", path, err)
		}
		pid, alive := holder(f)
		if alive || time.Now().After(end) {
			f.Close()
			return nil, events.Errorf(events.CodeStoreConflict, events.LayerCoordinator,
				"another coordinator (pid %s) holds %s", pid, path).
				WithRemedy("use it, or end it with hayward shutdown, or name another state directory with HAYWARD_STATE_DIR")
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
		case <-time.After(lockPause):
		}
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
	}
	return f, nil
}

// holder is who took the lock, and whether that process may still be there.
func holder(f *os.File) (pid string, alive bool) {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0) // what cannot be read is unknown
	pid = strings.TrimSpace(string(b[:n]))
	number, err := strconv.Atoi(pid)
	if err != nil || number <= 0 {
		return "unknown", true
	}
	return pid, !errors.Is(unix.Kill(number, 0), unix.ESRCH)
}
