package child

import (
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
)

// The bounds of one attempt to connect, of one write, and of the pause between
// two attempts.
const (
	dialTimeout  = 2 * time.Second
	writeTimeout = time.Second
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = 2 * time.Second
)

// dialOptions connect a child to the socket below its directory descriptor,
// with its own credential and inbox, for ever.
func dialOptions(id, token string) []nats.Option {
	return []nats.Option{
		nats.Name("child " + id),
		nats.UserInfo(id, token),
		nats.CustomInboxPrefix(events.ChildInbox(id)),
		nats.SetCustomDialer(socketDialer("/proc/self/fd/" + strconv.Itoa(handoff.FDBus) + "/bus.sock")),
		nats.Timeout(dialTimeout),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(backoff),
		// What cannot be sent now is not sent later: the outbox thins it instead.
		nats.ReconnectBufSize(-1),
		nats.FlusherTimeout(writeTimeout),
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
	}
}

// busURL is never dialed, the socket is. It is a literal address because
// nats.go resolves host names even for a custom dialer.
const busURL = "nats://127.0.0.1:4222"

// backoff grows from firstBackoff to lastBackoff with full jitter in its upper
// half, so that children do not come back in step.
func backoff(attempts int) time.Duration {
	d := lastBackoff
	if shift := max(attempts-1, 0); shift < 6 {
		d = min(firstBackoff<<shift, lastBackoff)
	}
	return d/2 + rand.N(d/2)
}

// socketDialer dials a unix socket whatever address it is asked for.
type socketDialer string

func (path socketDialer) Dial(string, string) (net.Conn, error) {
	return net.DialTimeout("unix", string(path), dialTimeout)
}
