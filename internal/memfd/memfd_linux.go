// Package memfd makes sealed memory files: what a child is given by descriptor and
// nobody can change any more.
package memfd

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// seals are those that the constructor of a child asks for.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// Sealed returns a memory file that write filled, rewound and sealed since. The
// name is shown in /proc.
func Sealed(name string, write func(*os.File) error) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("make the memory file %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := write(f); err != nil {
		return nil, errors.Join(fmt.Errorf("fill the memory file %s: %w", name, err), f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("rewind the memory file %s: %w", name, err), f.Close())
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(fmt.Errorf("seal the memory file %s: %w", name, err), f.Close())
	}
	return f, nil
}

// SealedBytes is Sealed with a content.
func SealedBytes(name string, content []byte) (*os.File, error) {
	return Sealed(name, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}
