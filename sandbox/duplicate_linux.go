package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// duplicate returns a second descriptor of f for an owner of its own.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
