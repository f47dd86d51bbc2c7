package pricing

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestCost(t *testing.T) {
	table := Table{
		"flat": flat(3, 15, 0.30, 3.75),
		"long": {Rates: Rates{Input: 1, Output: 10, CacheRead: 2, CacheWrite: 3}, Long: &Long{Over: 300, Rates: Rates{Input: 100, Output: 1000}}},
	}
	for _, c := range []struct {
		model string
		usage events.Usage
		cost  float64
		known bool
	}{
		{"flat", events.Usage{}, 0, true},
		{"flat", events.Usage{InputTokens: 1_000_000}, 3, true},
		{"flat", events.Usage{InputTokens: 100, OutputTokens: 10, CacheReadTokens: 1000, CacheCreationTokens: 20}, (300 + 150 + 300 + 75) / 1e6, true},
		{"flat-20251001", events.Usage{OutputTokens: 1_000_000}, 15, true},
		{"flat-2025-10-01", events.Usage{OutputTokens: 1_000_000}, 15, true},
		{"long", events.Usage{InputTokens: 100, OutputTokens: 1, CacheReadTokens: 100, CacheCreationTokens: 100}, (100 + 10 + 200 + 300) / 1e6, true},
		{"long", events.Usage{InputTokens: 101, OutputTokens: 1, CacheReadTokens: 100, CacheCreationTokens: 100}, (10100 + 1000) / 1e6, true},
		// A name is not guessed.
		{"flat-mini", events.Usage{InputTokens: 1}, 0, false},
		{"fla", events.Usage{InputTokens: 1}, 0, false},
		{"flat-20259901", events.Usage{InputTokens: 1}, 0, false},
		{"", events.Usage{InputTokens: 1}, 0, false},
	} {
		cost, known := table.Cost(c.model, c.usage)
		require.Equal(t, c.known, known, c.model)
		require.InDelta(t, c.cost, cost, 1e-12, "%s %+v", c.model, c.usage)
	}
}

// Built-in prices are what is published: caches are cheaper to read and dearer to
// write than input, and long requests are dearer than short ones.
func TestBuiltin(t *testing.T) {
	all := Builtin()
	require.NotEmpty(t, all)
	for _, name := range all.Models() {
		p := all[name]
		require.NoError(t, p.Check(), name)
		require.Less(t, p.CacheRead, p.Input, name)
		require.Greater(t, p.CacheWrite, p.Input, name)
		require.Greater(t, p.Output, p.Input, name)
		if p.Long != nil {
			require.NoError(t, p.Long.Check(), name)
			require.Greater(t, p.Long.Input, p.Input, name)
			require.Greater(t, p.Long.Output, p.Output, name)
		}
	}
	all["claude-opus-5"] = Price{}
	require.NotZero(t, Builtin()["claude-opus-5"].Input, "a copy")
}

func TestWith(t *testing.T) {
	all := Table{"a": flat(1, 1, 1, 1), "b": flat(2, 2, 2, 2)}.With(Table{"b": flat(3, 3, 3, 3), "c": flat(4, 4, 4, 4)})
	require.Equal(t, []string{"a", "b", "c"}, all.Models())
	require.EqualValues(t, 3, all["b"].Input)
	require.Equal(t, Table{"c": flat(4, 4, 4, 4)}, Table(nil).With(Table{"c": flat(4, 4, 4, 4)}))
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1), 2 * maxRate} {
		require.Error(t, Rates{Output: bad}.Check())
	}
}
