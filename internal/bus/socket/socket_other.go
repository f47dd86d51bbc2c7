//go:build !linux

package socket

import (
	"net"
	"time"
)

func Dial(path string, timeout time.Duration) (net.Conn, error) {
	return plainDial(path, timeout)
}
