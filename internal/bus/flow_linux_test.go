package bus

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hayward-dev/hayward/events"
)

// rawChild speaks the protocol itself, so that nothing of a client library
// stands between a test and the socket.
func (f *fixture) rawChild(t *testing.T) (string, net.Conn) {
	t.Helper()
	id := events.NewID()
	f.Grant(id, HashToken("t"))
	conn, err := net.DialTimeout("unix", filepath.Join(f.children(), SocketName), deadline)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	require.NoError(t, conn.SetDeadline(time.Now().Add(deadline)))
	_, err = fmt.Fprintf(conn, "CONNECT {\"user\":%q,\"pass\":\"t\",\"verbose\":false}\r\nPING\r\n", id)
	require.NoError(t, err)
	var seen strings.Builder
	buf := make([]byte, 4<<10)
	for !strings.Contains(seen.String(), "PONG\r\n") {
		n, err := conn.Read(buf)
		require.NoError(t, err, seen.String())
		seen.Write(buf[:n])
	}
	return id, conn
}

// A child that floods is held to its bucket and blocks in its own write. Others
// are served meanwhile.
func TestFloodBlocksTheFlooder(t *testing.T) {
	const ratePerSecond, burst = 64 << 10, 128 << 10
	f := start(t, func(o *Options) { o.ChildRate, o.ChildBurst = ratePerSecond, burst })
	core := f.core(t)
	flooder, conn := f.rawChild(t)
	received := make(chan int, 1<<20)
	_, err := core.Subscribe(events.ChildSubject(flooder, events.ChildItem), func(m *nats.Msg) { received <- len(m.Data) })
	require.NoError(t, err)
	require.NoError(t, core.FlushTimeout(deadline))

	began := time.Now()
	blocked := make(chan int, 1)
	go func() {
		msg := []byte(fmt.Sprintf("PUB %s 16384\r\n%s\r\n", events.ChildSubject(flooder, events.ChildItem), strings.Repeat("x", 16<<10)))
		n := 0
		// No write in it can take the whole of 256 MiB: the one that stands when the
		// test ends fails then.
		for range (256 << 20) / len(msg) {
			k, err := conn.Write(msg)
			n += k
			if err != nil {
				break
			}
		}
		blocked <- n
	}()
	await(t, "the flood's first message", received)

	// Others are served while it lasts.
	id, p := f.child(t)
	_, err = p.Subscribe(events.ControlSubject(id), func(m *nats.Msg) {
		if err := m.Respond(nil); err != nil {
			p.errors <- err
		}
	})
	require.NoError(t, err)
	require.NoError(t, p.FlushTimeout(deadline))
	for range 200 {
		_, err := core.Request(events.ControlSubject(id), nil, deadline)
		require.NoError(t, err)
	}
	select {
	case n := <-blocked:
		t.Fatalf("the flooder wrote all its %d bytes", n)
	default:
	}

	f.Revoke(flooder)
	sent := await(t, "the flooder's end", blocked)
	await(t, "the bridge's end", f.Drained(flooder))
	allowed := burst + int(time.Since(began).Seconds()*ratePerSecond)
	require.NoError(t, core.FlushTimeout(deadline))
	total := 16 << 10 // the first
	for len(received) > 0 {
		total += <-received
	}
	require.LessOrEqual(t, total, allowed)
	require.Less(t, sent, 16<<20, "the socket's buffer is small")
	require.Zero(t, f.Dropped())
}

// What a child wrote before it closed has reached the subscribers once its
// connection is drained.
func TestDrainedMeansProcessed(t *testing.T) {
	f := start(t, nil)
	core := f.core(t)
	sub, err := core.SubscribeSync(events.ChildSubjectAll(events.ChildItem))
	require.NoError(t, err)
	require.NoError(t, core.FlushTimeout(deadline))
	for range 50 {
		id, conn := f.rawChild(t)
		drained := f.Drained(id)
		const count = 200
		line := fmt.Sprintf("PUB %s 1000\r\n%s\r\n", events.ChildSubject(id, events.ChildItem), strings.Repeat("x", 1000))
		_, err := io.WriteString(conn, strings.Repeat(line, count))
		require.NoError(t, err)
		require.NoError(t, conn.(*net.UnixConn).CloseWrite())
		await(t, "the drain", drained)
		require.NoError(t, core.FlushTimeout(deadline))
		n, _, err := sub.Pending()
		require.NoError(t, err)
		require.Equal(t, count, n)
		for range count {
			_, err := sub.NextMsg(deadline)
			require.NoError(t, err)
		}
		await(t, "an id without a connection", f.Drained(id))
	}
}

