package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/hayward-dev/hayward/internal/bus/socket"
)

// session is one connection to the server.
type session struct {
	conn  net.Conn
	in    *reader
	early []op // messages that came before the connection was there
	// done is closed by end: nothing more comes.
	done  chan struct{}
	ended sync.Once

	// sending is held for each write, so that pongs has the order of the pings.
	sending    sync.Mutex
	out        *bufio.Writer
	maxPayload int // guarded by sending

	mu    sync.Mutex
	pongs []chan struct{}    // guarded by mu; one for each ping, the oldest first
	asked map[string]chan op // guarded by mu; by the subject of the answer
}

// outBuffer is enough for a batch of items.
const outBuffer = 16 << 10

// bounded writes in pieces, each with a deadline: a server that stopped reading is
// found soon, and one that lets a large message through slowly is not taken for it.
type bounded struct{ conn net.Conn }

const writePiece = 64 << 10

func (w bounded) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		if err = w.conn.SetWriteDeadline(time.Now().Add(writeBound)); err == nil {
			var wrote int
			wrote, err = w.conn.Write(b[n:min(len(b), n+writePiece)])
			n += wrote
		}
	}
	return n, err
}

// inboxID is the subscription of the answers; the others follow.
const inboxID = 1

// hello is what the server is told, and info what it tells.
type hello struct {
	Verbose      bool   `json:"verbose"`
	Pedantic     bool   `json:"pedantic"`
	User         string `json:"user"`
	Pass         string `json:"pass"`
	Name         string `json:"name"`
	Lang         string `json:"lang"`
	Version      string `json:"version"`
	Protocol     int    `json:"protocol"`
	Echo         bool   `json:"echo"`
	Headers      bool   `json:"headers"`
	NoResponders bool   `json:"no_responders"`
}

type info struct {
	MaxPayload int `json:"max_payload"`
}

// connect makes a connection, with its subscriptions in place.
func (c *Conn) connect() (*session, error) {
	conn, err := socket.Dial(c.options.Socket, dialBound)
	if err != nil {
		return nil, fmt.Errorf("connect to the bus: %w", err)
	}
	s := &session{
		conn: conn, in: newReader(conn), out: bufio.NewWriterSize(bounded{conn}, outBuffer),
		done: make(chan struct{}), asked: make(map[string]chan op),
	}
	if err := c.greet(s); err != nil {
		s.end()
		return nil, fmt.Errorf("connect to the bus: %w", err)
	}
	return s, nil
}

func (c *Conn) greet(s *session) error {
	// Close reaches an attempt under way as well.
	defer context.AfterFunc(c.ctx, s.end)()
	if err := s.conn.SetDeadline(time.Now().Add(dialBound)); err != nil {
		return err
	}
	o, err := s.in.next()
	if err != nil {
		return err
	}
	if o.kind != opInfo {
		return fmt.Errorf("the server begins with %v", o.kind)
	}
	if err := s.learn(o); err != nil {
		return err
	}
	body, err := json.Marshal(hello{
		User: c.options.User, Pass: c.options.Token, Name: c.options.Name,
		Lang: "hayward", Version: "1", Protocol: 1, Echo: true, Headers: true, NoResponders: true,
	})
	if err != nil {
		return err
	}
	b := fmt.Appendf(nil, "CONNECT %s\r\nSUB %s.* %d\r\n", body, c.inbox, inboxID)
	for i, sub := range c.subs {
		b = fmt.Appendf(b, "SUB %s %d\r\n", sub.Subject, inboxID+1+i)
	}
	if _, err := s.conn.Write(append(b, "PING\r\n"...)); err != nil {
		return err
	}
	for {
		switch o, err := s.in.next(); {
		case err != nil:
			return err
		case o.kind == opErr:
			return fmt.Errorf("the server refuses: %s", o.data)
		case o.kind == opPong:
			return s.conn.SetDeadline(time.Time{})
		case o.kind == opMsg:
			s.early = append(s.early, o)
		default:
			if err := c.take(s, o); err != nil {
				return err
			}
		}
	}
}

