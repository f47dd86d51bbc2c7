package child

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/socket"
	"github.com/hayward-dev/hayward/internal/bus/wire"
	"github.com/hayward-dev/hayward/internal/handoff"
)

// bus is the supervisor's connection to the coordinator. It is there or it is
// not; nothing but its own goroutines wait for it.
type bus struct {
	id    string
	token string
	// control takes messages on the control subject, one at a time. It must not
	// block.
	control func(data []byte, reply func(events.ControlReply))
	// answers and lost belong to the relay: frames of the gateway, and a connection
	// that is down. Neither may block. Nil without a relay; set before dial.
	answers func(data []byte, reply func(string))
	lost    func()
	// connected has one slot: a connection was made, the first or a later one.
	connected chan struct{}
	// ready is closed once there was a connection.
	ready     chan struct{}
	readyOnce sync.Once

	conn atomic.Pointer[wire.Conn] // nil before dial

	underWay int // bytes of items that no answer of the server has covered; owned by items
}

// socketName is the children's socket in the directory of handoff.FDBus.
const socketName = "bus.sock"

// flushBound bounds one batch of items on its way through the bridge.
const flushBound = 5 * time.Second

func newBus(spec events.ChildSpec, control func([]byte, func(events.ControlReply))) *bus {
	return &bus{
		id: spec.ID, token: spec.Token, control: control,
		connected: make(chan struct{}, 1), ready: make(chan struct{}),
	}
}

// dial begins to connect, and to connect again for ever.
func (b *bus) dial() {
	subs := []wire.Subscription{{Subject: events.ControlSubject(b.id), Handle: b.handle}}
	if b.answers != nil {
		subs = append(subs, wire.Subscription{Subject: events.ModelAnswerSubject(b.id), Handle: b.handleModel})
	}
	b.conn.Store(wire.Start(wire.Options{
		Socket: socket.InDir(handoff.FDBus, socketName), Name: "child " + b.id, User: b.id, Token: b.token,
		Inbox: events.ChildInbox(b.id), Up: b.up, Down: b.lost,
	}, subs...))
}

func (b *bus) up() {
	select {
	case b.connected <- struct{}{}:
	default:
	}
	b.readyOnce.Do(func() { close(b.ready) })
}

func (b *bus) handle(m *wire.Msg) {
	b.control(m.Data, func(r events.ControlReply) {
		if body, err := encode(r); err == nil {
			// A reply that does not get through is asked for again.
			_ = m.Respond(body)
		}
	})
}

// live returns the connection if it is up.
func (b *bus) live() *wire.Conn {
	if c := b.conn.Load(); c != nil && c.Connected() {
		return c
	}
	return nil
}

// report publishes v if there is a connection.
func (b *bus) report(r events.ChildReport, v any) error {
	_, err := b.publish(r, v, (*wire.Conn).Publish)
	return err
}

func (b *bus) publish(r events.ChildReport, v any, how func(*wire.Conn, string, []byte) error) (size int, err error) {
	c := b.live()
	if c == nil {
		return 0, errNoBus
	}
	body, err := encode(v)
	if err != nil {
		return 0, err
	}
	return len(body), how(c, events.ChildSubject(b.id, r), body)
}

// unanswered is how much of items may be under way that the server has not said to
// have: below the socket's buffer, so that no control message queues up behind output.
const unanswered = 32 << 10

// items publishes items. Once much is under way it waits until the server has it.
func (b *bus) items(ctx context.Context, items []events.Item) {
	for i, item := range items {
		how := (*wire.Conn).Buffer
		if i == len(items)-1 {
			how = (*wire.Conn).Publish
		}
		n, err := b.publish(events.ChildItem, busItem(item), how)
		if err != nil {
			return // lost with the connection; the files have it
		}
		b.underWay += n
	}
	if b.underWay >= unanswered {
		b.underWay = 0
		b.flush(ctx, flushBound)
	}
}

// flush waits until the server has everything that was published, until bound,
// or until ctx ends.
func (b *bus) flush(ctx context.Context, bound time.Duration) {
	c := b.live()
	if c == nil || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	// No answer is a connection that will be found dead by its pings.
	_ = c.Flush(ctx)
}

// farewell sends the fast copy of the report, if that takes no longer than
// bound; the caller is about to exit. The socket keeps what was written to it for
// its reader beyond that.
func (b *bus) farewell(r events.Report, bound time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	go func() {
		defer cancel()
		// Without a connection the coordinator reads report.json alone.
		_ = b.report(events.ChildResult, r)
	}()
	<-ctx.Done()
}
