package gateway

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/pricing"
)

// Options say how a Gateway works. Bus and Secret are required.
type Options struct {
	// Bus is the coordinator's own connection.
	Bus *nats.Conn
	// Secret makes the agents' credentials. It outlives the process, so that agents
	// that go on without a coordinator keep theirs.
	Secret []byte
	// Upstreams are the model APIs that may be reached.
	Upstreams []Upstream
	// MaxTokens bounds what one subagent may use, MaxTreeTokens what the subagents of
	// one tree may use together, MaxPromptTokens those of one prompt; 0: no bound.
	MaxTokens, MaxTreeTokens, MaxPromptTokens int64
	// Lineage says where a subagent stands. Nil: each is alone.
	Lineage func(id string) (Lineage, error)
	// Patience bounds how long one request is tried. 0: 10 minutes.
	Patience time.Duration
	// Ledger keeps what was used. Nil: only memory does.
	Ledger Ledger
	// Getenv reads the coordinator's environment, for keys. Nil: there is none.
	Getenv func(string) string
	// Transport makes the requests. Nil: that of net/http, with its proxy settings.
	Transport http.RoundTripper
	Log       *zap.Logger
	// MaxCostUSD bounds what the calls of one subagent may cost; 0: no bound. Prices
	// say what they cost.
	MaxCostUSD float64
	Prices     pricing.Table

	// Bounds that tests make smaller: maxHeld, bodyBound, lingerBound.
	held               int64
	bodyWithin, linger time.Duration
}

// Ledger keeps the calls of each subagent.
type Ledger interface {
	// Append adds a call of the subagent id.
	Append(id string, c Call) error
	// Calls returns those of an earlier process.
	Calls(id string) ([]Call, error)
}

// Gateway serves the agents of all children. Close it.
type Gateway struct {
	opts    Options
	log     *zap.Logger
	carrier *carrier
	server  *http.Server
	client  *http.Client
	costs   *costs
	bodies  *bodies
	holds   map[string]*hold // by upstream; the map does not change
	sub     *nats.Subscription
	served  chan struct{}

	accounts *accounts
}

// Start serves until Close.
func Start(o Options) (*Gateway, error) {
	g := &Gateway{opts: o, log: o.Log, carrier: newCarrier(o.Bus), holds: make(map[string]*hold), served: make(chan struct{}), accounts: newAccounts(o.MaxPromptTokens > 0)}
	if g.log == nil {
		g.log = zap.NewNop()
	}
	if g.opts.Patience == 0 {
		g.opts.Patience = 10 * time.Minute
	}
	if g.opts.Getenv == nil {
		g.opts.Getenv = func(string) string { return "" }
	}
	g.opts.held = cmp.Or(o.held, maxHeld)
	g.opts.bodyWithin, g.opts.linger = cmp.Or(o.bodyWithin, bodyBound), cmp.Or(o.linger, lingerBound)
	g.costs, g.bodies = newCosts(), newBodies(g.opts.held)
	for _, u := range o.Upstreams {
		g.holds[u.Name] = &hold{}
	}
	transport := o.Transport
	if transport == nil {
		transport = newTransport()
	}
	g.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a key goes to no other place
	}}
	g.server = &http.Server{
		Handler:           http.HandlerFunc(g.handle),
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connOf{}, c.(*conn))
		},
		ErrorLog: zap.NewStdLog(g.log.Named("http")),
	}
	sub, err := o.Bus.Subscribe(events.ModelSubject("*"), g.carrier.take)
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	g.sub = sub
	go func() {
		defer close(g.served)
		if err := g.server.Serve(g.carrier); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			g.log.Error("the gateway's server ended", zap.Error(err))
		}
	}()
	return g, nil
}

// connOf is the key of the connection in a request's context.
type connOf struct{}

func newTransport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	t.ResponseHeaderTimeout = 10 * time.Minute
	return t
}

// Close ends every connection; agents are told that the coordinator is away.
func (g *Gateway) Close() error {
	err := g.sub.Unsubscribe()
	closed := g.server.Close() // the carrier too
	g.costs.stopAll()
	<-g.served
	g.client.CloseIdleConnections()
	return errors.Join(err, closed)
}

// Credential is what the agent of a subagent's run presents.
func (g *Gateway) Credential(id string, run int) string { return Credential(g.opts.Secret, id, run) }

// Credential derives the credential of a run from the gateway's secret, so that
// there is nothing to be kept for each.
func Credential(secret []byte, id string, run int) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "gateway %s %d", id, run)
	return fmt.Sprintf("hayward-%d-%s", run, hex.EncodeToString(mac.Sum(nil)))
}

// Forget drops what is known of a subagent that has ended, and returns what it
// used.
func (g *Gateway) Forget(id string) events.Usage {
	g.carrier.cut(id)
	g.costs.stop(id)
	used, known := g.accounts.known(id)
	if !known {
		used = g.recorded(id)
	}
	g.accounts.close(id)
	return used
}

// recorded is what the ledger has of a subagent.
func (g *Gateway) recorded(id string) (sum events.Usage) {
	if g.opts.Ledger == nil {
		return sum
	}
	calls, err := g.opts.Ledger.Calls(id)
	if err != nil {
		g.log.Warn("what was used before cannot be read", zap.String("id", id), zap.Error(err))
	}
	for _, c := range calls {
		sum = sum.Add(c.Usage)
	}
	return sum
}

// count adds a call.
func (g *Gateway) count(id string, c Call) {
	if !g.accounts.count(id, c.Usage) && g.opts.Lineage != nil {
		// Its subagent has ended meanwhile.
		if l, err := g.opts.Lineage(id); err == nil {
			g.accounts.countLate(l, c.Usage)
		}
	}
	if g.opts.Ledger == nil {
		return
	}
	if err := g.opts.Ledger.Append(id, c); err != nil {
		g.log.Warn("a call is counted in memory only", zap.String("id", id), zap.Error(err))
	}
}
