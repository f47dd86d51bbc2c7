package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// measure is one thing that can be done again and again.
type measure func() (time.Duration, error)

// Ratio is a figure against its floor, from pairs that were taken in turn.
type Ratio struct {
	Name  string `json:"name"`
	Floor string `json:"floor"`
	Pairs int    `json:"pairs"`
	// Median is the median of the ratios of the pairs; with 95 % confidence it is
	// between Low and High.
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// FigureMS and FloorMS are the medians of both sides. They say how fast this
	// machine was in this hour, and are compared with nothing.
	FigureMS float64 `json:"figure_ms"`
	FloorMS  float64 `json:"floor_ms"`
	// Bound is what Median must not exceed, 0 for none.
	Bound float64 `json:"bound,omitzero"`
}

// Held reports whether the figure is within its bound.
func (r Ratio) Held() bool { return r.Bound == 0 || r.Median <= r.Bound }

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
func ratio(figures, floors []time.Duration) Ratio {
	ratios := make([]float64, len(figures))
	for i := range figures {
		ratios[i] = float64(figures[i]) / float64(floors[i])
	}
	slices.Sort(ratios)
	low, high := medianRanks(len(ratios))
	return Ratio{
		Pairs: len(ratios), Median: ratios[len(ratios)/2], Low: ratios[low], High: ratios[high],
		FigureMS: medianMS(figures), FloorMS: medianMS(floors),
	}
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
