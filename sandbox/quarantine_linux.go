package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Quarantine moves aside what appeared under names that were protected and did
// not exist when the sandbox was applied, so that nothing outside runs it: each
// gets the suffix ".hayward-" and id. The kernel has no way to keep a single name
// from being made, so this is done once no process of the subagent is left. It
// returns the new paths. No directory on the way is followed through a link.
func Quarantine(absent []string, id string) (moved []string, err error) {
	var errs []error
	for _, path := range absent {
		to, err := moveAside(path, id)
		if err != nil {
			errs = append(errs, fmt.Errorf("move %s aside: %w", path, err))
		} else if to != "" {
			moved = append(moved, to)
		}
	}
	return moved, errors.Join(errs...)
}

// moveAside returns the new path, or none if there is nothing to move.
func moveAside(path, id string) (string, error) {
	dir, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(path), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if errors.Is(err, unix.ENOENT) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer unix.Close(dir)
	name := filepath.Base(path)
	aside := name + ".hayward-" + id
	err = unix.Renameat2(dir, name, dir, aside, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.ENOENT) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(path), aside), nil
}
