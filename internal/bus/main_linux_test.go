package bus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hayward-dev/hayward/internal/testkit"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/dial"
)

// deadline bounds every wait in these tests; it is reached only when they fail.
const deadline = 30 * time.Second

func TestMain(m *testing.M) {
	if dialAsOtherUser() {
		return
	}
	testkit.LeakCheck(m)
}

// fixture is a server with both sockets.
type fixture struct {
	*Server
	dir    string // reachable by other users
	logs   *observer.ObservedLogs
	client string // the clients' socket
}

func start(t *testing.T, change func(*Options)) *fixture {
	t.Helper()
	// t.TempDir is below a directory that only its owner may enter.
	dir, err := os.MkdirTemp("", "hayward-bus-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o711))
	return startIn(t, dir, change)
}

func startIn(t *testing.T, dir string, change func(*Options)) *fixture {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	opts := Options{StoreDir: filepath.Join(dir, "store"), Log: zap.New(core)}
	if change != nil {
		change(&opts)
	}
	s, err := Start(t.Context(), opts)
	require.NoError(t, err)
	f := &fixture{Server: s, dir: dir, logs: logs, client: filepath.Join(dir, "run", "bus.sock")}
	t.Cleanup(func() { f.shutdown(t) })
	require.NoError(t, s.ServeChildren(f.children()))
	require.NoError(t, s.ServeClients(f.client))
	return f
}

func (f *fixture) shutdown(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	require.NoError(t, f.Shutdown(ctx))
}

func (f *fixture) children() string { return filepath.Join(f.dir, "bus") }

func (f *fixture) core(t *testing.T) *nats.Conn {
	t.Helper()
	nc, err := f.Conn("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// child grants a new id and connects as it.
func (f *fixture) child(t *testing.T, opts ...nats.Option) (string, *peer) {
	t.Helper()
	id := events.NewID()
	f.Grant(id, HashToken("token of "+id))
	p, err := f.dialChild(t, id, "token of "+id, opts...)
	require.NoError(t, err)
	return id, p
}

func (f *fixture) dialChild(t *testing.T, id, token string, opts ...nats.Option) (*peer, error) {
	t.Helper()
	return connect(t, filepath.Join(f.children(), SocketName), id, token, events.ChildInbox(id), opts...)
}

// inside connects as a program inside the child id.
func (f *fixture) inside(t *testing.T, id string) *peer {
	t.Helper()
	p, err := connect(t, filepath.Join(f.children(), SocketName), events.RPCUser(id), "token of "+id, events.RPCInbox(id))
	require.NoError(t, err)
	return p
}

func (f *fixture) dialClient(t *testing.T, token string, opts ...nats.Option) (*peer, error) {
	t.Helper()
	return connect(t, f.client, ClientUser, token, events.ClientInboxPrefix, opts...)
}

// peer is a connection whose asynchronous errors can be waited for.
type peer struct {
	*nats.Conn
	errors       chan error
	disconnected chan struct{}
	reconnected  chan struct{}
}

func connect(t *testing.T, socket, user, token, inbox string, more ...nats.Option) (*peer, error) {
	t.Helper()
	p := &peer{errors: make(chan error, 1000), disconnected: make(chan struct{}, 1000), reconnected: make(chan struct{}, 1000)}
	url, opts := dial.Options(socket, user, token, inbox)
	opts = append(opts,
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { p.errors <- err }),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { p.disconnected <- struct{}{} }),
		nats.ReconnectHandler(func(*nats.Conn) { p.reconnected <- struct{}{} }),
		nats.Timeout(deadline))
	nc, err := nats.Connect(url, append(opts, more...)...)
	if err != nil {
		return nil, err
	}
	p.Conn = nc
	t.Cleanup(nc.Close)
	return p, nil
}

// violations returns the server's refusals of what was sent before. Refusals
// come in order, so one that is certain ends the list.
func (p *peer) violations(t *testing.T) []error {
	t.Helper()
	const marker = "hayward.no-such-right"
	require.NoError(t, p.Publish(marker, nil))
	require.NoError(t, p.Flush())
	var list []error
	for {
		err := await(t, "the marker's refusal", p.errors)
		if strings.Contains(err.Error(), marker) {
			return list
		}
		list = append(list, err)
	}
}

func await[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(deadline):
		require.FailNow(t, fmt.Sprintf("waited %s for %s", deadline, what))
		panic("unreachable")
	}
}
