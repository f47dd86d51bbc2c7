package daemon

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// lockState takes the lock of a state directory for this process. The kernel
// frees it when the process ends, however it ends.
func lockState(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "lock the state directory: %w", err).
			WithRemedy("the state directory must be writable; HAYWARD_STATE_DIR names another one")
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "lock %s: %w", path, err)
		}
		holder := make([]byte, 32)
		n, _ := f.ReadAt(holder, 0) // only for the message; empty is said as unknown
		pid := strings.TrimSpace(string(holder[:n]))
		if pid == "" {
			pid = "unknown"
		}
		return nil, events.Errorf(events.CodeStoreConflict, events.LayerCoordinator,
			"another coordinator (pid %s) holds %s", pid, path).
			WithRemedy("use it, or end it with hayward shutdown, or name another state directory with HAYWARD_STATE_DIR")
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
