package child

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/dial"
	"github.com/hayward-dev/hayward/internal/handoff"
)

// bus is the supervisor's connection to the coordinator. It is there or it is
// not; nothing but its own goroutine waits for it.
type bus struct {
	id    string
	token string
	// control takes messages on the control subject, one at a time. It must not
	// block.
	control func(data []byte, reply func(events.ControlReply))
	// answers and lost belong to the relay: frames of the gateway, and a connection
	// that is down. Nil without a relay; set before dial.
	answers func(data []byte, reply func(string))
	lost    func()
	// connected has one slot: a connection was made, the first or a later one.
	connected chan struct{}
	// ready is closed once there was a connection.
	ready     chan struct{}
	readyOnce sync.Once

	mu   sync.Mutex
	conn *nats.Conn // guarded by mu; nil before dial has ended
}

// socketName is the children's socket in the directory of handoff.FDBus.
const socketName = "bus.sock"

// The bounds of one attempt to connect, of one write, and of one batch of items
// on its way through the bridge.
const (
	dialBound  = 2 * time.Second
	writeBound = time.Second
	flushBound = 5 * time.Second
)

func newBus(spec events.ChildSpec, control func([]byte, func(events.ControlReply))) *bus {
	return &bus{
		id: spec.ID, token: spec.Token, control: control,
		connected: make(chan struct{}, 1), ready: make(chan struct{}),
	}
}

// dial begins to connect and returns after the first attempt; the client goes
// on by itself. An error means that the options are wrong: then there is no bus.
func (b *bus) dial() error {
	up := func(*nats.Conn) {
		select {
		case b.connected <- struct{}{}:
		default:
		}
		b.markReady()
	}
	url, options := dial.Options(dial.InDir(handoff.FDBus, socketName), b.id, b.token, events.ChildInbox(b.id))
	nc, err := nats.Connect(url, append(options,
		nats.Name("child "+b.id),
		nats.RetryOnFailedConnect(true),
		nats.Timeout(dialBound),
		nats.FlusherTimeout(writeBound),
		// What cannot be sent now is not sent later: the outbox thins it instead.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(10*time.Second),
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(*nats.Conn, error) {
			if b.lost != nil {
				b.lost()
			}
		}),
		nats.ConnectHandler(up),
		nats.ReconnectHandler(up),
		// Errors of a connection are answered by a new one; the default would
		// print them on stderr.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)...)
	if err != nil {
		return fmt.Errorf("connect to the bus: %w", err)
	}
	if _, err := nc.Subscribe(events.ControlSubject(b.id), b.handle); err != nil {
		nc.Close()
		return fmt.Errorf("subscribe to control messages: %w", err)
	}
	if b.answers != nil {
		if _, err := nc.Subscribe(events.ModelAnswerSubject(b.id), b.handleModel); err != nil {
			nc.Close()
			return fmt.Errorf("subscribe to the gateway's answers: %w", err)
		}
	}
	b.mu.Lock()
	b.conn = nc
	b.mu.Unlock()
	b.markReady()
	return nil
}

// markReady closes ready as soon as there is a connection that live returns.
func (b *bus) markReady() {
	if b.live() != nil {
		b.readyOnce.Do(func() { close(b.ready) })
	}
}

func (b *bus) handle(m *nats.Msg) {
	b.control(m.Data, func(r events.ControlReply) {
		body, err := events.Marshal(r)
		if err == nil && m.Reply != "" {
			// A reply that does not get through is asked for again.
			_ = m.Respond(body)
		}
	})
}

// live returns the connection if it is up.
func (b *bus) live() *nats.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn == nil || !b.conn.IsConnected() {
		return nil
	}
	return b.conn
}

// report publishes v if there is a connection.
func (b *bus) report(r events.ChildReport, v any) error {
	nc := b.live()
	if nc == nil {
		return errNoBus
	}
	body, err := events.Marshal(v)
	if err != nil {
		return err
	}
	return nc.Publish(events.ChildSubject(b.id, r), body)
}

// items publishes items and waits until the server has them, so that what is
// under way stays below the socket's buffer and no control message queues up
// behind output.
func (b *bus) items(ctx context.Context, items []events.Item) {
	for _, item := range items {
		if b.report(events.ChildItem, busItem(item)) != nil {
			return // lost with the connection; the files have it
		}
	}
	b.flush(ctx, flushBound)
}

// flush waits until the server has everything that was published, until bound,
// or until ctx ends.
func (b *bus) flush(ctx context.Context, bound time.Duration) {
	nc := b.live()
	if nc == nil || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	// No answer is a connection that will be found dead by its pings.
	_ = nc.FlushWithContext(ctx)
}

// farewell sends the fast copy of the report, if that takes no longer than
// bound; the caller is about to exit, which closes the connection.
func (b *bus) farewell(r events.Report, bound time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	go func() {
		defer cancel()
		if b.report(events.ChildResult, r) == nil {
			b.flush(ctx, bound)
		}
	}()
	<-ctx.Done()
}
