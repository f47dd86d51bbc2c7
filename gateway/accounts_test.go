package gateway

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func tokens(n int64) events.Usage { return events.Usage{OutputTokens: n} }

// Each call is in each sum once, whoever makes it and whenever it ends.
func TestAccounts(t *testing.T) {
	a := newAccounts(true)
	open := func(id string, l Lineage, so events.Usage) { require.NoError(t, a.open(t.Context(), id, l, so)) }
	root := Lineage{Session: "s", Prompt: "p"}
	mid := Lineage{Above: []string{"root"}, Session: "s", Prompt: "p"}
	leaf := Lineage{Above: []string{"mid", "root"}, Session: "s", Prompt: "p"}
	open("leaf", leaf, tokens(1)) // of an earlier process
	open("leaf", leaf, tokens(1))
	open("mid", mid, tokens(0))
	require.True(t, a.count("leaf", tokens(10)))
	require.True(t, a.count("mid", tokens(100)))
	require.False(t, a.count("root", tokens(1)), "it is not entered")
	open("root", root, tokens(1000))
	open("other", Lineage{Session: "s", Prompt: "p"}, tokens(10_000))
	open("elsewhere", Lineage{Session: "t", Prompt: "p"}, tokens(100_000))

	own, tree, prompt := a.sums("leaf")
	require.EqualValues(t, 11, own.Total())
	require.EqualValues(t, 1111, tree.Total())
	require.EqualValues(t, 11_111, prompt.Total())
	own, below := a.shown("mid")
	require.EqualValues(t, 100, own.Total())
	require.EqualValues(t, 111, below.Total())

	a.close("leaf")
	a.countLate(leaf, tokens(5))
	_, tree, prompt = a.sums("root")
	require.EqualValues(t, 1116, tree.Total())
	require.EqualValues(t, 11_116, prompt.Total())
	a.close("mid")
	a.close("root")
	require.Empty(t, a.lineage["root"])
	_, known := a.known("root")
	require.False(t, known)

	// What comes when all have ended makes no sums for them again.
	a.countLate(leaf, tokens(5))
	require.NotContains(t, a.tree, "mid")
	require.NotContains(t, a.tree, "root")
	_, _, prompt = a.sums("other")
	require.EqualValues(t, 11_121, prompt.Total())
}

// A request that is on its way in when its subagent has ended does not enter it again.
func TestEndedSubagentIsNotEntered(t *testing.T) {
	lineage := Lineage{Above: []string{"root"}}
	g := &Gateway{accounts: newAccounts(false), opts: Options{Lineage: func(string) (Lineage, error) { return lineage, nil }}}
	connection, cut := context.WithCancel(t.Context())
	require.NoError(t, g.enter(connection, "leaf"))
	require.True(t, g.accounts.count("leaf", tokens(7)))
	cut()
	g.accounts.close("leaf")
	require.ErrorIs(t, g.enter(connection, "leaf"), context.Canceled)
	require.NotContains(t, g.accounts.own, "leaf")
	_, below := g.accounts.shown("root")
	require.EqualValues(t, 7, below.Total())
}
