package coordinator

import (
	"slices"

	"github.com/hayward-dev/hayward/events"
)

// Admission is fair between sessions: a session that has a queue and a free slot
// takes part in a round robin, one admission a round; within a session it is
// first in, first out. A session at its limit is not in the round, so it holds
// up nobody.

// offer enters g into the round robin if it can be admitted from.
func (s *State) offer(g *session) {
	if g.ready || len(g.queue) == 0 || len(g.slots) >= s.cfg.Limits.PerSession {
		return
	}
	g.ready = true
	s.ready = append(s.ready, g)
}

// admit gives free slots to queued subagents. While the store fails they keep
// their place: a child is not let go before its identity is durable.
func (s *State) admit() {
	if s.closing != nil || s.finished || s.storeError != nil {
		return
	}
	for len(s.ready) > 0 && len(s.slots) < s.cfg.Limits.Total {
		g := s.ready[0]
		s.ready[0] = nil
		s.ready = s.ready[1:]
		g.ready = false
		if len(g.queue) == 0 || len(g.slots) >= s.cfg.Limits.PerSession {
			continue
		}
		e := g.queue[0]
		g.queue[0] = nil
		g.queue = g.queue[1:]
		at := s.stamp()
		s.change(e).PendingAt = &at
		s.move(e, events.StatePending, events.StatusInitializing, CauseAdmitted)
		s.proceed(e)
	}
}

// unqueue takes e out of its session's queue.
func (s *State) unqueue(e *subagent) {
	g := e.session
	if i := slices.Index(g.queue, e); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
}
