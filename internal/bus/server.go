package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/deadlines"
)

// The defaults of [Options].
const (
	// DefaultSyncInterval is what a power cut may take.
	DefaultSyncInterval = time.Second
	// DefaultMaxStore bounds the store: records and feed. It is a bound for our own
	// use of the disk, not a reservation.
	DefaultMaxStore = 64 << 30
	// DefaultChildRate and DefaultChildBurst, in bytes per second and bytes, are
	// the token bucket through which each child's connection is read.
	DefaultChildRate  = 8 << 20
	DefaultChildBurst = 4 << 20

	// maxMemory bounds JetStream's memory: the state of clients' consumers.
	maxMemory = 64 << 20
	// authTimeout is how long a connection may take to say who it is. A loaded
	// machine starts many children at once.
	authTimeout = 5 * time.Second
	// readyTimeout bounds the wait for the server after its start.
	readyTimeout = 10 * time.Second
	// coreInbox begins the inboxes of our own connections, which nobody else may
	// subscribe to.
	coreInbox = "_INBOX_hayward_core"
	// inFlight bounds the unauthenticated connections of one socket.
	inFlight = 256
	// maxChildConns bounds the connections of one child: the one in use and those
	// that a reconnecting child has not seen the end of yet.
	maxChildConns = 4
)

// Options configure a [Server]. The zero value of each field is its default.
type Options struct {
	// StoreDir is the JetStream directory. Required.
	StoreDir string
	// SyncAlways syncs every write, SyncInterval all of them now and then.
	SyncAlways   bool
	SyncInterval time.Duration
	// TCP is a listener for clients, host:port, port 0 for any. Empty: none.
	TCP string
	// MaxStore bounds the store in bytes.
	MaxStore int64
	// Log takes the server's warnings and errors. Nil: they are dropped.
	Log *zap.Logger
	// ChildRate and ChildBurst are each child connection's token bucket.
	ChildRate, ChildBurst int
	// WriteDeadline is how long a client that does not read is waited for.
	WriteDeadline time.Duration
}

