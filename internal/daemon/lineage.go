package daemon

import (
	"context"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/gateway"
)

// lineage finds out where a subagent stands, for the gateway's budgets.
func (d *daemon) lineage(id string) (gateway.Lineage, error) {
	ctx, cancel := context.WithTimeout(d.ctx, askTimeout)
	defer cancel()
	return lineageOf(id, func(id string) (events.Record, error) {
		r, err := d.coord.Lookup(ctx, "", id)
		if err != nil {
			return r, err
		}
		return r, nil
	})
}

// lineageOf walks up from a subagent.
func lineageOf(id string, find func(string) (events.Record, error)) (gateway.Lineage, error) {
	r, err := find(id)
	if err != nil {
		return gateway.Lineage{}, err
	}
	l := gateway.Lineage{Session: r.ParentSessionID, Prompt: r.ParentPromptID}
	for r.ParentID != "" {
		l.Above = append(l.Above, r.ParentID)
		if r, err = find(r.ParentID); err != nil {
			return gateway.Lineage{}, err
		}
	}
	return l, nil
}

// restoreUsage tells the gateway what was used before: by what lives, by what ended
// below something that lives, and where prompts have a budget by all of theirs.
func (d *daemon) restoreUsage(loaded []coordinator.Stored) {
	carryUsage(d.gateway, loaded, d.opts.MaxPromptTokens > 0)
}

// usageSums is the part of the gateway that takes what was used before.
type usageSums interface {
	Reopen(id string, l gateway.Lineage)
	Restore(id string, l gateway.Lineage, used events.Usage)
}

func carryUsage(to usageSums, loaded []coordinator.Stored, byPrompt bool) {
	known := make(map[string]*events.Record, len(loaded))
	for i := range loaded {
		known[loaded[i].Record.ID] = &loaded[i].Record
	}
	for i := range loaded {
		r := &loaded[i].Record
		l := gateway.Lineage{Session: r.ParentSessionID, Prompt: r.ParentPromptID}
		// What lives counts what is below it, whether or not what is between has ended.
		for p := known[r.ParentID]; p != nil; p = known[p.ParentID] {
			if p.Live() {
				l.Above = append(l.Above, p.ID)
			}
		}
		switch used := usedBelow(r); {
		case r.Live():
			to.Reopen(r.ID, l)
		case known[r.ParentID] != nil && !known[r.ParentID].Live():
			// It is in the sum of its spawner, as is what was removed by now.
		case used != nil && (len(l.Above) > 0 || byPrompt):
			to.Restore(r.ID, l, *used)
		}
	}
}

// usedBelow is what an ended subagent and all that ended below it used.
func usedBelow(r *events.Record) *events.Usage {
	if r.TreeUsage != nil {
		return r.TreeUsage
	}
	return r.Usage
}
