package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/paths"
)

// Options say where the coordinator is and how long to bear with it.
type Options struct {
	// Socket is the coordinator's clients' socket. Empty: that of the environment,
	// as the command line finds it, with its TokenFile.
	Socket string
	// TokenFile holds the clients' credential. It is read again at each
	// connection, because a coordinator may mint a new one when it starts.
	TokenFile string
	// Inside is the id of the subagent that this program runs in, if it asks in that
	// one's name; Socket is then that of [events.VariableBus]. What it spawns is the
	// subagent's own, and it sees nothing else. Without Socket it is found in the
	// environment.
	Inside string
	// Name names the connection in the coordinator's log.
	Name string
	// Environ is the environment of which the allow-listed part goes with each
	// spawn, see [BaseEnvironment]. Nil: [os.Environ].
	Environ []string
	// Revive, when set, is asked for a coordinator when there is none to connect
	// to, and when the connection was lost and did not come back within
	// ReviveAfter (default 1 s). One call at a time.
	Revive      func(context.Context) error
	ReviveAfter time.Duration
	// Patience bounds how long a call waits for a lost coordinator. Default 30 s.
	Patience time.Duration
	// ProbeEvery is how often a foreground spawn without an answer asks for its
	// subagent by id, in case the answer was lost. Default 10 s.
	ProbeEvery time.Duration
}

const (
	connectTimeout = 5 * time.Second
	// pingInterval finds a coordinator that holds the socket and answers nothing:
	// after three unanswered pings the connection counts as lost.
	pingInterval    = 10 * time.Second
	maxPingsOut     = 3
	minReconnect    = 20 * time.Millisecond
	maxReconnect    = 500 * time.Millisecond
	closeTimeout    = 5 * time.Second
	maxTokenBytes   = 4 << 10
	clientPrincipal = "client"
)

// Client is a connection to a coordinator.
type Client struct {
	nc      *nats.Conn
	opts    Options
	link    link
	answers answers
	closed  chan struct{}
	// reviving is held by the one call that runs Options.Revive.
	reviving chan struct{}

	mu sync.Mutex
	// refused has a channel for each request in flight, by subject, to be told
	// when the server denies publishing on it. Guarded by mu.
	refused map[string]map[chan error]struct{}
}

// Connect connects to the coordinator. It fails with code unreachable when
// nobody listens, with Options.Revive only after asking it again and again for
// Options.Patience: a coordinator can go between its start and the log-in. It
// fails with code forbidden when the credential is refused.
func Connect(ctx context.Context, o Options) (*Client, error) {
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	if o.ReviveAfter <= 0 {
		o.ReviveAfter = time.Second
	}
	if o.ProbeEvery <= 0 {
		o.ProbeEvery = 10 * time.Second
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Name == "" {
		o.Name = "hayward-client"
	}
	if o.Socket == "" && o.Inside == "" {
		o.Inside, o.Socket = Inside(os.Getenv)
	}
	if o.Inside != "" && o.Revive == nil {
		o.Revive = comesBack
	}
	if o.Socket == "" {
		if err := o.locate(); err != nil {
			return nil, err
		}
	}
	end := time.Now().Add(o.Patience)
	for {
		c, err := connect(ctx, o)
		if err == nil || o.Revive == nil || !events.HasCode(err, events.CodeUnreachable) || time.Now().After(end) {
			return c, err
		}
		if err := o.Revive(ctx); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// locate finds the coordinator of the environment.
func (o *Options) locate() error {
	p, err := paths.FromEnvironment(os.Getenv)
	if err != nil {
		return events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "find the coordinator: %w", err)
	}
	o.Socket = p.ClientSocket()
	if o.TokenFile == "" {
		o.TokenFile = p.ClientToken()
	}
	return nil
}

// connect tries once.
func connect(ctx context.Context, o Options) (*Client, error) {
	c := &Client{
		opts:     o,
		closed:   make(chan struct{}),
		reviving: make(chan struct{}, 1),
		refused:  make(map[string]map[chan error]struct{}),
	}
	c.link.init()
	dial := &dialer{socket: o.Socket, timeout: connectTimeout}
	if deadline, ok := ctx.Deadline(); ok {
		dial.firstDeadline = deadline
	}
	var tokenErr error
	nc, err := nats.Connect("nats://127.0.0.1:4222", // a literal: a name would be resolved even with a dialer of ours
		nats.Name(o.Name),
		nats.SetCustomDialer(dial),
		nats.Timeout(connectTimeout),
		nats.UserInfoHandler(func() (string, string) {
			if o.Inside != "" {
				return "", "" // the supervisor says who it is
			}
			token, err := readToken(o.TokenFile)
			if err != nil && tokenErr == nil {
				tokenErr = err
			}
			return clientPrincipal, token
		}),
		nats.CustomInboxPrefix(o.inbox()),
		nats.IgnoreAuthErrorAbort(),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectBufSize(-1), // nothing is sent late: each call decides what to repeat
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPingsOut),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { c.link.down() }),
		nats.ReconnectHandler(func(*nats.Conn) { c.link.restored() }),
		nats.ClosedHandler(func(*nats.Conn) { c.link.down(); close(c.closed) }),
		nats.ErrorHandler(c.asyncError),
	)
	if err != nil {
		return nil, connectError(o, err, dial.lastError(), tokenErr)
	}
	c.nc = nc
	return c, nil
}

