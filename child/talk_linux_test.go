package child_test

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/testkit"
)

func TestReportsOnTheBus(t *testing.T) {
	bus := startBus(t)
	spec := shell(`echo out; echo err >&2; read line; exit 2`)
	spec.Stdin, spec.ID, spec.Run, spec.Token = events.StdinStream, events.NewID(), 3, "secret"
	bus.grant(spec.ID, spec.Token)
	started, items, result := bus.reports(t, spec.ID, events.ChildStarted), bus.items(t, spec.ID), bus.reports(t, spec.ID, events.ChildResult)
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, BusDir: bus.dir})

	s := next[events.Started](t, started)
	require.Equal(t, []any{spec.ID, 3}, []any{s.ID, s.Run})
	require.Positive(t, s.RunnerPID)
	h := bus.await(t, spec.ID, func(h events.Heartbeat) bool { return h.Progress.StdoutBytes == 4 && h.Progress.StderrBytes == 4 })
	require.Contains(t, []string{"out", "err"}, h.Progress.LastLine)
	require.True(t, bus.send(t, spec.ID, events.Control{Kind: events.ControlPing}).OK)
	require.False(t, bus.send(t, spec.ID, events.Control{Kind: "dance"}).OK)
	bus.send(t, spec.ID, events.Control{Kind: events.ControlStdin, EOF: true})

	r := c.Report()
	require.Equal(t, r, next[events.Report](t, result))
	last := requireTail(t, items)
	require.Equal(t, r.Exit, last.Exit)

	var kinds []string
	for _, item := range c.Transcript() {
		kinds = append(kinds, string(item.Kind))
		if item.Kind == events.ItemOutput {
			require.Empty(t, item.Text)
			require.EqualValues(t, 4, item.Bytes)
		}
	}
	require.Equal(t, "command output output exit", strings.Join(kinds, " "))
	require.Empty(t, started, "started is said once")
}

// requireTail reads items up to the exit.
func requireTail(t *testing.T, items chan *nats.Msg) events.Item {
	t.Helper()
	for {
		if item := next[events.Item](t, items); item.Kind == events.ItemExit {
			return item
		}
	}
}

func TestSmallOutputTravelsWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		bus := startBus(t)
		spec := shell(`read go; for i in 1 2 3; do printf 'zeile \303'; sleep 0.03; printf '\244\n'; done; printf '\377\376'; exit 0`)
		spec.Stdin, spec.ID, spec.Token = events.StdinStream, events.NewID(), "secret"
		bus.grant(spec.ID, spec.Token)
		items := bus.items(t, spec.ID)
		c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, BusDir: bus.dir, Sys: p.sys})
		bus.send(t, spec.ID, events.Control{Kind: events.ControlStdin, Data: []byte("go\n")})
		r := c.Report()
		requireCode(t, 0, r)
		var text strings.Builder
		for {
			item := next[events.Item](t, items)
			if item.Kind == events.ItemExit {
				break
			}
			if item.Kind == events.ItemOutput {
				require.EqualValues(t, r.StdoutBytes-item.Offset >= item.Bytes, true)
				text.WriteString(decodeText(t, item))
			}
		}
		require.Equal(t, strings.Repeat("zeile \u00e4\n", 3)+"\xff\xfe", text.String())
	})
}

func TestNoBus(t *testing.T) {
	// An empty directory is the default; here the token is wrong.
	bus := startBus(t)
	spec := shell(`for i in $(seq 20); do echo $i; sleep 0.01; done; exit 4`)
	spec.Token = "wrong"
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, BusDir: bus.dir})
	r := c.Report()
	requireCode(t, 4, r)
	require.Equal(t, "20", r.LastLine)
}

func TestBusGoesAndComesBack(t *testing.T) {
	bus := startBus(t)
	spec := shell(`echo one; read line; echo two; read line; exit 0`)
	spec.Stdin, spec.ID, spec.Token = events.StdinStream, events.NewID(), "secret"
	bus.grant(spec.ID, spec.Token)
	started := bus.reports(t, spec.ID, events.ChildStarted)
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, BusDir: bus.dir})
	l := live{c, bus}
	l.says(t, "one")
	next[events.Started](t, started)

	for range 3 {
		bus.down(t)
		bus.up(t)
		// A heartbeat from after the reconnect, and a control message answered.
		require.True(t, bus.send(t, spec.ID, events.Control{Kind: events.ControlPing}).OK)
	}
	reply := bus.send(t, spec.ID, events.Control{Kind: events.ControlStdin, Data: []byte("x\n")})
	require.Equal(t, events.ControlReply{OK: true, Offset: 2}, reply)
	l.says(t, "two")
	result := bus.reports(t, spec.ID, events.ChildResult)
	bus.send(t, spec.ID, events.Control{Kind: events.ControlStdin, Data: []byte("y\n"), Offset: 2})
	r := c.Report()
	requireCode(t, 0, r)
	require.Equal(t, r, next[events.Report](t, result))
	require.Empty(t, started)
}

func TestBusGoesForGood(t *testing.T) {
	bus := startBus(t)
	spec := shell(`echo up; sleep 0.2; echo more; exit 0`)
	spec.ID, spec.Token = events.NewID(), "secret"
	bus.grant(spec.ID, spec.Token)
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, BusDir: bus.dir})
	live{c, bus}.says(t, "up")
	bus.down(t)
	r := c.Report()
	requireCode(t, 0, r)
	require.Equal(t, "up\nmore\n", string(c.File("stdout.log")))
}

