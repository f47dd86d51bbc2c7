package child_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	hbus "github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// Behind the real bridge, with its credentials, rights and token bucket: a flood
// is covered by items, control messages get through it, and the report arrives.
func TestFloodThroughTheBridge(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
	defer cancel()
	server, err := hbus.Start(ctx, hbus.Options{StoreDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		require.NoError(t, server.Shutdown(ctx))
	})
	dir := testkit.Dir(t)
	require.NoError(t, server.ServeChildren(dir))
	conn, err := server.Conn("test")
	require.NoError(t, err)
	bus := &testBus{dir: dir, conn: conn}

	const size = 40 << 20
	spec := shell(`read go; head -c 41943040 /dev/zero; read go; exit 2`)
	spec.Stdin, spec.ID, spec.Token = events.StdinStream, events.NewID(), "secret"
	server.Grant(spec.ID, hbus.HashToken(spec.Token))
	items, result := bus.items(t, spec.ID), bus.reports(t, spec.ID, events.ChildResult)
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, BusDir: dir})
	bus.send(t, spec.ID, events.Control{Kind: events.ControlStdin, Data: []byte("go\n")})

	ping, err := events.Marshal(events.Control{Kind: events.ControlPing})
	require.NoError(t, err)
	beats := bus.reports(t, spec.ID, events.ChildHeartbeat)
	var slowest time.Duration
	asked := 0
	for written := int64(0); written < size; asked++ {
		begin := time.Now()
		_, err := conn.Request(events.ControlSubject(spec.ID), ping, testkit.Patience)
		require.NoError(t, err)
		slowest = max(slowest, time.Since(begin))
		for len(beats) > 0 {
			written = next[events.Heartbeat](t, beats).Progress.StdoutBytes
		}
	}
	bus.send(t, spec.ID, events.Control{Kind: events.ControlStdin, Data: []byte("go\n"), Offset: 3})
	r := c.Report()
	requireCode(t, 2, r)
	require.EqualValues(t, size, r.StdoutBytes)
	requireCoverage(t, items, map[string]int64{"stdout": size})
	require.Equal(t, r, next[events.Report](t, result))
	t.Logf("%d control messages answered, the slowest in %v", asked, slowest)
	<-server.Drained(spec.ID)
}
