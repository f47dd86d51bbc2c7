package spawner

import (
	"context"

	"github.com/hayward-dev/hayward/events"
)

// price adds what the calls of an agent cost. Those under way when it ended are
// ended and counted first.
func (c *child) price(end *events.End) {
	if !c.runsAgent() || c.s.cfg.ModelCost == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.s.cfg.Deadlines.Drain)
	defer cancel()
	cost := c.s.cfg.ModelCost(ctx, c.spec.ID)
	if cost == nil {
		return
	}
	if end.Agent == nil { // it was killed before it could say anything
		end.Agent = &events.AgentResult{Agent: c.spec.Agent.Runner, StopReason: events.StopCut, UsageIncomplete: true}
		if c.stop != nil {
			end.Agent.StopReason = events.StopCancelled
		}
	}
	end.Agent.Cost = cost
}
