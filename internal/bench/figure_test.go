package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func constant(d time.Duration, order *[]time.Duration) measure {
	return func() (time.Duration, error) {
		*order = append(*order, d)
		return d, nil
	}
}

func TestPairsAlternate(t *testing.T) {
	var order []time.Duration
	figures, floors, err := pairs(4, constant(2, &order), constant(1, &order))
	require.NoError(t, err)
	require.Equal(t, []time.Duration{2, 1, 1, 2, 2, 1, 1, 2}, order)
	require.Equal(t, []time.Duration{2, 2, 2, 2}, figures)
	require.Equal(t, []time.Duration{1, 1, 1, 1}, floors)

	_, _, err = pairs(1, constant(1, &order), func() (time.Duration, error) { return 0, errors.New("broken") })
	require.ErrorContains(t, err, "pair 0: broken")
}

func TestRatio(t *testing.T) {
	var figures, floors []time.Duration
	for n := 1; n <= 101; n++ {
		figures, floors = append(figures, time.Duration(n)*time.Millisecond), append(floors, 10*time.Millisecond)
	}
	r := ratio(figures, floors)
	require.InDelta(t, 5.1, r.Median, 1e-9)
	// Ranks 41 to 61 of 101 enclose the median, counted from 1.
	require.InDelta(t, 4.1, r.Low, 1e-9)
	require.InDelta(t, 6.2, r.High, 1e-9)
	require.Equal(t, 51.0, r.FigureMS)
	require.Equal(t, 10.0, r.FloorMS)
	require.True(t, r.Held(), "without a bound")
	r.Bound = 5
	require.False(t, r.Held())

	one := ratio([]time.Duration{3}, []time.Duration{1})
	require.Equal(t, []float64{3, 3, 3}, []float64{one.Low, one.Median, one.High})
}

func TestVerdict(t *testing.T) {
	f := Figure{Case: "spawn", What: "a spawn", Unit: unitRatio, Median: 5.2, Low: 4.9, High: 5.5, Bound: 5}
	require.False(t, f.Held())
	require.False(t, f.Broken(), "its interval holds the bound")
	require.NoError(t, Result{Figures: []Figure{f}}.verdict())
	f.Low = 5.1
	require.True(t, f.Broken())
	require.EqualError(t, Result{Figures: []Figure{f}}.verdict(), "over their bounds:\n  spawn: a spawn: 5.20, bound 5.00")
	f.Missing = "parallel is not installed"
	require.NoError(t, Result{Figures: []Figure{f}}.verdict(), "what was not measured breaks nothing")
}

func TestParseBench(t *testing.T) {
	got := parseBench("goos: linux\nBenchmarkConfine/strict/denied=0-2   100  0 ns/op  1.25 added-ms\nBenchmarkOpen \t 5 \t 3.5 added-us \t 7 x/op\nPASS\n" +
		"BenchmarkConfine/strict/denied=0-2   100  0 ns/op  1.75 added-ms\n")
	require.Equal(t, []float64{1.25, 1.75}, got[metric{benchmark: "Confine/strict/denied=0", unit: "added-ms"}])
	require.Equal(t, []float64{3.5}, got[metric{benchmark: "Open", unit: "added-us"}])
	require.Len(t, got, 4)
}

func TestChoose(t *testing.T) {
	all, err := choose("")
	require.NoError(t, err)
	require.Len(t, all, len(cases))
	some, err := choose("query,spawn")
	require.NoError(t, err)
	require.Equal(t, []string{"spawn", "query"}, []string{some[0].name, some[1].name}, "in their own order")
	_, err = choose("spawn,swim")
	require.ErrorContains(t, err, `no case "swim"`)
}

// docs/performance.md says of every case what it measures.
func TestCasesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	for _, c := range cases {
		require.Contains(t, string(text), "| `"+c.name+"` |")
	}
}
