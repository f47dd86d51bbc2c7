package dial

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

// dialUnix connects to a socket; a long path through a descriptor of its
// directory.
func dialUnix(socket string, timeout time.Duration) (net.Conn, error) {
	if len(socket) <= maxAddress {
		return plainDial(socket, timeout)
	}
	dir, name := filepath.Split(socket)
	fd, err := syscall.Open(dir, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: socket, Net: "unix"}, Err: err}
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
