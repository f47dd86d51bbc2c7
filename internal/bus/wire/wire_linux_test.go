package wire_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/bus/wire"
	"github.com/hayward-dev/hayward/internal/testkit"
)

func TestMain(m *testing.M) { testkit.LeakCheck(m) }

// place is a real bus with one child's credential.
type place struct {
	server *bus.Server
	dir    string
	id     string
	coord  *nats.Conn
}

func newPlace(t *testing.T) place {
	t.Helper()
	server, err := bus.Start(t.Context(), bus.Options{StoreDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		require.NoError(t, server.Shutdown(ctx))
	})
	p := place{server: server, dir: testkit.Dir(t), id: events.NewID()}
	require.NoError(t, server.ServeChildren(p.dir))
	p.coord, err = server.Conn("test")
	require.NoError(t, err)
	server.Grant(p.id, bus.HashToken("secret"))
	return p
}

// child connects; up and down tell of each connection and each end.
func (p place) child(t *testing.T, subs ...wire.Subscription) (c *wire.Conn, up, down chan struct{}) {
	t.Helper()
	up, down = make(chan struct{}, 100), make(chan struct{}, 100)
	c = wire.Start(wire.Options{
		Socket: filepath.Join(p.dir, "bus.sock"), Name: "test", User: p.id, Token: "secret", Inbox: events.ChildInbox(p.id),
		Up: func() { up <- struct{}{} }, Down: func() { down <- struct{}{} },
	}, subs...)
	t.Cleanup(c.Close)
	return c, up, down
}

func await(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(testkit.Patience):
		t.Fatalf("%s did not happen", what)
	}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}

// What is published arrives whole and in order, from empty to the greatest
// message that the bus takes, buffered or not.
func TestPublish(t *testing.T) {
	p := newPlace(t)
	c, up, _ := p.child(t)
	sub, err := p.coord.SubscribeSync(events.ChildSubject(p.id, events.ChildItem))
	require.NoError(t, err)
	require.NoError(t, p.coord.Flush())
	await(t, up, "the connection")
	require.True(t, c.Connected())

	sizes := []int{0, 1, 4 << 10, 16<<10 - 1, 100_000, events.MaxPayload}
	for i, n := range sizes {
		how := c.Publish
		if i%2 == 1 {
			how = c.Buffer
		}
		require.NoError(t, how(events.ChildSubject(p.id, events.ChildItem), []byte(strings.Repeat("x", n))))
	}
	require.NoError(t, c.Flush(deadline(t)))
	for _, n := range sizes {
		m, err := sub.NextMsg(testkit.Patience)
		require.NoError(t, err)
		require.Len(t, m.Data, n)
	}
	require.ErrorContains(t, c.Publish(events.ChildSubject(p.id, events.ChildItem), make([]byte, events.MaxPayload+1)), "more than the server's")
	for _, subject := range []string{"", "a b", "a\r\nPUB b 0"} {
		require.ErrorContains(t, c.Publish(subject, nil), "is no subject")
	}
	require.True(t, c.Connected())
}

// Messages and requests are answered both ways; one that nobody answers fails at
// once, and one that is not answered when its context ends.
func TestRequests(t *testing.T) {
	p := newPlace(t)
	c, up, _ := p.child(t, wire.Subscription{
		Subject: events.ControlSubject(p.id),
		Handle: func(m *wire.Msg) {
			require.Equal(t, events.ControlSubject(p.id), m.Subject)
			require.NoError(t, m.Respond(append([]byte("got "), m.Data...)))
		},
	})
	await(t, up, "the connection")
	m, err := p.coord.Request(events.ControlSubject(p.id), []byte("this"), testkit.Patience)
	require.NoError(t, err)
	require.Equal(t, "got this", string(m.Data))

	_, err = c.Request(deadline(t), events.ModelSubject(p.id), []byte("anybody"))
	require.ErrorIs(t, err, wire.ErrNoResponders)

	sub, err := p.coord.Subscribe(events.ModelSubject(p.id), func(m *nats.Msg) {
		if string(m.Data) != "silence" {
			require.NoError(t, m.Respond(append([]byte("re "), m.Data...)))
		}
	})
	require.NoError(t, err)
	require.NoError(t, p.coord.Flush())
	for _, body := range []string{"", "one", strings.Repeat("y", 300_000)} {
		answer, err := c.Request(deadline(t), events.ModelSubject(p.id), []byte(body))
		require.NoError(t, err)
		require.Equal(t, "re "+body, string(answer))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = c.Request(ctx, events.ModelSubject(p.id), []byte("silence"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, sub.Unsubscribe())
}

// A credential that comes later is found, a connection that the server ends is
// made again, and what waited for it does not wait on.
func TestConnectsAgain(t *testing.T) {
	p := newPlace(t)
	p.server.Revoke(p.id)
	got := make(chan string, 10)
	c, up, down := p.child(t, wire.Subscription{Subject: events.ControlSubject(p.id), Handle: func(m *wire.Msg) { got <- string(m.Data) }})
	require.ErrorIs(t, c.Publish(events.ChildSubject(p.id, events.ChildItem), nil), wire.ErrAway)
	p.server.Grant(p.id, bus.HashToken("secret"))
	await(t, up, "the connection")

	silent, err := p.coord.SubscribeSync(events.ModelSubject(p.id))
	require.NoError(t, err)
	require.NoError(t, p.coord.Flush())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Request(context.Background(), events.ModelSubject(p.id), nil)
		failed <- err
	}()
	_, err = silent.NextMsg(testkit.Patience)
	require.NoError(t, err)
	p.server.Revoke(p.id)
	await(t, down, "the end")
	require.ErrorIs(t, <-failed, wire.ErrAway)
	require.ErrorIs(t, c.Flush(deadline(t)), wire.ErrAway)

	p.server.Grant(p.id, bus.HashToken("secret"))
	await(t, up, "the second connection")
	require.NoError(t, p.coord.Publish(events.ControlSubject(p.id), []byte("again")))
	require.Equal(t, "again", <-got)
}

// The server gives no more than a child's permissions.
func TestPermissions(t *testing.T) {
	p := newPlace(t)
	c, up, _ := p.child(t)
	await(t, up, "the connection")
	sub, err := p.coord.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, p.coord.Flush())
	other := events.NewID()
	require.NoError(t, c.Publish(events.ControlSubject(other), []byte("stop")))
	require.NoError(t, c.Publish(events.ChildSubject(p.id, events.ChildItem), []byte("mine")))
	require.NoError(t, c.Flush(deadline(t)))
	m, err := sub.NextMsg(testkit.Patience)
	require.NoError(t, err)
	require.Equal(t, events.ChildSubject(p.id, events.ChildItem), m.Subject)
}
