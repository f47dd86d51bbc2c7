package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

func TestRmAndPrune(t *testing.T) {
	b := newBench(t)
	b.ended(events.Spawn{Name: "unread", Command: []string{"echo"}})
	b.ended(events.Spawn{Name: "other", Command: []string{"echo"}, ParentSessionID: "S"})
	b.accept(events.Spawn{Name: "live", Command: []string{"gentle"}})

	r := b.run("rm", "unread", "live")
	require.Equal(t, 125, r.code)
	require.Contains(t, r.stderr, "was read by nobody (read it with hayward completions, or use --force)")
	require.Contains(t, r.stderr, "has not ended (hayward cancel ends it)")
	r = b.run("rm", "--force", "--dry-run", "unread")
	require.Zero(t, r.code)
	require.Contains(t, r.stdout, "would_remove")
	r = b.run("rm", "--force", "unread", "nobody")
	require.Equal(t, 4, r.code)
	require.Contains(t, r.stdout, "removed")
	require.Contains(t, r.stderr, `there is no subagent "nobody"`)
	require.Equal(t, 4, b.run("query", "unread").code)
	require.Equal(t, 4, b.run("rm", "--session", "default", "other").code)
	require.Equal(t, 2, b.run("rm").code)
	require.Equal(t, 2, b.run("rm", "a b").code)

	r = b.run("prune", "--json")
	require.Equal(t, `{"results":[],"removed":0,"unread":1}`+"\n", r.stdout)
	require.Zero(t, b.run("completions", "--session", "S", "--ack", "other").code)
	for range 2 * fakeservice.PrunePage {
		a := b.ended(events.Spawn{Command: []string{"echo"}})
		require.Zero(t, b.run("completions", "--ack", a.ID()).code)
	}
	r = b.run("prune", "--dry-run")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stderr, "and more than are listed")
	r = b.run("prune", "--older-than", "1h")
	require.Equal(t, "hayward prune: 0 removed\n", r.stderr)
	r = b.run("prune", "--older-than", "0s", "--session", "default")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "hayward prune: 4 removed\n", r.stderr, "every page")
	require.Contains(t, b.run("ps", "-a").stdout, "other")
	require.Equal(t, 2, b.run("prune", "--keep", "-1").code)
	require.Equal(t, 2, b.run("prune", "--older-than", "-1s").code)
	require.Equal(t, 2, b.run("prune", "5f3a").code)
}
