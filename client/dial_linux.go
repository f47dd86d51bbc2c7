package client

import (
	"fmt"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxSocketPath is what fits into sockaddr_un beside the final NUL.
const maxSocketPath = 107

// dialUnix connects to the unix socket at path. A path that does not fit into
// the address is reached through a descriptor of its directory.
func dialUnix(path string, deadline time.Time) (net.Conn, error) {
	d := net.Dialer{Deadline: deadline}
	if len(path) <= maxSocketPath {
		return d.Dial("unix", path)
	}
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", filepath.Dir(path), err)
	}
	defer unix.Close(dir)
	return d.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path)))
}
