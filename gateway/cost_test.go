package gateway

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/pricing"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// priced has a price for claude-x and none for claude-y.
func priced(o *Options) {
	o.Prices = pricing.Table{"claude-x": {Rates: pricing.Rates{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}}
}

func usd(v float64) *float64 { return &v }

// counted waits until all of an agent is in the ledger.
func (w *world) counted(a agentRun) {
	a.told(w.t)
	ctx, cancel := context.WithTimeout(w.t.Context(), testkit.Patience)
	defer cancel()
	require.NoError(w.t, w.g.costs.wait(ctx, a.id))
}

// What a subagent cost is the sum over its calls. A model without a price is named,
// and its cost is not 0.
func TestCost(t *testing.T) {
	model := "claude-x-20251001"
	ledger := &memory{calls: map[string][]Call{}}
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); string(b) == "other" {
			model = "claude-y"
		}
		io.WriteString(w, `{"model":"`+model+`","usage":{"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":10000,"cache_creation_input_tokens":400}}`)
	}, priced, func(o *Options) { o.Ledger = ledger })
	a := w.run(step{Body: "x"}, step{Body: "x"})
	w.counted(a)
	const each = (3000 + 1500 + 3000 + 1500) / 1e6
	require.InDelta(t, 2*each, *w.g.Cost(a.id).USD, 1e-12)
	require.Empty(t, w.g.Cost(a.id).Unpriced)
	require.Len(t, ledger.calls[a.id], 2)
	for _, c := range ledger.calls[a.id] {
		require.InDelta(t, each, *c.CostUSD, 1e-12)
	}

	// The ledger alone says the same to a later process.
	w.g.costs.forget(a.id)
	require.Nil(t, w.g.CostSoFar(a.id), "nothing is read for it")
	require.InDelta(t, 2*each, *w.g.Cost(a.id).USD, 1e-12)
	require.InDelta(t, 2*each, *w.g.CostSoFar(a.id).USD, 1e-12)
	require.InDelta(t, 2*each, *w.g.Settle(t.Context(), a.id).USD, 1e-12)

	b := w.run(step{Body: "x"}, step{Body: "other"}, step{Body: "other"})
	w.counted(b)
	require.Equal(t, &events.Cost{USD: usd(each), Unpriced: []string{"claude-y"}}, w.g.Cost(b.id))
	require.Nil(t, ledger.calls[b.id][1].CostUSD)
	c := w.run(step{Body: "other"})
	c.told(t)
	require.Equal(t, &events.Cost{Unpriced: []string{"claude-y"}}, w.g.Settle(t.Context(), c.id))
	require.Nil(t, w.g.Cost("somebody"), "who made no call has no cost")
}

func TestBudgetOfMoney(t *testing.T) {
	asked := 0
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		io.WriteString(w, `{"model":"claude-x","usage":{"input_tokens":1000000,"output_tokens":0}}`)
	}, priced, func(o *Options) { o.MaxCostUSD = 5 })
	const body = `{"model":"claude-x"}`
	all := w.run(step{Body: body}, step{Body: body}, step{Body: body}).told(t)
	require.Equal(t, []int{200, 200, 400}, []int{all[0].Status, all[1].Status, all[2].Status})
	require.Contains(t, all[2].Body, "the budget of 5 USD is used up: 6")

	// What cannot be bounded is not let through.
	one := w.run(step{Body: `{"model":"claude-y"}`}).told(t)[0]
	require.Equal(t, 400, one.Status)
	require.Contains(t, one.Body, "the model claude-y has no price")
	require.Contains(t, one.Body, "gateway.prices")
	require.Equal(t, 2, asked)
}

// A call under way when its subagent has ended is ended and counted.
func TestSettleCountsWhatIsUnderWay(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, anthropicStream[:200])
		<-r.Context().Done()
	}, func(o *Options) {
		o.Prices = pricing.Builtin()
	})
	a := w.run(step{Body: "x"})
	a.said(t, "line event: message_start", 1)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cost := w.g.Settle(ctx, a.id)
	require.NoError(t, ctx.Err())
	require.NotNil(t, cost, "the answer had begun")
}

// A call that outlives its subagent's settlement leaves nothing behind.
func TestCostAfterSettle(t *testing.T) {
	g := &Gateway{costs: newCosts(), carrier: &carrier{}, log: zap.NewNop()}
	end := g.costs.begin(&exchange{child: "a", stop: func() {}})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.Nil(t, g.Settle(over, "a"))
	g.spend("a", Call{Usage: tokens(1), CostUSD: usd(1)})
	end()
	require.Empty(t, g.costs.of)
	require.Empty(t, g.costs.settled)
	require.Empty(t, g.costs.open)
}
