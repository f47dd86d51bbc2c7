// Package wire is a small client of the bus for the supervisor of a subagent. It
// speaks the client protocol of NATS (docs.nats.io, "Client Protocol") and knows
// what a supervisor needs: publish, answer, ask, and connect again for ever. Its
// start is on the way of every spawn, where the full client cost a hundred page
// faults and the initialisation of TLS, HTTP and three codecs; docs/performance.md
// has the figures. Everybody else uses nats.go.
package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/internal/bus/socket"
)

// ErrNoResponders is the answer to a request that nobody listens for.
var ErrNoResponders = errors.New("nobody answers on the bus")

// ErrAway is returned while there is no connection, and by what waited for
// something when it broke.
var ErrAway = errors.New("there is no connection to the bus")

// The bounds of one attempt to connect and of one piece of a write, and how a silent
// connection is found: after two pings without an answer.
const (
	dialBound    = 2 * time.Second
	writeBound   = time.Second
	pingInterval = 10 * time.Second
	pingsMissed  = 2
)

// Options say what to connect to, and as whom.
type Options struct {
	Socket            string // path of the unix socket
	Name, User, Token string
	Inbox             string // prefix of the subjects of answers
	// Up is called after each connection, with the subscriptions in place, and Down
	// after each one's end. Neither may block. Nil is nothing.
	Up, Down func()
}

// Subscription is a subject and what takes its messages. Handle is called by the
// connection's one reader, so it must not block.
type Subscription struct {
	Subject string
	Handle  func(*Msg)
}

// Msg is a message that came.
type Msg struct {
	Data    []byte
	Subject string
	Reply   string // empty if no answer is wanted
	conn    *Conn
}

// Respond answers a message; an answer to nothing goes nowhere.
func (m *Msg) Respond(data []byte) error {
	if m.Reply == "" {
		return nil
	}
	return m.conn.Publish(m.Reply, data)
}

// Conn is a connection that is made again for ever, until Close. Its methods may
// be called by several goroutines.
type Conn struct {
	options Options
	subs    []Subscription
	inbox   string // of this process: options.Inbox and a random token

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	now  *session // guarded by mu; nil while there is no connection
	last uint64   // guarded by mu; the last request
}

// Start begins to connect and does not wait for it.
func Start(o Options, subs ...Subscription) *Conn {
	c := &Conn{
		options: o, subs: subs,
		inbox: o.Inbox + "." + strconv.FormatUint(rand.Uint64(), 36),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.wg.Go(c.run)
	return c
}

// Close ends the connection and waits for its goroutines.
func (c *Conn) Close() {
	c.cancel()
	c.wg.Wait()
}

// run holds a connection as long as it lasts, and then the next.
func (c *Conn) run() {
	for failed := 0; c.ctx.Err() == nil; {
		s, err := c.connect()
		if err != nil {
			// A refused credential too is tried again: the coordinator may not have
			// loaded it yet.
			failed++
			select {
			case <-c.ctx.Done():
			case <-time.After(socket.Wait(failed)):
			}
			continue
		}
		failed = 0
		c.hold(s)
	}
}

// hold serves a connection until it ends.
func (c *Conn) hold(s *session) {
	c.set(s)
	call(c.options.Up)
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read(c)
	}()
	c.watch(s)
	s.end()
	<-read // the next connection's reader is the only one again
	c.set(nil)
	call(c.options.Down)
}

// watch returns once a connection is over, or silent.
func (c *Conn) watch(s *session) {
	ticks := time.NewTicker(pingInterval)
	defer ticks.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-c.ctx.Done():
			return
		case <-ticks.C:
			if s.unanswered() >= pingsMissed {
				return
			}
			if _, err := s.ping(); err != nil {
				return
			}
		}
	}
}

func (c *Conn) set(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = s
}

func (c *Conn) session() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		return nil, ErrAway
	}
	return c.now, nil
}

// Connected reports whether there is a connection.
func (c *Conn) Connected() bool {
	_, err := c.session()
	return err == nil
}

// Publish sends a message. It is on its way to the server when Publish returns. A
// server that does not read costs a second and the connection.
func (c *Conn) Publish(subject string, data []byte) error {
	return c.publish(subject, "", data, true)
}

// Buffer prepares a message for the next write, or sends it if the buffer is full.
func (c *Conn) Buffer(subject string, data []byte) error {
	return c.publish(subject, "", data, false)
}

func (c *Conn) publish(subject, reply string, data []byte, now bool) error {
	s, err := c.session()
	if err != nil {
		return fmt.Errorf("publish on %s: %w", subject, err)
	}
	if err := s.publish(subject, reply, data, now); err != nil {
		return fmt.Errorf("publish on %s: %w", subject, err)
	}
	return nil
}

// Flush waits until the server has everything that was published.
func (c *Conn) Flush(ctx context.Context) error {
	s, err := c.session()
	if err != nil {
		return err
	}
	pong, err := s.ping()
	if err != nil {
		return err
	}
	select {
	case <-pong:
		return nil
	case <-s.done:
		return ErrAway
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Request sends a message and waits for the first answer, the end of the
// connection, or ctx.
func (c *Conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	s, err := c.session()
	if err != nil {
		return nil, fmt.Errorf("request on %s: %w", subject, err)
	}
	c.mu.Lock()
	c.last++
	reply := c.inbox + "." + strconv.FormatUint(c.last, 36)
	c.mu.Unlock()
	answer := s.expect(reply)
	defer s.forget(reply)
	if err := s.publish(subject, reply, data, true); err != nil {
		return nil, fmt.Errorf("request on %s: %w", subject, err)
	}
	select {
	case o := <-answer:
		if o.noResponders() {
			return nil, fmt.Errorf("request on %s: %w", subject, ErrNoResponders)
		}
		return o.data, nil
	case <-s.done:
		return nil, fmt.Errorf("request on %s: %w", subject, ErrAway)
	case <-ctx.Done():
		return nil, fmt.Errorf("request on %s: %w", subject, context.Cause(ctx))
	}
}

func call(f func()) {
	if f != nil {
		f()
	}
}
