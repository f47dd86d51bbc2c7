package coordinator

import (
	"slices"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// query reads subagents, and waits for their ends if asked to. Ids that are
// unknown or foreign never block; a spawn whose first write is under way is
// waited for, since it is about to be known.
func (s *State) query(m Request, q events.Query) {
	sc := scopeOf(m.Caller, q.ParentSessionID)
	w := &queryWait{query: q, found: make([]*subagent, len(q.IDs))}
	var on []*subagent
	for i, ref := range q.IDs {
		e, err := s.resolve(sc, ref)
		if err != nil {
			s.refuse(m.Responder, err)
			return
		}
		w.found[i] = e
		if e != nil && !e.endDurable() && !slices.Contains(on, e) {
			on = append(on, e)
		}
	}
	var deadline time.Time
	if q.Block {
		deadline = s.now.Add(millis(events.DefaultQueryMS))
		if q.TimeoutMS != nil {
			deadline = s.now.Add(millis(*q.TimeoutMS))
		}
	}
	s.park(w, m.Responder, on, deadline)
	switch {
	case w.met():
		w.answer(s, false)
	case q.Block && !deadline.After(s.now):
		w.expire(s)
	}
}

// queryWait answers a query once what it waits for is durable.
type queryWait struct {
	waitBase
	query events.Query
	// found is what each of query.IDs refers to, or nil.
	found []*subagent
	// late tells that the deadline passed and only first writes are waited for.
	late bool
}

// known reports whether e may be shown, or will be.
func known(e *subagent) bool { return e != nil && (e.durable != nil || e.refused == nil) }

// met reports whether the query can be answered.
func (w *queryWait) met() bool {
	seen, ended := 0, 0
	for i, e := range w.found {
		if !known(e) || slices.Contains(w.found[:i], e) {
			continue // one that is named twice counts once
		}
		if e.durable == nil {
			return false
		}
		seen++
		if e.endDurable() {
			ended++
		}
	}
	if !w.query.Block || w.late {
		return true
	}
	need := seen
	switch w.query.Mode {
	case events.QueryAny:
		need = min(seen, 1)
	case events.QueryCount:
		need = min(seen, w.query.Count)
	}
	return ended >= need
}

func (w *queryWait) poke(s *State, _ *subagent) {
	if w.met() {
		w.answer(s, w.late)
	}
}

func (w *queryWait) expire(s *State) {
	w.late = true
	w.poke(s, nil)
}

func (w *queryWait) answer(s *State, timedOut bool) {
	r := events.QueryReply{Snapshots: make([]events.Snapshot, 0, len(w.found)), TimedOut: timedOut}
	var reads []*subagent
	for i, e := range w.found {
		if !known(e) {
			r.Unknown = append(r.Unknown, w.query.IDs[i])
			continue
		}
		r.Snapshots = append(r.Snapshots, Snapshot(e.durable, nil, s.now))
		if w.query.MarkRead && e.endDurable() {
			reads = append(reads, e)
		}
	}
	s.settle(w, r, reads...)
}
