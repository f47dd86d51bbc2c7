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
// ended; with syncs at each write, and with syncs left to a timer.
func BenchmarkPut(b *testing.B) {
	b.Run("sync always", func(b *testing.B) { benchmarkPut(b, true) })
	b.Run("sync interval", func(b *testing.B) { benchmarkPut(b, false) })
}

func benchmarkPut(b *testing.B, always bool) {
	dir, ctx := b.TempDir(), context.Background()
	server, err := bus.Start(ctx, bus.Options{StoreDir: filepath.Join(dir, "jetstream"), SyncAlways: always})
	require.NoError(b, err)
	nc, err := server.Conn("store")
	require.NoError(b, err)
	root, err := rundir.Open(filepath.Join(dir, "subagents"))
	require.NoError(b, err)
	var options []Option
	if !always {
		options = append(options, WithDeferredSync())
	}
	s, err := Open(ctx, nc, root, nil, options...)
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, s.Sync())
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

// BenchmarkLoad measures a start with finished records, and what it is measured
// against: the bucket alone, read and decoded.
func BenchmarkLoad(b *testing.B) {
	const records = 5000
	dir, ctx := b.TempDir(), context.Background()
	server, err := bus.Start(ctx, bus.Options{StoreDir: filepath.Join(dir, "jetstream")})
	require.NoError(b, err)
	nc, err := server.Conn("store")
	require.NoError(b, err)
	root, err := rundir.Open(filepath.Join(dir, "subagents"))
	require.NoError(b, err)
	s, err := Open(ctx, nc, root, nil, WithDeferredSync())
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, server.Shutdown(ctx))
		require.NoError(b, root.Close())
	})
	for range records {
		a := newSubagent().active().completed()
		_, err := s.Put(ctx, coordinator.Put{Record: a.record, Spec: &a.spec})
		require.NoError(b, err)
	}
	b.Run("both witnesses", func(b *testing.B) {
		for b.Loop() {
			loaded, err := s.Load(ctx)
			require.NoError(b, err)
			require.Len(b, loaded.Records, records)
			require.Empty(b, loaded.Recovered)
		}
	})
	b.Run("bucket alone", func(b *testing.B) {
		for b.Loop() {
			all, _, err := s.entries(ctx)
			require.NoError(b, err)
			require.Len(b, all, records)
		}
	})
}
