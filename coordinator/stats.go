package coordinator

import "github.com/hayward-dev/hayward/events"

// stats counts what is.
func (s *State) stats() Stats {
	st := Stats{
		Queued: len(s.queued), Completed: len(s.all.items) - len(s.queued) - len(s.slots),
		Unsettled: len(s.unsettled), Waiting: len(s.waits),
		LateReports: s.late, LateAcks: s.lateAcks,
		StoreError: s.storeError, ShuttingDown: s.closing != nil || s.finished,
	}
	for e := range s.slots {
		if e.rec.StartedAt != nil {
			st.Active++
		} else {
			st.Pending++
		}
		if e.stop != nil && e.rec.Live() {
			st.Stopping++
		}
	}
	for _, g := range s.sessions {
		st.Unread += len(g.unread)
	}
	for _, box := range s.nested {
		st.Unread += len(box.unread)
	}
	return st
}

// lookup answers with what is durable of one subagent.
func (s *State) lookup(m Lookup) {
	e, err := s.resolve(scope{session: m.Session}, m.Ref)
	switch {
	case err != nil:
		s.refuse(m.Responder, err)
	case e == nil || e.durable == nil:
		s.refuse(m.Responder, unknown(m.Ref))
	default:
		s.reply(m.Responder, Found{Record: *e.durable})
	}
}

func unknown(ref string) *events.Error {
	return events.Errorf(events.CodeUnknownID, events.LayerGate, "there is no subagent %q", ref).WithDetail("ref", ref)
}
