package coordinator

import (
	"maps"
	"slices"
	"strconv"

	"github.com/hayward-dev/hayward/events"
)

// Admission is fair between sessions: a session that has a queue and a free slot
// takes part in a round robin, one admission a round; within a session it is
// first in, first out. A session at its limit is not in the round, so it holds
// up nobody; nor does a subagent whose type is at its limit hold up those of
// other types behind it.

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
		i := slices.IndexFunc(g.queue, func(e *subagent) bool { return s.typeHasRoom(e.rec.SubagentType) })
		if i < 0 {
			s.stall(g)
			continue
		}
		e := g.queue[i]
		g.queue = slices.Delete(g.queue, i, i+1)
		at := s.stamp()
		s.change(e).PendingAt = &at
		s.move(e, events.StatePending, events.StatusInitializing, CauseAdmitted)
		s.proceed(e)
	}
}

func (s *State) typeHasRoom(t string) bool {
	most, bounded := s.cfg.Limits.PerType[t]
	return !bounded || len(s.typeSlots[t]) < most
}

// stall notes that g waits for a type to have room.
func (s *State) stall(g *session) {
	if !g.stalled {
		g.stalled = true
		s.stalled = append(s.stalled, g)
	}
}

// setTypeSlot enters e into or takes it out of the slots of its type, if that has
// a limit, and offers what waited for one.
func (s *State) setTypeSlot(e *subagent, holds bool) {
	t := e.rec.SubagentType
	if _, bounded := s.cfg.Limits.PerType[t]; !bounded {
		return
	}
	if holds {
		link(s.typeSlots, t, e)
		return
	}
	if _, held := s.typeSlots[t][e]; !held {
		return
	}
	unlink(s.typeSlots, t, e)
	stalled := s.stalled
	s.stalled = nil
	for _, g := range stalled {
		g.stalled = false
		s.offer(g)
	}
}

// unqueue takes e out of its session's queue.
func (s *State) unqueue(e *subagent) {
	g := e.session
	if i := slices.Index(g.queue, e); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
}

// reached returns the limit that keeps a subagent of the session and type from a
// slot now, or nil.
func (s *State) reached(id, session, t string) *events.Error {
	limits := s.cfg.Limits
	running := 0
	if g := s.sessions[session]; g != nil {
		running = len(g.slots)
	}
	switch {
	case running >= limits.PerSession:
		return s.limited(id, "per_session", limits.PerSession, running, "of the session")
	case len(s.slots) >= limits.Total:
		return s.limited(id, "total", limits.Total, len(s.slots), "in total")
	case !s.typeHasRoom(t):
		return s.limited(id, "per_type", limits.PerType[t], len(s.typeSlots[t]), "of type "+t)
	}
	return nil
}

// limited is a refusal by a limit of what runs. The refused one is in none of the
// numbers.
func (s *State) limited(id, limit string, most, running int, of string) *events.Error {
	return events.Errorf(events.CodeLimit, events.LayerGate, "spawn %s: %d subagents %s run, the limit is %d", id, running, of, most).
		WithRemedy("wait for one to end, or raise the limit").
		WithDetail("limit", limit).WithDetail("max", strconv.Itoa(most)).
		WithDetail("running", strconv.Itoa(running)).WithDetail("queued", strconv.Itoa(len(s.queued)))
}

// reject leaves a failed record of a spawn that a limit keeps from a slot, and
// answers with the limit once that is durable.
func (s *State) reject(m Request, spec *events.Spec, limit *events.Error) {
	e := s.create(spec, m.digest)
	s.end(e, events.End{Status: events.StatusFailed, Reason: events.ReasonLimit, Error: limit}, CauseWithdrawn)
	s.park(&rejectWait{}, m.Responder, []*subagent{e}, s.now.Add(storePatience))
}

// rejectWait answers a rejected spawn.
type rejectWait struct{ waitBase }

func (w *rejectWait) poke(s *State, e *subagent) {
	if e.refused != nil || e.endDurable() {
		w.expire(s)
	}
}

func (w *rejectWait) expire(s *State) {
	e := w.on[0]
	limit := *e.rec.Error
	limit.Details = maps.Clone(limit.Details) // the record keeps its own
	s.fail(w, limit.WithDetail("subagent_id", e.id))
}
