package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// measure is one thing that can be done again and again.
type measure func() (time.Duration, error)

// unitRatio is the unit of a figure that is divided by its floor.
const unitRatio = "ratio"

// Figure is one figure of a case: a ratio against its floor, from pairs that were
// taken in turn, or an amount.
type Figure struct {
	Case string `json:"case"`
	What string `json:"what"`
	// Floor is what a ratio is taken over, and for an amount what it is less.
	Floor string `json:"floor,omitempty"`
	// Unit is "ratio", or what an amount is counted in.
	Unit string `json:"unit"`
	// Samples is how many pairs, or amounts, it is the median of.
	Samples int `json:"samples"`
	// Median is between Low and High with 95 % confidence. Of fewer than six samples
	// these are the least and the greatest.
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// FigureMS and FloorMS are the medians of both sides of a ratio. They say how
	// fast this machine was in this hour, and are compared with nothing.
	FigureMS float64 `json:"figure_ms,omitzero"`
	FloorMS  float64 `json:"floor_ms,omitzero"`
	// Bound is what Median must not exceed, 0 for none.
	Bound float64 `json:"bound,omitzero"`
	// Missing says why there is no figure.
	Missing string `json:"missing,omitempty"`
}

// Held reports whether the figure is within its bound.
func (f Figure) Held() bool { return f.Bound == 0 || f.Missing != "" || f.Median <= f.Bound }

// Broken reports whether the figure is over its bound beyond doubt: with its whole
// interval.
func (f Figure) Broken() bool { return !f.Held() && f.Low > f.Bound }

// pairs takes figure and floor in turn, each first in every other pair.
func pairs(count int, figure, floor measure) (figures, floors []time.Duration, err error) {
	for n := range count {
		sides := []measure{figure, floor}
		if n%2 == 1 {
			sides[0], sides[1] = sides[1], sides[0]
		}
		var took [2]time.Duration
		for i, side := range sides {
			if took[i], err = side(); err != nil {
				return nil, nil, fmt.Errorf("pair %d: %w", n, err)
			}
		}
		if n%2 == 1 {
			took[0], took[1] = took[1], took[0]
		}
		figures, floors = append(figures, took[0]), append(floors, took[1])
	}
	return figures, floors, nil
}

// ratio sums the pairs up.
func ratio(figures, floors []time.Duration) Figure {
	ratios := make([]float64, len(figures))
	for i := range figures {
		ratios[i] = float64(figures[i]) / float64(floors[i])
	}
	f := amount(unitRatio, ratios)
	f.FigureMS, f.FloorMS = medianMS(figures), medianMS(floors)
	return f
}

// amount sums samples up.
func amount(unit string, samples []float64) Figure {
	sorted := slices.Sorted(slices.Values(samples))
	low, high := medianRanks(len(sorted))
	return Figure{Unit: unit, Samples: len(sorted), Median: sorted[len(sorted)/2], Low: sorted[low], High: sorted[high]}
}

// medianRanks are the places of the order statistics that enclose the median of
// what was sampled with 95 % confidence, by the normal approximation of the
// binomial distribution.
func medianRanks(n int) (low, high int) {
	half := 1.96 * math.Sqrt(float64(n)) / 2
	low = max(int(math.Floor(float64(n)/2-half)), 0)
	high = min(int(math.Ceil(float64(n)/2+half)), n-1)
	return low, high
}

func medianMS(d []time.Duration) float64 {
	sorted := slices.Sorted(slices.Values(d))
	return float64(sorted[len(sorted)/2].Microseconds()) / 1000
}
