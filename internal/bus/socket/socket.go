// Package socket connects to a unix socket of Hayward's bus and says when to try
// again. Its start is on the path of every child, so it imports little.
package socket

import (
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"time"
)

// minWait and maxWait bound the pause between attempts to reconnect.
const (
	minWait = 50 * time.Millisecond
	maxWait = 2 * time.Second
)

// InDir is the path of the socket name in the directory that descriptor fd
// refers to. It stays right when the directory's own path is out of reach.
func InDir(fd int, name string) string {
	return filepath.Join(fmt.Sprintf("/proc/self/fd/%d", fd), name)
}

// Wait is the pause before attempt n to reconnect, counted from 1: doubling, and
// jittered so that many children do not come back at the same moment.
func Wait(n int) time.Duration {
	d := min(maxWait, minWait<<min(max(n, 1), 6))
	return d/2 + rand.N(d/2)
}

// MaxInside bounds the connections of the programs inside one child.
const MaxInside = 16

func plainDial(path string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("unix", path, timeout)
}