func connectError(o Options, err, dialErr, tokenErr error) error {
	switch {
	case dialErr != nil:
		return events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "no coordinator listens on %s: %w", o.Socket, dialErr).
			WithRemedy("start one with: hayward serve")
	case tokenErr != nil:
		return events.Errorf(events.CodeForbidden, events.LayerPermission, "the coordinator on %s needs a credential: %w", o.Socket, tokenErr)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return events.Errorf(events.CodeForbidden, events.LayerPermission, "the coordinator on %s refused the credential in %s: %w", o.Socket, o.TokenFile, err)
	}
	return events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "connect to the coordinator on %s: %w", o.Socket, err)
}

// Listening reports whether somebody accepts connections on a socket now.
func Listening(socket string) bool {
	conn, err := dialUnix(socket, time.Now().Add(connectTimeout))
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said on it
	return true
}

// Close ends the connection and every call that uses it.
func (c *Client) Close() error {
	c.nc.Close()
	t := time.NewTimer(closeTimeout)
	defer t.Stop()
	select {
	case <-c.closed:
		return nil
	case <-t.C:
		return events.Errorf(events.CodeTimeout, events.LayerCoordinator, "close the connection to %s: not closed after %v", c.opts.Socket, closeTimeout)
	}
}

// Conn is the underlying NATS connection, for subjects that have no method here.
func (c *Client) Conn() *nats.Conn { return c.nc }

func reconnectDelay(attempts int) time.Duration {
	d := minReconnect << min(attempts, 10)
	return min(d, maxReconnect)
}

func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	defer f.Close()
	buf := make([]byte, maxTokenBytes)
	n, err := f.Read(buf)
	if err != nil {
		return "", fmt.Errorf("read the token in %s: %w", file, err)
	}
	return strings.TrimSpace(string(buf[:n])), nil
}

// asyncError tells the requests in flight when the server denied their subject.
// Other asynchronous errors show at the call they belong to.
func (c *Client) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for subject, waiting := range c.refused {
		if !strings.Contains(err.Error(), fmt.Sprintf("%q", subject)) {
			continue
		}
		denied := events.Errorf(events.CodeForbidden, events.LayerPermission, "publish on %s: %w", subject, err)
		for ch := range waiting {
			select {
			case ch <- denied:
			default: // it was told already
			}
		}
	}
}

func (c *Client) watchRefusal(subject string) (ch chan error, stop func()) {
	ch = make(chan error, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused[subject] == nil {
		c.refused[subject] = make(map[chan error]struct{})
	}
	c.refused[subject][ch] = struct{}{}
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.refused[subject], ch)
		if len(c.refused[subject]) == 0 {
			delete(c.refused, subject)
		}
	}
}

// link tells whether there is a connection now. Its channels change with it.
type link struct {
	mu   sync.Mutex
	lost chan struct{} // closed when the connection of now is lost
	up   chan struct{} // closed when there is a connection
}

func (l *link) init() {
	l.lost = make(chan struct{})
	l.up = make(chan struct{})
	close(l.up)
}

func (l *link) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.lost:
		return
	default:
	}
	close(l.lost)
	l.up = make(chan struct{})
}

func (l *link) restored() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.up:
		return
	default:
	}
	l.lost = make(chan struct{})
	close(l.up)
}

func (l *link) state() (lost, up <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.up
}

// connected reports whether there is a connection now.
func (c *Client) connected() bool {
	lost, _ := c.link.state()
	select {
	case <-lost:
		return false
	default:
		return true
	}
}

// dialer connects to a unix socket whatever address it is given. Only the
// connecting goroutine of the NATS client uses it, except lastError, which is
// called after that goroutine gave up.
type dialer struct {
	socket        string
	timeout       time.Duration
	firstDeadline time.Time
	dialed        bool
	err           error
}

func (d *dialer) Dial(_, _ string) (net.Conn, error) {
	deadline := time.Now().Add(d.timeout)
	if !d.dialed && !d.firstDeadline.IsZero() && d.firstDeadline.Before(deadline) {
		deadline = d.firstDeadline
	}
	d.dialed = true
	conn, err := dialUnix(d.socket, deadline)
	d.err = err
	if err != nil {
		return nil, err
	}
	return readerTells{conn}, nil
}

// readerTells leaves it to the reader to find that the other side has closed.
// The NATS client logs in with two writes and gives up when the second fails;
// what the server said before it closed is still to be read then.
type readerTells struct{ net.Conn }

// Write implements [net.Conn].
func (c readerTells) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return len(p), nil
	}
	return n, err
}

func (d *dialer) lastError() error { return d.err }

// SkipTLSHandshake implements the NATS client's dialer extension: a socket of
// the same machine and user carries no TLS.
func (d *dialer) SkipTLSHandshake() bool { return true }