// A client that does not read is cut; the others are not held up by it.
func TestSlowReaderIsCut(t *testing.T) {
	f := start(t, func(o *Options) { o.WriteDeadline = 100 * time.Millisecond })
	id, conn := f.rawChild(t)
	_, err := fmt.Fprintf(conn, "SUB %s 1\r\nPING\r\n", events.ControlSubject(id))
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, len("PONG\r\n")))
	require.NoError(t, err)

	drained := f.Drained(id)
	core := f.core(t)
	chunk := make([]byte, 64<<10)
	for range 64 {
		require.NoError(t, core.Publish(events.ControlSubject(id), chunk))
	}
	require.NoError(t, core.FlushTimeout(deadline))
	await(t, "the cut", drained)
	_, p := f.child(t)
	require.NoError(t, p.FlushTimeout(deadline))
	require.Eventually(t, func() bool {
		for _, e := range f.logs.All() {
			if strings.Contains(e.Message, "Slow Consumer") {
				return true
			}
		}
		return false
	}, deadline, time.Millisecond, "the server says why")
}

// Messages that a subscription of ours lost are counted and logged.
func TestDroppedAreCounted(t *testing.T) {
	f := start(t, nil)
	core := f.core(t)
	release := make(chan struct{})
	entered := make(chan struct{}, 100)
	sub, err := core.Subscribe("test.slow", func(*nats.Msg) { entered <- struct{}{}; <-release })
	require.NoError(t, err)
	require.NoError(t, sub.SetPendingLimits(2, -1))
	other := f.core(t)
	require.NoError(t, core.FlushTimeout(deadline))
	require.NoError(t, other.Publish("test.slow", nil))
	await(t, "the first message", entered)
	for range 10 {
		require.NoError(t, other.Publish("test.slow", nil))
	}
	require.NoError(t, other.FlushTimeout(deadline))
	require.NoError(t, core.FlushTimeout(deadline))
	lost, err := sub.Dropped()
	require.NoError(t, err)
	require.Positive(t, lost)
	require.Eventually(t, func() bool { return f.Dropped() == int64(lost) }, deadline, time.Millisecond)
	close(release)
	require.NoError(t, sub.Unsubscribe())
	require.EqualValues(t, lost, f.Dropped(), "they stay counted when the subscription is gone")
	require.Eventually(t, func() bool { return f.logs.FilterMessage("bus connection").Len() > 0 }, deadline, time.Millisecond, "it is logged")
}

func TestShutdown(t *testing.T) {
	f := start(t, nil)
	id, p := f.child(t)
	nc := f.core(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.Shutdown(cancelled), context.Canceled)
	f.shutdown(t)
	f.shutdown(t)
	await(t, "the disconnect", p.disconnected)
	await(t, "the drain", f.Drained(id))
	require.True(t, nc.IsClosed())
	_, err := f.Conn("late")
	require.Error(t, err)
	require.ErrorIs(t, f.ServeClients(f.client), net.ErrClosed)
	f.Revoke(id)
}

// What a child may not do is refused each time and logged a few times.
func TestViolationsDoNotFillTheLog(t *testing.T) {
	f := start(t, nil)
	_, conn := f.rawChild(t)
	const tries = 2000
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write([]byte(strings.Repeat("PUB "+events.AckPrefix+".x 0\r\n\r\n", tries) + "PING\r\n"))
		sent <- err
	}()
	refused := 0
	for in := bufio.NewScanner(conn); in.Scan() && in.Text() != "PONG"; {
		if strings.HasPrefix(in.Text(), "-ERR 'Permissions Violation") {
			refused++
		}
	}
	require.NoError(t, <-sent)
	require.Equal(t, tries, refused)
	lines := f.logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, "Violation") }).Len()
	require.Positive(t, lines)
	require.LessOrEqual(t, lines, 30)
}
