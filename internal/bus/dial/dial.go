// Package dial holds what a program with the NATS client needs to connect to
// Hayward's bus through a unix socket. A child does without that client: package
// wire.
package dial

import (
	"net"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hayward-dev/hayward/internal/bus/socket"
)

const (
	// url only has to parse: the dialer does not look at it. It is an address and
	// no name because the library resolves names even then, and waits seconds for
	// a name server that does not answer.
	url = "nats://127.0.0.1:4222"

	// dialTimeout bounds one attempt. A unix socket answers at once or not at all,
	// but a machine that starts many children may be busy.
	dialTimeout = 5 * time.Second
)

// Options returns what [nats.Connect] takes to connect to the bus socket as user
// with token. The path of the socket may be longer than a socket address. The
// connection, once made, reconnects for ever, after a refused credential too:
// the coordinator may not have loaded it yet. The first attempt fails like any
// other dial; [nats.RetryOnFailedConnect] makes it part of the reconnecting.
func Options(path, user, token, inboxPrefix string) (string, []nats.Option) {
	return url, []nats.Option{
		nats.UserInfo(user, token),
		nats.CustomInboxPrefix(inboxPrefix),
		nats.SetCustomDialer(dialer(path)),
		nats.Timeout(dialTimeout),
		nats.IgnoreDiscoveredServers(),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(socket.Wait),
	}
}

// dialer connects to one socket, whatever the address.
type dialer string

// Dial implements [nats.CustomDialer].
func (d dialer) Dial(string, string) (net.Conn, error) {
	return socket.Dial(string(d), dialTimeout)
}
