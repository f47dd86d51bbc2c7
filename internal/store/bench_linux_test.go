package store

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// BenchmarkPut measures the three writes of one subagent: accepted, running and
// ended.
func BenchmarkPut(b *testing.B) {
	dir, ctx := b.TempDir(), context.Background()
	server, err := bus.Start(ctx, bus.Options{StoreDir: filepath.Join(dir, "jetstream")})
	require.NoError(b, err)
	nc, err := server.Conn("store")
	require.NoError(b, err)
	root, err := rundir.Open(filepath.Join(dir, "subagents"))
	require.NoError(b, err)
	s, err := Open(ctx, nc, root, nil)
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, server.Shutdown(ctx))
		require.NoError(b, root.Close())
	})
	for b.Loop() {
		a := newSubagent()
		put := coordinator.Put{Record: a.record, Spec: &a.spec}
		for _, next := range []func() *subagent{a.active, a.completed, nil} {
			if put.Revision, err = s.Put(ctx, put); err != nil {
				b.Fatal(err)
			}
			if next != nil {
				put.Record, put.Spec = next().record, nil
			}
		}
	}
}
