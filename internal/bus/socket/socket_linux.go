package socket

import (
	"errors"
	"net"
	"path/filepath"
	"syscall"
	"time"
)

// maxAddress is how long the path in a socket address may be.
const maxAddress = len(syscall.RawSockaddrUnix{}.Path) - 1

// oPath is O_PATH, which package syscall does not have.
const oPath = 0x200000

// Dial connects to a socket; a long path through a descriptor of its
// directory.
func Dial(path string, timeout time.Duration) (net.Conn, error) {
	if len(path) <= maxAddress {
		return plainDial(path, timeout)
	}
	dir, name := filepath.Split(path)
	fd, err := syscall.Open(dir, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: path, Net: "unix"}, Err: err}
	}
	conn, err := plainDial(InDir(fd, name), timeout)
	if closeErr := syscall.Close(fd); closeErr != nil {
		if conn != nil {
			closeErr = errors.Join(closeErr, conn.Close())
		}
		return nil, errors.Join(err, closeErr)
	}
	return conn, err
}