// A coordinator that hangs costs the run nothing but its news: neither one that
// never speaks nor one that stops reading in the middle of a flood.
func TestHungBus(t *testing.T) {
	for _, speaks := range []bool{false, true} {
		t.Run(fmt.Sprintf("speaks %v", speaks), func(t *testing.T) {
			dir := testkit.Dir(t)
			l, err := net.Listen("unix", filepath.Join(dir, "bus.sock"))
			require.NoError(t, err)
			hung := make(chan struct{})
			go func() {
				defer close(hung)
				conns := []net.Conn{}
				for {
					conn, err := l.Accept()
					if err != nil {
						for _, c := range conns {
							c.Close()
						}
						return
					}
					conns = append(conns, conn)
					if speaks {
						greet(conn)
					}
				}
			}()
			spec := shell(`sleep 0.1; head -c 30000000 /dev/zero; exit 3`)
			c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, BusDir: dir})
			r := c.Report()
			requireCode(t, 3, r)
			require.EqualValues(t, 30_000_000, r.StdoutBytes)
			require.NoError(t, l.Close())
			<-hung
		})
	}
}

// greet does what a server does until the client is connected, and no more.
func greet(conn net.Conn) {
	fmt.Fprintf(conn, "INFO {\"server_id\":\"X\",\"version\":\"2.11.0\",\"proto\":1,\"max_payload\":8388608,\"headers\":true}\r\n")
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if strings.HasPrefix(line, "PING") {
			fmt.Fprint(conn, "PONG\r\n")
			return
		}
	}
}

func TestStream(t *testing.T) {
	spec := shell(`cat`)
	spec.Stdin = events.StdinStream
	l := startLive(t, place{}, spec)
	send := func(offset int64, data string, eof bool) events.ControlReply {
		t.Helper()
		return l.bus.send(t, l.ID, events.Control{Kind: events.ControlStdin, Offset: offset, Data: []byte(data), EOF: eof})
	}
	require.Equal(t, events.ControlReply{OK: true}, send(0, "", false), "asking changes nothing")
	require.Equal(t, events.ControlReply{OK: true, Offset: 5}, send(0, "hello", false))
	require.Equal(t, events.ControlReply{OK: true, Offset: 5}, send(0, "hello", false), "a repeat is answered")
	require.Equal(t, events.ControlReply{OK: false, Offset: 5}, send(9, "gap", false))
	require.Equal(t, events.ControlReply{OK: false, Offset: 5}, send(-1, "x", false))
	require.Equal(t, events.ControlReply{OK: true, Offset: 9}, send(3, "lo you", false), "an overlap adds what is new")
	require.Equal(t, events.ControlReply{OK: true, Offset: 10, Closed: true}, send(9, "!", true))
	r := l.requireEnd(t)
	requireCode(t, 0, r)
	require.Equal(t, "hello you!", string(l.File("stdout.log")))
}

// A command that reads nothing blocks only its stdin.
func TestStreamBehindACommandThatDoesNotRead(t *testing.T) {
	spec := shell(`echo up; sleep 1000`)
	spec.Stdin = events.StdinStream
	l := startLive(t, place{}, spec)
	l.says(t, "up")
	chunk := make([]byte, events.MaxStdinChunk)
	full := l.bus.send(t, l.ID, events.Control{Kind: events.ControlStdin, Data: chunk})
	require.Equal(t, events.ControlReply{OK: true, Offset: events.MaxStdinChunk}, full)

	// These wait: one in the pipe's way, a few behind it, and the oldest of them
	// make room for newer ones.
	body, err := events.Marshal(events.Control{Kind: events.ControlStdin, Data: chunk, Offset: events.MaxStdinChunk})
	require.NoError(t, err)
	inbox := l.bus.conn.NewInbox()
	replies := make(chan *nats.Msg, 100)
	sub, err := l.bus.conn.ChanSubscribe(inbox, replies)
	require.NoError(t, err)
	const asked = 20
	for range asked {
		require.NoError(t, l.bus.conn.PublishRequest(events.ControlSubject(l.ID), inbox, body))
	}
	require.True(t, l.bus.send(t, l.ID, events.Control{Kind: events.ControlPing}).OK)
	l.stop(t, events.ReasonUser)
	for range asked {
		reply := next[events.ControlReply](t, replies)
		require.False(t, reply.OK)
	}
	require.NoError(t, sub.Unsubscribe())
	requireSignal(t, "SIGTERM", l.requireEnd(t))
}

func TestStreamToACommandThatClosedStdin(t *testing.T) {
	spec := shell(`exec <&-; echo up; while :; do sleep 0.01; done`)
	spec.Stdin = events.StdinStream
	l := startLive(t, place{}, spec)
	l.says(t, "up")
	reply := l.bus.send(t, l.ID, events.Control{Kind: events.ControlStdin, Data: []byte("anybody?")})
	require.Equal(t, events.ControlReply{Closed: true}, reply)
	l.stop(t, events.ReasonUser)
	l.requireEnd(t)
}

func TestStdinMessagesWithoutAStream(t *testing.T) {
	l := startLive(t, place{}, shell(`echo up; while :; do sleep 0.01; done`))
	l.says(t, "up")
	reply := l.bus.send(t, l.ID, events.Control{Kind: events.ControlStdin, Data: []byte("x")})
	require.Equal(t, events.ControlReply{Closed: true}, reply)
	l.stop(t, events.ReasonUser)
	l.requireEnd(t)
}
