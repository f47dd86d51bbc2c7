package gateway

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// costs are what the calls of each subagent have cost.
type costs struct {
	mu sync.Mutex
	of map[string]events.Cost // guarded by mu
	// open are the exchanges under way; closed has the channels of those who wait
	// for their end. Guarded by mu.
	open   map[string]map[*exchange]struct{}
	closed map[string][]chan struct{}
	// settled are the subagents that are forgotten once nothing is under way. Guarded
	// by mu.
	settled map[string]struct{}
}

func newCosts() *costs {
	return &costs{
		of: make(map[string]events.Cost), open: make(map[string]map[*exchange]struct{}),
		closed: make(map[string][]chan struct{}), settled: make(map[string]struct{}),
	}
}

// price sets what a call costs. A call that used nothing costs nothing, whatever
// its model.
func (g *Gateway) price(c *Call) {
	if c.Usage == (events.Usage{}) {
		return
	}
	if cost, ok := g.opts.Prices.Cost(c.Model, c.Usage); ok {
		c.CostUSD = &cost
	}
}

// addCost adds a call to a cost.
func addCost(to events.Cost, c Call) events.Cost {
	switch {
	case c.Usage == (events.Usage{}):
	case c.CostUSD != nil:
		sum := *c.CostUSD
		if to.USD != nil {
			sum += *to.USD
		}
		to.USD = &sum
	default:
		model := c.Model
		if model == "" {
			model = unnamed
		}
		if !slices.Contains(to.Unpriced, model) && len(to.Unpriced) < maxUnpriced {
			to.Unpriced = append(slices.Clone(to.Unpriced), model)
			slices.Sort(to.Unpriced)
		}
	}
	return to
}

const (
	// unnamed stands for a model whose answer does not name it.
	unnamed = "unknown"
	// maxUnpriced bounds the models without a price that are named.
	maxUnpriced = 16
)

// Cost is what the calls of a subagent have cost so far, those that an earlier
// process counted included. It is nil where no call has used anything.
func (g *Gateway) Cost(id string) *events.Cost {
	c := g.spentCost(id)
	if c.USD == nil && len(c.Unpriced) == 0 {
		return nil
	}
	return &c
}

// Settle ends what a subagent that has ended still asks, waits until all of it is
// counted, and returns what it cost.
func (g *Gateway) Settle(ctx context.Context, id string) *events.Cost {
	g.carrier.cut(id)
	g.costs.stop(id)
	if err := g.costs.wait(ctx, id); err != nil {
		g.log.Warn("a model call of a subagent that has ended is still under way", zap.String("id", id), zap.Error(err))
	}
	cost := g.Cost(id)
	g.costs.forget(id)
	return cost
}

// CostSoFar is what this process has counted of a subagent's cost. It never reads
// the ledger.
func (g *Gateway) CostSoFar(id string) *events.Cost {
	g.costs.mu.Lock()
	defer g.costs.mu.Unlock()
	c, ok := g.costs.of[id]
	if !ok || c.USD == nil && len(c.Unpriced) == 0 {
		return nil
	}
	return &c
}

// spentCost is what a subagent's calls have cost.
func (g *Gateway) spentCost(id string) events.Cost {
	g.costs.mu.Lock()
	c, known := g.costs.of[id]
	g.costs.mu.Unlock()
	if known {
		return c
	}
	// The file is read outside of the lock. Whoever comes first with what is in it
	// counts: a call is added before it is in the file, so nothing is added twice.
	var earlier events.Cost
	if g.opts.Ledger != nil {
		calls, err := g.opts.Ledger.Calls(id)
		if err != nil {
			g.log.Warn("what was spent before cannot be read", zap.String("id", id), zap.Error(err))
		}
		for _, call := range calls {
			earlier = addCost(earlier, call)
		}
	}
	g.costs.mu.Lock()
	defer g.costs.mu.Unlock()
	if c, known := g.costs.of[id]; known {
		return c
	}
	g.costs.of[id] = earlier
	return earlier
}

// spend counts what a call cost. It comes before the call is in the ledger.
func (g *Gateway) spend(id string, c Call) {
	g.spentCost(id)
	g.costs.mu.Lock()
	defer g.costs.mu.Unlock()
	g.costs.of[id] = addCost(g.costs.of[id], c)
}

// overCost says why a subagent may not make a call under the budget of money, or
// is empty. A model without a price cannot be bounded, so it is not let through, and
// one that a request does not name neither.
func (g *Gateway) overCost(id, model string, asks bool) string {
	if asks && model == "" {
		return "the request names no model, so the budget of gateway.max_cost_usd cannot hold for it: name one"
	}
	if asks {
		if _, ok := g.opts.Prices.Find(model); !ok {
			return noPrice(model)
		}
	}
	budget, cost := g.opts.MaxCostUSD, g.spentCost(id)
	switch {
	case len(cost.Unpriced) > 0:
		return noPrice(cost.Unpriced[0])
	case cost.USD != nil && *cost.USD >= budget:
		return fmt.Sprintf("the budget of %s USD is used up: %s", dollars(budget), dollars(*cost.USD))
	}
	return ""
}

func noPrice(model string) string {
	return fmt.Sprintf("the model %s has no price, so the budget of gateway.max_cost_usd cannot hold for it: set gateway.prices", model)
}

// dollars is an amount with the digits that matter.
func dollars(usd float64) string { return strconv.FormatFloat(math.Round(usd*1e6)/1e6, 'f', -1, 64) }
