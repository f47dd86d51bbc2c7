package child_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// testBus is a NATS server behind a unix socket in a directory that stays.
type testBus struct {
	dir    string
	server *server.Server
	conn   *nats.Conn

	mu     sync.Mutex
	tokens map[string]string
	bridge *bridge
}

// Check lets in the test itself and children with their tokens.
func (b *testBus) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	b.mu.Lock()
	defer b.mu.Unlock()
	return o.Username == "test" || (o.Password != "" && b.tokens[o.Username] == o.Password)
}

func startBus(t *testing.T) *testBus {
	t.Helper()
	b := &testBus{dir: testkit.Dir(t), tokens: map[string]string{}}
	s, err := server.NewServer(&server.Options{
		DontListen: true, NoSigs: true, NoLog: true, MaxPayload: events.MaxPayload, CustomClientAuthentication: b,
	})
	require.NoError(t, err)
	b.server = s
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(testkit.Patience))
	b.conn, err = nats.Connect("", nats.InProcessServer(s), nats.UserInfo("test", "test"))
	require.NoError(t, err)
	t.Cleanup(b.conn.Close)
	b.up(t)
	t.Cleanup(func() { b.down(t) })
	return b
}

func (b *testBus) grant(id, token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens[id] = token
}

// up opens the socket, down closes it and every connection.
func (b *testBus) up(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(b.dir, "bus.sock"))
	require.NoError(t, err)
	b.bridge = &bridge{listener: l, server: b.server, open: map[net.Conn]bool{}}
	b.bridge.wg.Go(b.bridge.serve)
}

func (b *testBus) down(t *testing.T) {
	t.Helper()
	if b.bridge != nil {
		b.bridge.close()
		b.bridge = nil
	}
}

type bridge struct {
	listener net.Listener
	server   *server.Server
	wg       sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func (b *bridge) serve() {
	for {
		outer, err := b.listener.Accept()
		if err != nil {
			return
		}
		inner, err := b.server.InProcessConn()
		if err != nil {
			outer.Close()
			continue
		}
		b.mu.Lock()
		b.open[outer] = true
		closed := b.closed
		b.mu.Unlock()
		if closed {
			outer.Close()
		}
		b.wg.Go(func() { b.copy(inner, outer) })
		b.wg.Go(func() { b.copy(outer, inner) })
	}
}

func (b *bridge) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

func (b *bridge) close() {
	b.listener.Close()
	b.mu.Lock()
	b.closed = true
	for c := range b.open {
		c.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
}

// reports subscribes to one report of a child.
func (b *testBus) reports(t *testing.T, id string, r events.ChildReport) chan *nats.Msg {
	t.Helper()
	ch := make(chan *nats.Msg, 100_000)
	sub, err := b.conn.ChanSubscribe(events.ChildSubject(id, r), ch)
	require.NoError(t, err)
	require.NoError(t, b.conn.Flush())
	t.Cleanup(func() {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			t.Errorf("unsubscribe: %v", err)
		}
	})
	return ch
}

func (b *testBus) items(t *testing.T, id string) chan *nats.Msg {
	return b.reports(t, id, events.ChildItem)
}

// next decodes the next message of a channel.
func next[T any](t *testing.T, ch chan *nats.Msg) T {
	t.Helper()
	var v T
	select {
	case m := <-ch:
		require.NoError(t, events.DecodeRecord(m.Data, &v))
	case <-time.After(testkit.Patience):
		t.Fatalf("no %T came", v)
	}
	return v
}

// await waits for a heartbeat that satisfies ok.
func (b *testBus) await(t *testing.T, id string, ok func(events.Heartbeat) bool) events.Heartbeat {
	t.Helper()
	ch := b.reports(t, id, events.ChildHeartbeat)
	for {
		if h := next[events.Heartbeat](t, ch); ok(h) {
			return h
		}
	}
}

// send sends a control message until it is answered: the child may not be there
// yet, and one that goes to a connection just cut is lost. Repeats change nothing.
func (b *testBus) send(t *testing.T, id string, c events.Control) events.ControlReply {
	t.Helper()
	body, err := events.Marshal(c)
	require.NoError(t, err)
	for end := time.Now().Add(testkit.Patience); ; {
		m, err := b.conn.Request(events.ControlSubject(id), body, 2*time.Second)
		if time.Now().Before(end) {
			switch {
			case errors.Is(err, nats.ErrNoResponders):
				time.Sleep(time.Millisecond)
				continue
			case errors.Is(err, nats.ErrTimeout):
				continue
			}
		}
		require.NoError(t, err)
		var r events.ControlReply
		require.NoError(t, events.DecodeRecord(m.Data, &r))
		return r
	}
}

// requireCoverage checks that the items that came are each stream from 0 to its
// size, without gap or overlap, and small.
func requireCoverage(t *testing.T, ch chan *nats.Msg, sizes map[string]int64) (last events.Item) {
	t.Helper()
	at := map[string]int64{}
	var seq uint64
	for last.Kind != events.ItemExit {
		item := next[events.Item](t, ch)
		require.Greater(t, item.Seq, seq)
		seq, last = item.Seq, item
		require.LessOrEqual(t, len(item.Text), events.MaxItemText)
		if item.Kind != events.ItemOutput {
			continue
		}
		require.Equal(t, at[item.Stream], item.Offset, item.Stream)
		require.Positive(t, item.Bytes)
		require.Equal(t, item.TextOmitted, item.Text == "")
		at[item.Stream] += item.Bytes
	}
	require.Equal(t, sizes, at)
	return last
}

// decodeText returns the bytes that an item stands for.
func decodeText(t *testing.T, item events.Item) string {
	t.Helper()
	if item.Encoding == "" {
		return item.Text
	}
	b, err := base64.StdEncoding.DecodeString(item.Text)
	require.NoError(t, err)
	return string(b)
}
