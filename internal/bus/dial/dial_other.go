//go:build !linux

package dial

import (
	"net"
	"time"
)

func dialUnix(socket string, timeout time.Duration) (net.Conn, error) {
	return plainDial(socket, timeout)
}