func (o *Options) normalize() error {
	if o.StoreDir == "" {
		return errors.New("no store directory")
	}
	setDefault(&o.SyncInterval, DefaultSyncInterval)
	setDefault(&o.MaxStore, DefaultMaxStore)
	setDefault(&o.ChildRate, DefaultChildRate)
	setDefault(&o.ChildBurst, DefaultChildBurst)
	setDefault(&o.WriteDeadline, deadlines.Default().BusWrite)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return nil
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Server is the embedded server with its sockets.
type Server struct {
	opts     Options
	log      *zap.Logger
	nats     *natsd.Server
	access   *access
	store    *storeHealth
	internal string // the password of our own connections

	// ctx ends when Shutdown begins; every goroutine in tasks ends with it.
	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup

	// mu guards what follows.
	mu      sync.Mutex
	sockets []*listener
	own     map[*nats.Conn]struct{}
	closing bool
	down    chan struct{} // closed when the shutdown is complete

	drops dropCounter
}

// Start starts the server. ctx bounds only the start.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if err := opts.normalize(); err != nil {
		return nil, fmt.Errorf("start bus: %w", err)
	}
	if err := os.MkdirAll(opts.StoreDir, 0o700); err != nil {
		return nil, fmt.Errorf("start bus: %w", err)
	}
	s := &Server{
		opts: opts, log: opts.Log, internal: rand.Text(),
		own: make(map[*nats.Conn]struct{}), down: make(chan struct{}),
		store: newStoreHealth(),
	}
	s.access = newAccess(s.internal)
	config := &natsd.Options{
		ServerName: "hayward", DontListen: true, NoSigs: true, NoLog: true,
		MaxPayload:    events.MaxPayload,
		WriteDeadline: opts.WriteDeadline, AuthTimeout: authTimeout.Seconds(),
		CustomClientAuthentication: s.access,
		JetStream:                  true, StoreDir: opts.StoreDir, DisableJetStreamBanner: true,
		JetStreamMaxStore: opts.MaxStore, JetStreamMaxMemory: maxMemory,
		SyncAlways: opts.SyncAlways, SyncInterval: opts.SyncInterval,
	}
	if opts.TCP != "" {
		if err := listenOn(config, opts.TCP); err != nil {
			return nil, fmt.Errorf("start bus: %w", err)
		}
	}
	ns, err := natsd.NewServer(config)
	if err != nil {
		return nil, fmt.Errorf("start bus: %w", err)
	}
	s.nats = ns
	s.ctx, s.stop = context.WithCancel(context.Background())
	log := &serverLog{log: s.log.Named("nats"), onWriteError: s.store.failed, expected: s.access.refusedLate}
	ns.SetLoggerV2(log, false, false, false)
	ns.Start()
	if err := s.ready(ctx, log); err != nil {
		return nil, errors.Join(fmt.Errorf("start bus: %w", err), s.Shutdown(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// ready waits until the server takes connections, or tells why it does not.
func (s *Server) ready(ctx context.Context, log *serverLog) error {
	if err := log.fatal(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.nats.ReadyForConnections(readyTimeout) {
		return errors.Join(errors.New("the server is not ready"), log.fatal())
	}
	return nil
}

func listenOn(config *natsd.Options, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("listen on %s: the port is not a number", address)
	}
	config.DontListen = false
	config.Host, config.Port = host, int(n)
	if n == 0 {
		config.Port = natsd.RANDOM_PORT
	}
	return nil
}

// TCPAddr is the address of the TCP listener, or "" when there is none.
func (s *Server) TCPAddr() string {
	if a := s.nats.Addr(); a != nil {
		return a.String()
	}
	return ""
}

// Conn opens an in-process connection with all rights. Shutdown closes it; the
// caller may close it earlier.
func (s *Server) Conn(name string) (*nats.Conn, error) {
	nc, err := nats.Connect("",
		nats.InProcessServer(s.nats),
		nats.Name(name), nats.Timeout(readyTimeout),
		nats.UserInfo(internalUser, s.internal),
		nats.CustomInboxPrefix(coreInbox+"."+rand.Text()),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(s.asyncError),
		nats.ClosedHandler(s.forget),
	)
	if err != nil {
		return nil, fmt.Errorf("connect %s to the bus: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		nc.Close()
		return nil, fmt.Errorf("connect %s to the bus: %w", name, nats.ErrConnectionClosed)
	}
	if !nc.IsClosed() {
		s.own[nc] = struct{}{}
	}
	return nc, nil
}

func (s *Server) forget(nc *nats.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.own, nc)
}

// asyncError is called by our own connections for what no call returns.
func (s *Server) asyncError(nc *nats.Conn, sub *nats.Subscription, err error) {
	fields := []zap.Field{zap.String("connection", nc.Opts.Name), zap.Error(err)}
	if sub != nil {
		fields = append(fields, zap.String("subject", sub.Subject))
		if errors.Is(err, nats.ErrSlowConsumer) {
			fields = append(fields, zap.Int64("dropped", s.drops.watch(sub)))
		}
	}
	s.log.Error("bus connection", fields...)
}

// Dropped counts the messages that our own subscriptions lost because they were
// read too slowly. It should be 0.
func (s *Server) Dropped() int64 { return s.drops.total() }

// Interested reports whether anybody listens on the subject.
func (s *Server) Interested(subject string) bool {
	return s.nats.GlobalAccount().SubscriptionInterest(subject)
}

// SetClientToken sets the one credential of clients. Connections that exist
// keep their rights.
func (s *Server) SetClientToken(token string) { s.access.setClient(token) }

// Grant lets child id connect with the token whose SHA-256 is given in hex. It
// replaces an earlier grant; connections that exist keep their rights.
func (s *Server) Grant(id, tokenHashHex string) {
	if err := s.access.grant(id, tokenHashHex); err != nil {
		// A hash that is none grants nothing.
		s.log.Error("grant child access to the bus", zap.String("id", id), zap.Error(err))
	}
}

// Revoke takes child id's grant back and ends its connections.
func (s *Server) Revoke(id string) {
	for _, b := range s.access.revoke(id) {
		// It may have ended by itself meanwhile; then the server does not know it.
		if err := s.nats.DisconnectClientByID(b.cid); err != nil {
			s.log.Debug("disconnect child", zap.String("id", id), zap.Error(err))
		}
		b.cut()
	}
}

// Drained returns a channel that is closed when no connection of child id is
// open and the server has processed all that came over them: at once when there
// is none. A connection that has not said yet who it is does not count.
func (s *Server) Drained(id string) <-chan struct{} { return s.access.drained(id) }

// Shutdown closes the sockets and every connection, stops the server and waits
// for all its goroutines. When ctx ends first its error is returned and the
// shutdown goes on; a later call waits for it again.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	s.mu.Unlock()
	if first {
		go func() {
			defer close(s.down)
			s.shutdown()
		}()
	}
	select {
	case <-s.down:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop bus: %w", ctx.Err())
	}
}

func (s *Server) shutdown() {
	s.stop()
	s.mu.Lock()
	sockets := s.sockets
	own := make([]*nats.Conn, 0, len(s.own))
	for nc := range s.own {
		own = append(own, nc)
	}
	s.mu.Unlock()
	for _, l := range sockets {
		if err := l.close(); err != nil {
			s.log.Warn("close socket", zap.String("socket", l.name), zap.Error(err))
		}
	}
	s.tasks.Wait()
	for _, nc := range own {
		nc.Close()
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}
