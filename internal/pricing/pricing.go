// Package pricing turns tokens into money.
//
// A [Table] has a [Price] for each model by its exact name; a name that ends in a
// date, as model APIs have them for snapshots, is also found without it. There is
// no guessing beyond that: a model without a price has no cost, which is something
// else than 0, and whoever adds costs up has to say that one is missing.
//
// Prices are in US dollars for a million tokens. What is charged beside tokens,
// discounts, and other tiers of service are not in them.
package pricing

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"github.com/hayward-dev/hayward/events"
)

// Rates are what a million tokens of each kind cost.
type Rates struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// Price is what a model costs.
type Price struct {
	Rates
	// Long has the rates of long requests, nil where they are the same.
	Long *Long `json:"long,omitempty"`
}

// Long are the rates of a request that reads more than Over tokens, caches
// included. They are for all of it.
type Long struct {
	Over int64 `json:"over"`
	Rates
}

const million = 1_000_000

// Cost is what one request costs, in dollars.
func (p Price) Cost(u events.Usage) float64 {
	r := p.Rates
	if read := u.InputTokens + u.CacheReadTokens + u.CacheCreationTokens; p.Long != nil && read > p.Long.Over {
		r = p.Long.Rates
	}
	return (float64(u.InputTokens)*r.Input + float64(u.OutputTokens)*r.Output +
		float64(u.CacheReadTokens)*r.CacheRead + float64(u.CacheCreationTokens)*r.CacheWrite) / million
}

// maxRate bounds a rate. It is far above every one that there is.
const maxRate = 1_000_000

// Check reports what is wrong with rates.
func (r Rates) Check() error {
	for name, rate := range map[string]float64{"input": r.Input, "output": r.Output, "cache_read": r.CacheRead, "cache_write": r.CacheWrite} {
		if math.IsNaN(rate) || rate < 0 || rate > maxRate {
			return fmt.Errorf("%s %v is not between 0 and %d", name, rate, maxRate)
		}
	}
	return nil
}

// Table has the prices of models by name.
type Table map[string]Price

// Builtin returns the prices that Hayward comes with.
func Builtin() Table { return maps.Clone(builtin) }

// With returns the table with those of another over its own.
func (t Table) With(over Table) Table {
	all := maps.Clone(t)
	if all == nil {
		all = Table{}
	}
	maps.Copy(all, over)
	return all
}

// Models lists the names in order.
func (t Table) Models() []string { return slices.Sorted(maps.Keys(t)) }

// snapshot is the end of a snapshot's name: -20251001, -2025-10-01.
var snapshot = regexp.MustCompile(`-20[0-9]{2}-?[01][0-9]-?[0-3][0-9]$`)

// Find returns the price of a model.
func (t Table) Find(model string) (Price, bool) {
	if p, ok := t[model]; ok {
		return p, true
	}
	p, ok := t[snapshot.ReplaceAllString(model, "")]
	return p, ok
}

// Cost is what one request to a model costs, and false if the model has no price.
func (t Table) Cost(model string, u events.Usage) (float64, bool) {
	p, ok := t.Find(model)
	if !ok {
		return 0, false
	}
	return p.Cost(u), true
}
