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
	live := make(map[string]*events.Record)
	for i := range loaded {
		if r := &loaded[i].Record; r.Live() {
			live[r.ID] = r
		}
	}
	for i := range loaded {
		r := &loaded[i].Record
		l := gateway.Lineage{Session: r.ParentSessionID, Prompt: r.ParentPromptID}
		// What is nested ends before its spawner, so above what lives all lives.
		for id := r.ParentID; live[id] != nil; id = live[id].ParentID {
			l.Above = append(l.Above, id)
		}
		switch {
		case r.Live():
			d.gateway.Reopen(r.ID, l)
		case r.Usage != nil && (len(l.Above) > 0 || d.opts.MaxPromptTokens > 0):
			d.gateway.Restore(r.ID, l, *r.Usage)
		}
	}
}
