package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func tokens(n int64) events.Usage { return events.Usage{OutputTokens: n} }

// Each call is in each sum once, whoever makes it and whenever it ends.
func TestAccounts(t *testing.T) {
	a := newAccounts(true)
	root := Lineage{Session: "s", Prompt: "p"}
	mid := Lineage{Above: []string{"root"}, Session: "s", Prompt: "p"}
	leaf := Lineage{Above: []string{"mid", "root"}, Session: "s", Prompt: "p"}
	a.open("leaf", leaf, tokens(1)) // of an earlier process
	a.open("leaf", leaf, tokens(1))
	a.open("mid", mid, tokens(0))
	require.True(t, a.count("leaf", tokens(10)))
	require.True(t, a.count("mid", tokens(100)))
	require.False(t, a.count("root", tokens(1)), "it is not entered")
	a.open("root", root, tokens(1000))
	a.open("other", Lineage{Session: "s", Prompt: "p"}, tokens(10_000))
	a.open("elsewhere", Lineage{Session: "t", Prompt: "p"}, tokens(100_000))

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
}
