package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/relay"
)

const (
	// maxConns bounds the connections of one subagent, maxAll those of all.
	maxConns = 64
	maxAll   = 4096
	// answerBound is how long a child may take for a frame: its agent may leave
	// bytes unread.
	answerBound = 5 * time.Minute
)

// carrier takes the frames of all children and is the listener that the HTTP
// server accepts from.
type carrier struct {
	bus *nats.Conn

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	accept chan net.Conn

	mu    sync.Mutex
	conns map[connKey]*conn // guarded by mu
	count map[string]int    // connections by child, guarded by mu
}

type connKey struct {
	child string
	id    uint64
}

func newCarrier(bus *nats.Conn) *carrier {
	c := &carrier{bus: bus, accept: make(chan net.Conn), conns: make(map[connKey]*conn), count: make(map[string]int)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// take hands a frame on. It runs on the bus client's goroutine and does not block.
func (c *carrier) take(m *nats.Msg) {
	child, ok := events.ChildIDOf(m.Subject)
	f, err := relay.Decode(m.Data)
	if !ok || err != nil {
		respond(m, relay.Gone)
		return
	}
	k := c.find(connKey{child, f.Conn}, f.Kind == relay.Data)
	if k == nil {
		respond(m, relay.Gone)
		return
	}
	select {
	case k.frames <- taken{f, m}:
	default: // two at once: not our child's way
		respond(m, relay.Gone)
		k.cancel()
	}
}

// respond answers a frame; a child that gets no answer gives the connection up.
func respond(m *nats.Msg, answer string) { _ = m.Respond([]byte(answer)) }

// find returns a connection; the first bytes open it.
func (c *carrier) find(key connKey, open bool) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.conns[key]; k != nil || !open {
		return k
	}
	if c.ctx.Err() != nil || c.count[key.child] >= maxConns || len(c.conns) >= maxAll {
		return nil
	}
	inner, outer := net.Pipe()
	k := &conn{Conn: inner, carrier: c, key: key, outer: outer, frames: make(chan taken, 1)}
	k.ctx, k.cancel = context.WithCancel(c.ctx)
	c.conns[key] = k
	c.count[key.child]++
	c.wg.Go(k.fromChild)
	c.wg.Go(k.toChild)
	return k
}

func (c *carrier) forget(key connKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, key)
	if c.count[key.child]--; c.count[key.child] == 0 {
		delete(c.count, key.child)
	}
}

// cut ends the connections of one child.
func (c *carrier) cut(child string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, k := range c.conns {
		if key.child == child {
			k.cancel()
		}
	}
}

// Accept implements [net.Listener].
func (c *carrier) Accept() (net.Conn, error) {
	select {
	case k := <-c.accept:
		return k, nil
	case <-c.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener] and waits for what serves the connections.
func (c *carrier) Close() error {
	c.cancel()
	c.wg.Wait()
	return nil
}

// Addr implements [net.Listener].
func (c *carrier) Addr() net.Addr { return address("gateway") }

type address string

func (address) Network() string  { return "bus" }
func (a address) String() string { return string(a) }

// conn is one connection of an agent. The HTTP server has its inner end.
type conn struct {
	net.Conn
	carrier *carrier
	key     connKey
	outer   net.Conn
	frames  chan taken
	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
}

// taken is a frame with the message to answer.
type taken struct {
	relay.Frame
	m *nats.Msg
}

// RemoteAddr is the subagent's id.
func (k *conn) RemoteAddr() net.Addr { return address(k.key.child) }

// fromChild gives the server what the agent says, and is the owner of the
// connection's end.
func (k *conn) fromChild() {
	defer k.carrier.forget(k.key)
	defer k.cancel()
	defer k.outer.Close()
	stop := context.AfterFunc(k.ctx, func() { k.outer.Close() })
	defer stop()
	select {
	case k.carrier.accept <- k:
	case <-k.ctx.Done():
		k.Conn.Close()
	}
	for {
		select {
		case f := <-k.frames:
			if f.Kind == relay.Close {
				respond(f.m, "")
				return
			}
			if _, err := k.outer.Write(f.Data); f.Kind != relay.Data || err != nil {
				respond(f.m, relay.Gone)
				return
			}
			respond(f.m, "")
		case <-k.ctx.Done():
			return
		}
	}
}

// toChild sends what the server answers.
func (k *conn) toChild() {
	defer k.cancel()
	buf := make([]byte, relay.MaxData)
	for {
		n, err := k.outer.Read(buf)
		if n > 0 {
			if err := k.send(relay.Frame{Kind: relay.Data, Conn: k.key.id, Data: buf[:n]}); err != nil {
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) { // the server closed it
				_ = k.send(relay.Frame{Kind: relay.Close, Conn: k.key.id})
			}
			return
		}
	}
}

var errGone = errors.New("the connection is closed")

func (k *conn) send(f relay.Frame) error {
	ctx, cancel := context.WithTimeout(k.ctx, answerBound)
	defer cancel()
	m, err := k.carrier.bus.RequestWithContext(ctx, events.ModelAnswerSubject(k.key.child), f.Encode())
	switch {
	case err != nil:
		return err
	case string(m.Data) == relay.Gone:
		return errGone
	}
	return nil
}

// tail leaves with the child how the answer that follows has to end if this
// process goes away before it is complete.
func (k *conn) tail(b []byte) error {
	return k.send(relay.Frame{Kind: relay.Tail, Conn: k.key.id, Data: b})
}