func (s *session) learn(o op) error {
	var i info
	if err := json.Unmarshal(o.data, &i); err != nil {
		return fmt.Errorf("the server's INFO: %w", err)
	}
	if i.MaxPayload > 0 {
		s.sending.Lock()
		s.maxPayload = i.MaxPayload
		s.sending.Unlock()
	}
	return nil
}

// read takes what comes until the connection ends.
func (s *session) read(c *Conn) {
	defer s.end()
	for {
		o, err := s.next()
		if err != nil {
			return // the next connection is the answer
		}
		if c.take(s, o) != nil {
			return
		}
	}
}

func (s *session) next() (op, error) {
	if len(s.early) == 0 {
		return s.in.next()
	}
	o := s.early[0]
	s.early = s.early[1:]
	return o, nil
}

// take acts on what came. An error ends the connection.
func (c *Conn) take(s *session, o op) error {
	switch o.kind {
	case opMsg:
		switch i := o.sid - inboxID - 1; {
		case o.sid == inboxID:
			s.answer(o)
		case i >= 0 && i < len(c.subs):
			c.subs[i].Handle(&Msg{Data: o.data, Subject: o.subject, Reply: o.reply, conn: c})
		}
	case opPing:
		return s.write("PONG\r\n")
	case opPong:
		s.pong()
	case opInfo:
		return s.learn(o)
	case opOK, opErr:
		// After an error that is the end the server closes; the others, a subject
		// without permission for one, concern what was sent.
	}
	return nil
}

func (s *session) end() {
	s.ended.Do(func() {
		close(s.done)
		s.conn.Close()
	})
}

func (s *session) publish(subject, reply string, data []byte, now bool) error {
	if err := checkSubject(subject); err != nil {
		return err
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.maxPayload > 0 && len(data) > s.maxPayload {
		return fmt.Errorf("%d bytes are more than the server's %d", len(data), s.maxPayload)
	}
	head := make([]byte, 0, 128)
	head = append(append(head, "PUB "...), subject...)
	if reply != "" {
		head = append(append(head, ' '), reply...)
	}
	head = append(strconv.AppendInt(append(head, ' '), int64(len(data)), 10), "\r\n"...)
	return s.send(now, head, data, []byte("\r\n"))
}

// ping asks the server for a pong, which closes the channel.
func (s *session) ping() (<-chan struct{}, error) {
	s.sending.Lock()
	defer s.sending.Unlock()
	pong := make(chan struct{})
	s.mu.Lock()
	s.pongs = append(s.pongs, pong)
	s.mu.Unlock()
	return pong, s.send(true, []byte("PING\r\n"))
}

func (s *session) pong() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pongs) > 0 {
		close(s.pongs[0])
		s.pongs = s.pongs[1:]
	}
}

func (s *session) unanswered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pongs)
}

func (s *session) write(line string) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.send(true, []byte(line))
}

// send is called with sending held. A write that fails, or takes too long, has
// perhaps left half a message: the connection ends.
func (s *session) send(now bool, parts ...[]byte) error {
	var err error
	for _, p := range parts {
		if err == nil {
			_, err = s.out.Write(p)
		}
	}
	if err == nil && now {
		err = s.out.Flush()
	}
	if err != nil {
		s.end()
		return errors.Join(ErrAway, err)
	}
	return nil
}

// expect returns where the answer on a subject arrives.
func (s *session) expect(reply string) <-chan op {
	ch := make(chan op, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[reply] = ch
	return ch
}

func (s *session) forget(reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, reply)
}

// answer hands the first answer over; what comes later is nobody's.
func (s *session) answer(o op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, wanted := s.asked[o.subject]; wanted {
		delete(s.asked, o.subject)
		ch <- o
	}
}
