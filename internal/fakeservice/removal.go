package fakeservice

import (
	"slices"
	"time"

	"github.com/hayward-dev/hayward/events"
)

func (c *Coordinator) remove(r *Request, q events.RemoveRequest) {
	if err := q.Validate(); err != nil {
		r.Refuse(err)
		return
	}
	reply := events.RemoveReply{Results: []events.RemoveResult{}}
	c.mu.Lock()
	for _, id := range q.IDs {
		a := c.find(id, q.ParentSessionID)
		switch {
		case a == nil:
			reply.Results = append(reply.Results, events.RemoveResult{SubagentID: id, Outcome: events.RemoveNotFound})
		case !a.ended():
			reply.Results = append(reply.Results, a.removal(events.RemoveLive))
		case !a.read && !q.Force:
			reply.Results = append(reply.Results, a.removal(events.RemoveUnread))
		default:
			reply.Results = append(reply.Results, c.take(a, q.DryRun))
			reply.Removed++
		}
	}
	c.mu.Unlock()
	r.Reply(reply)
}

func (c *Coordinator) prune(r *Request, q events.PruneRequest) {
	if err := q.Validate(); err != nil {
		r.Refuse(err)
		return
	}
	reply := events.RemoveReply{Results: []events.RemoveResult{}}
	c.mu.Lock()
	for _, a := range slices.Clone(c.agents) {
		old := q.OlderThanMS == nil || a.ended() && time.Since(*a.snap.EndedAt).Milliseconds() >= *q.OlderThanMS
		switch {
		case !a.ended() || !old || q.ParentSessionID != "" && a.snap.ParentSessionID != q.ParentSessionID:
		case !a.read:
			reply.Unread++
		case reply.Removed == PrunePage:
			reply.More = true
		default:
			reply.Results = append(reply.Results, c.take(a, q.DryRun))
			reply.Removed++
		}
	}
	c.mu.Unlock()
	r.Reply(reply)
}

// PrunePage is how many subagents one prune removes here.
const PrunePage = 2

// take needs mu.
func (c *Coordinator) take(a *Agent, dry bool) events.RemoveResult {
	if dry {
		return a.removal(events.RemoveWouldRemove)
	}
	c.agents = slices.DeleteFunc(c.agents, func(b *Agent) bool { return a == b })
	return a.removal(events.RemoveRemoved)
}

// removal needs mu.
func (a *Agent) removal(outcome events.RemoveOutcome) events.RemoveResult {
	return events.RemoveResult{
		SubagentID: a.snap.SubagentID, Name: a.snap.Name, ParentSessionID: a.snap.ParentSessionID, Outcome: outcome, Status: a.snap.Status,
	}
}
