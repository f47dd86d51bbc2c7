package coordinator

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// restore takes over what an earlier coordinator left. Queued subagents are
// queued again in their order; those with a process are adopted, and stopped if
// that was under way; what was being started without a process never ran, since
// a child is let go only after its process is durable, and is started again.
// What has no spec to go on with is failed. Callers of the earlier coordinator
// are gone, so nobody waits for any of them. What is too old or too much goes.
func (s *State) restore(m Restore) {
	stored := m.Stored
	// Records are large: sort pointers to them.
	order := make([]*Stored, len(stored))
	for i := range stored {
		order[i] = &stored[i]
	}
	slices.SortFunc(order, func(a, b *Stored) int {
		return cmp.Or(a.Record.CreatedAt.Compare(b.Record.CreatedAt), strings.Compare(a.Record.ID, b.Record.ID))
	})
	s.grow(len(stored))
	var live []*subagent
	for _, st := range order {
		if e := s.enter(st); e.rec.Live() {
			live = append(live, e)
		}
	}
	s.restoreGates(m.Gates)
	for _, e := range live {
		s.resume(e)
	}
	s.buryOrphans(live)
	s.retain()
}

// enter indexes one stored record.
func (s *State) enter(st *Stored) *subagent {
	s.ordinals++
	r := st.Record
	e := &subagent{id: r.ID, ord: s.ordinals, rec: &r, durable: &r}
	if !e.rec.Live() && e.rec.EndedAt == nil {
		// The indexes order ends by time; a record that was put together from parts
		// may lack it.
		at := e.rec.CreatedAt
		e.rec.EndedAt = &at
	}
	s.ends = max(s.ends, e.rec.EndOrder)
	if e.rec.Live() {
		e.spec = st.Spec
	}
	s.add(e)
	if e.rec.Live() {
		if e.rec.State == events.StateQueued && e.spec != nil {
			e.session.queue = append(e.session.queue, e)
		}
		s.place(e)
		return e
	}
	s.setLive(e, false)
	s.setUnread(e)
	return e
}

// resume goes on with a live subagent.
func (s *State) resume(e *subagent) {
	if !e.rec.Background {
		s.change(e).Background = true
	}
	switch {
	case e.rec.State == events.StateQueued && e.spec != nil:
	case e.rec.State == events.StatePending && e.rec.Process == nil && e.spec != nil:
		if e.rec.Reason != "" {
			s.stop(e, stopOrder{reason: e.rec.Reason})
			return
		}
		s.proceed(e)
	case e.rec.State == events.StateQueued, e.rec.Process == nil:
		s.end(e, events.End{
			Status: events.StatusFailed, Reason: events.ReasonCrash,
			Error: events.Errorf(events.CodeChildCrashed, events.LayerCoordinator,
				"subagent %s: the coordinator ended while it was %s, and nothing of it is left to go on with", e.id, e.rec.State),
		}, CauseLost)
	default:
		s.adopt(e)
	}
}

// adopt takes over a child that may still run. One that is pending has passed
// the start pipe, or it is gone: the pipe's other end died with the earlier
// coordinator.
func (s *State) adopt(e *subagent) {
	e.asked, e.released = true, true
	if e.spec == nil {
		e.spec = &events.Spec{
			Schema: events.RecordSchema, ID: e.id, Run: e.rec.Run, Depth: e.rec.Depth,
			ParentID: e.rec.ParentID, CreatedAt: e.rec.CreatedAt,
			Request: events.Spawn{ID: e.id, ParentSessionID: e.rec.ParentSessionID, ParentPromptID: e.rec.ParentPromptID},
		}
	}
	s.emit(AdoptChild{Spec: e.spec, Record: e.durable})
	if e.rec.Reason != "" {
		s.stop(e, stopOrder{reason: e.rec.Reason})
		e.stopResumed = true
		return
	}
	s.armRun(e)
}
