// Package dial holds what a program needs to connect to Hayward's bus through a
// unix socket. Its start is on the path of every child, so it imports nothing
// beside the NATS client.
package dial

import (
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// url only has to parse: the dialer does not look at it. It is an address and
	// no name because the library resolves names even then, and waits seconds for
	// a name server that does not answer.
	url = "nats://127.0.0.1:4222"

	// dialTimeout bounds one attempt. A unix socket answers at once or not at all,
	// but a machine that starts many children may be busy.
	dialTimeout = 5 * time.Second

	// minWait and maxWait bound the pause between attempts to reconnect.
	minWait = 50 * time.Millisecond
	maxWait = 2 * time.Second
)

// InDir is the path of the socket name in the directory that descriptor fd
// refers to. It stays right when the directory's own path is out of reach.
func InDir(fd int, name string) string {
	return filepath.Join(fmt.Sprintf("/proc/self/fd/%d", fd), name)
}

// Options returns what [nats.Connect] takes to connect to the bus socket as user
// with token. The path of the socket may be longer than a socket address. The
// connection, once made, reconnects for ever, after a refused credential too:
// the coordinator may not have loaded it yet. The first attempt fails like any
// other dial; [nats.RetryOnFailedConnect] makes it part of the reconnecting.
func Options(socket, user, token, inboxPrefix string) (string, []nats.Option) {
	return url, []nats.Option{
		nats.UserInfo(user, token),
		nats.CustomInboxPrefix(inboxPrefix),
		nats.SetCustomDialer(dialer(socket)),
		nats.Timeout(dialTimeout),
		nats.IgnoreDiscoveredServers(),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(wait),
	}
}

// dialer connects to one socket, whatever the address.
type dialer string

// Dial implements [nats.CustomDialer].
func (d dialer) Dial(string, string) (net.Conn, error) {
	return dialUnix(string(d), dialTimeout)
}

// wait is the pause before attempt n to reconnect, counted from 1: doubling, and
// jittered so that many children do not come back at the same moment.
func wait(n int) time.Duration {
	d := min(maxWait, minWait<<min(max(n, 1), 6))
	return d/2 + rand.N(d/2)
}

func plainDial(socket string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("unix", socket, timeout)
}
