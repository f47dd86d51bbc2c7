package child

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/wire"
	"github.com/hayward-dev/hayward/internal/relay"
)

// carrier carries the connections of an agent inside to the coordinator's
// gateway. It understands nothing of what they say, but for one thing: when the
// coordinator is away, what waits for an answer gets an HTTP answer that says so,
// and a stream that breaks off gets the end that the gateway left for it.
type carrier struct {
	listener net.Listener
	// ask sends a frame and returns the answer.
	ask func(ctx context.Context, f relay.Frame) (string, error)

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	last   uint64
	conns  map[uint64]*carried // guarded by mu
	closed bool                // guarded by mu
}

const (
	// maxCarried bounds the connections of one agent.
	maxCarried = 64
	// askBound is how long a frame may be on its way: the gateway takes it once
	// the bytes before it are read.
	askBound = 2 * time.Minute
	// localBound is how long the agent may leave bytes unread.
	localBound = 5 * time.Minute
	// firstBound is how long the first connection to the bus is waited for.
	firstBound = 5 * time.Second
	// cutBound is how long an agent is given for the end of what is cut.
	cutBound = time.Second
)

// away answers a request while there is no coordinator.
const away = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Type: application/json\r\nContent-Length: 96\r\nConnection: close\r\n\r\n" +
	`{"type":"error","error":{"type":"overloaded_error","message":"the coordinator is away, retry"}}` + "\n"

// listenRelay opens the listener. In a network namespace of its own nobody else
// can connect to it; elsewhere the gateway asks for the agent's credential.
func listenRelay(ask func(context.Context, relay.Frame) (string, error)) (*carrier, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the relay: %w", err)
	}
	c := &carrier{listener: l, ask: ask, conns: make(map[uint64]*carried)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.wg.Go(c.accept)
	return c, nil
}

// substitute puts the relay's address where the spec has its place.
func (c *carrier) substitute(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ReplaceAll(s, events.RelayAddress, c.listener.Addr().String())
	}
	return out
}

func (c *carrier) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, for example: the agent tries again.
			select {
			case <-c.ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
				continue
			}
		}
		c.mu.Lock()
		if c.closed || len(c.conns) >= maxCarried {
			c.mu.Unlock()
			conn.Close()
			continue
		}
		c.last++
		k := &carried{carrier: c, id: c.last, conn: conn, frames: make(chan taken, 1), ended: make(chan struct{})}
		c.conns[k.id] = k
		c.mu.Unlock()
		c.wg.Go(k.readLocal)
		c.wg.Go(k.writeLocal)
	}
}

// answer takes a frame from the gateway. It does not block: the answer to the
// frame follows once the agent has taken the bytes.
func (c *carrier) answer(data []byte, reply func(string)) {
	f, err := relay.Decode(data)
	if err != nil {
		reply(relay.Gone)
		return
	}
	c.mu.Lock()
	k := c.conns[f.Conn]
	c.mu.Unlock()
	if k == nil {
		reply(relay.Gone)
		return
	}
	select {
	case k.frames <- taken{f, reply}:
	default: // two at once: not our gateway's way
		reply(relay.Gone)
	}
}

// lost ends what the coordinator took with it. It does not wait: the agent may
// leave bytes unread.
func (c *carrier) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	for _, k := range c.conns {
		c.wg.Go(k.cut)
	}
}

func (c *carrier) forget(k *carried) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, k.id)
}

// close ends every connection and waits for what serves them.
func (c *carrier) close() {
	c.cancel()
	c.listener.Close()
	c.mu.Lock()
	c.closed = true
	for _, k := range c.conns {
		k.conn.Close()
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// carried is one connection of the agent.
type carried struct {
	carrier *carrier
	id      uint64
	conn    net.Conn
	frames  chan taken
	ended   chan struct{} // closed when nothing more is read

	writing sync.Mutex // held for each write

	mu sync.Mutex // guards what follows
	// waiting: a request was read and no byte of its answer was written. tail is
	// how an answer under way ends if it is cut. over: nothing more is written.
	waiting, over bool
	tail          []byte
}

// taken is a frame with the way to answer it.
type taken struct {
	relay.Frame
	reply func(string)
}

// readLocal sends what the agent says. It is the owner of the connection's end.
func (k *carried) readLocal() {
	defer k.end()
	buf := make([]byte, relay.MaxData)
	for {
		n, err := k.conn.Read(buf)
		if n > 0 {
			k.mu.Lock()
			k.waiting = true
			k.mu.Unlock()
			if !k.send(relay.Frame{Kind: relay.Data, Conn: k.id, Data: buf[:n]}) {
				k.cut()
				return
			}
		}
		if err != nil {
			k.send(relay.Frame{Kind: relay.Close, Conn: k.id})
			return
		}
	}
}

func (k *carried) send(f relay.Frame) bool {
	ctx, cancel := context.WithTimeout(k.carrier.ctx, askBound)
	defer cancel()
	answer, err := k.carrier.ask(ctx, f)
	return err == nil && answer == ""
}

func (k *carried) end() {
	k.carrier.forget(k)
	k.finish()
	k.conn.Close()
	close(k.ended)
}

// finish reports whether the connection was not over before, and what it owes the
// agent if it is cut now.
func (k *carried) finish() (was bool, owed []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was, k.over = !k.over, true
	if k.waiting {
		return was, []byte(away)
	}
	return was, k.tail
}

// writeLocal gives the agent what the gateway sends.
func (k *carried) writeLocal() {
	for {
		select {
		case f := <-k.frames:
			if k.take(f.Frame) {
				f.reply("")
				continue
			}
			f.reply(relay.Gone)
			k.conn.Close() // ends readLocal
		case <-k.ended:
			// A frame that comes yet is answered by the Close that was sent.
			return
		}
	}
}

// take reports whether the connection goes on.
func (k *carried) take(f relay.Frame) bool {
	switch f.Kind {
	case relay.Tail:
		k.mu.Lock()
		defer k.mu.Unlock()
		k.tail = append([]byte{}, f.Data...)
		return !k.over
	case relay.Close:
		k.finish()
		k.conn.Close()
		return true
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	over := k.over
	k.waiting = false
	k.mu.Unlock()
	return !over && k.write(f.Data, localBound)
}

func (k *carried) write(b []byte, bound time.Duration) bool {
	if err := k.conn.SetWriteDeadline(time.Now().Add(bound)); err != nil {
		return false
	}
	_, err := k.conn.Write(b)
	return err == nil
}

// cut ends the connection because the coordinator is away.
func (k *carried) cut() {
	if was, owed := k.finish(); was && owed != nil {
		// A write under way ends soon, whether the agent reads or not.
		_ = k.conn.SetWriteDeadline(time.Now().Add(cutBound))
		k.writing.Lock()
		k.write(owed, cutBound)
		k.writing.Unlock()
	}
	k.conn.Close()
}

// askGateway sends one frame over the bus. The agent may be faster than the first
// connection; later ones are not waited for.
func (b *bus) askGateway(ctx context.Context, f relay.Frame) (string, error) {
	select {
	case <-b.ready:
	case <-time.After(firstBound):
	case <-ctx.Done():
	}
	c := b.live()
	if c == nil {
		return "", errNoBus
	}
	answer, err := c.Request(ctx, events.ModelSubject(b.id), f.Encode())
	return string(answer), err
}

// handleModel hands a frame of the gateway to the relay.
func (b *bus) handleModel(m *wire.Msg) {
	b.answers(m.Data, func(answer string) {
		// A gateway that gets no answer gives the connection up.
		_ = m.Respond([]byte(answer))
	})
}
