package main

import (
	"errors"
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
