package mcp

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// An end counts as read when the next call arrives, whichever answer it was in.
func TestAnEndIsReadOnceTheClientGoesOn(t *testing.T) {
	b := newBench(t, "", nil)
	for tool, arguments := range map[string]any{
		"query_subagents":  map[string]any{"ids": []string{"query_subagents"}},
		"read_completions": nil,
	} {
		a := b.background(tool)
		a.Write("stdout", "done\n")
		a.Exit(0)
		r := b.call(tool, arguments)
		require.Equal(t, []any{a.ID() + ".1"}, r.ends, tool)
		require.Equal(t, "done\n", r.Subagents[0].Output)
		require.Contains(t, r.text, "done")
		require.Equal(t, tool, b.unread(), "the answer may be lost yet")
		require.Empty(t, b.call("read_completions", nil).Subagents, "it is not offered twice")
		require.Empty(t, b.unread(), tool)
	}
}

// What was in an answer that the client gave up comes back.
func TestALostAnswerComesBack(t *testing.T) {
	b := newBench(t, "2025-06-18", nil)
	a, other := b.background("one"), b.background("two")

	// The client gives up while the call waits: nothing was handed over.
	ctx, giveUp := context.WithCancel(b.ctx)
	waiting := make(chan error, 1)
	go func() {
		_, err := b.cs.CallTool(ctx, &sdk.CallToolParams{Name: "query_subagents", Arguments: map[string]any{"ids": []string{"one"}, "wait_ms": 20_000}})
		waiting <- err
	}()
	giveUp()
	require.ErrorIs(t, <-waiting, context.Canceled)
	a.Exit(0)
	r := b.call("read_completions", nil)
	require.Equal(t, a.ID(), r.Subagents[0].ID, "the subagent went on")

	// The next connection of the session gets what was in the last answer of this.
	other.Exit(3)
	r = b.call("query_subagents", map[string]any{"ids": []string{"two"}})
	require.Equal(t, 3, *r.Subagents[0].ExitCode)
	require.False(t, r.error, "a failed subagent is a result")
	require.NoError(t, b.leave())
	require.Equal(t, "two", b.unread())
	b.cs, b.leave = b.join("", nil)
	r = b.call("read_completions", nil)
	require.Len(t, r.Subagents, 1)
	require.Equal(t, other.ID()+".1", r.Subagents[0].DedupeID)
}

// A session that is this connection's alone has no next reader.
func TestTheLastAnswerOfAMintedSessionIsRead(t *testing.T) {
	b := newBench(t, "", func(o *Options) { o.Minted = true })
	b.background("one").Exit(0)
	require.Len(t, b.call("read_completions", nil).Subagents, 1)
	b.background("two").Exit(0)
	require.NoError(t, b.leave())
	require.Equal(t, "two", b.unread(), "what was never handed over is not read")
}

func TestReadCompletionsWaitsForAnEnd(t *testing.T) {
	b := newBench(t, "", nil)
	a := b.background("one")
	r := b.call("read_completions", nil)
	require.Empty(t, r.Subagents)
	require.Equal(t, []string{a.ID()}, r.StillRunning)
	require.Contains(t, r.NextStep, "query_subagents")
	done := make(chan reply, 1)
	go func() { done <- b.call("read_completions", map[string]any{"wait_ms": 20_000}) }()
	a.Exit(0)
	require.Equal(t, a.ID(), (<-done).Subagents[0].ID)
}

func TestReadCompletionsByPages(t *testing.T) {
	b := newBench(t, "", nil)
	for _, name := range []string{"one", "two", "three"} {
		b.background(name).Exit(0)
	}
	var got []string
	for more := true; more; {
		r := b.call("read_completions", map[string]any{"max": 2})
		for _, s := range r.Subagents {
			got = append(got, s.Name)
		}
		more = r.More
	}
	require.Equal(t, []string{"one", "two", "three"}, got)
}
