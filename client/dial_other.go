//go:build !linux

package client

import (
	"net"
	"time"
)

// dialUnix connects to the unix socket at path.
func dialUnix(path string, deadline time.Time) (net.Conn, error) {
	d := net.Dialer{Deadline: deadline}
	return d.Dial("unix", path)
}
