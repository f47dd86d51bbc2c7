package coordinator

import (
	"maps"
	"slices"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Retention removes what is finished and read: past its age, and beyond the
// number that a session keeps, the oldest ends first. Neither removes what lives,
// what nobody has read, or what a live subagent uses.

const (
	// retainBatch bounds the removals that one sweep begins, retainPause is the
	// time to the next one if there is more, or after a removal that failed.
	retainBatch = 256
	retainPause = time.Second
	retainAgain = time.Minute
)

// keeps says why e cannot be removed, or nothing.
func (s *State) keeps(e *subagent, force bool) events.RemoveOutcome {
	switch {
	case !e.endDurable():
		return events.RemoveLive
	case len(s.users[e.id]) > 0 || len(s.children[e.id]) > 0 || s.ofLive(e):
		return events.RemoveInUse
	case e.rec.ReadAt == nil && !force:
		return events.RemoveUnread
	}
	return ""
}

// ofLive reports whether the spawner of e lives: it may read e yet, and what e used
// is a part of what its tree did.
func (s *State) ofLive(e *subagent) bool {
	p := s.byID[e.rec.ParentID]
	return p != nil && !p.endDurable()
}

// trim removes what g holds beyond its number. It walks over what is in use,
// which is bounded by what lives.
func (s *State) trim(g *session) {
	if len(g.read.items) == 0 {
		return
	}
	s.armRetention()
	if s.storeError != nil || s.now.Before(s.retainAfter) || s.closing != nil {
		return
	}
	excess := len(g.ended.items) - len(g.leaving) - s.cfg.Retention.PerSession
	for i := 0; excess > 0 && i < len(g.read.items); {
		e := g.read.items[i]
		if s.keeps(e, false) != "" {
			i++
			continue
		}
		s.forget(e)
		excess--
	}
}

// retain removes what is too old or too much, in every session.
func (s *State) retain() {
	defer s.armRetention()
	if s.storeError != nil || s.closing != nil || s.now.Before(s.retainAfter) {
		s.retainAfter = s.now.Add(retainAgain)
		return
	}
	s.expireGates()
	cutoff := s.now.Add(-s.cfg.Retention.Age)
	begun := 0
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		g := s.sessions[id]
		excess := len(g.ended.items) - len(g.leaving) - s.cfg.Retention.PerSession
		for i := 0; i < len(g.read.items) && begun < retainBatch; {
			e := g.read.items[i]
			if excess <= 0 && e.rec.EndedAt.After(cutoff) {
				break
			}
			if s.keeps(e, false) != "" {
				i++
				continue
			}
			s.forget(e)
			begun++
			excess--
		}
	}
	if begun == retainBatch {
		s.retainAfter = s.now.Add(retainPause)
	}
}

// armRetention sets the timer to when the first of what was read is too old, or
// to when a sweep may go on.
func (s *State) armRetention() {
	if s.retainTimer != nil {
		return
	}
	var at time.Time
	for _, g := range s.sessions {
		if len(g.read.items) > 0 {
			if due := g.read.items[0].rec.EndedAt.Add(s.cfg.Retention.Age); at.IsZero() || due.Before(at) {
				at = due
			}
		}
	}
	if at.IsZero() {
		return
	}
	// What is in use stays the first and is looked at again now and then.
	if soon := s.now.Add(retainAgain); at.Before(soon) {
		at = soon
	}
	if s.retainAfter.After(s.now) && s.retainAfter.Before(at) {
		at = s.retainAfter
	}
	s.retainTimer = s.timers.arm(&timer{at: at, kind: timerRetain})
}

// selectPrune returns what p selects, oldest end first, and how many of the ends
// that it selects nobody has read.
func (s *State) selectPrune(p events.PruneRequest) (found []*subagent, unread int, more bool) {
	age, keep := s.cfg.Retention.Age, s.cfg.Retention.PerSession
	byAge, byNumber := true, true
	if p.OlderThanMS != nil || p.Keep != nil {
		byAge, byNumber = p.OlderThanMS != nil, p.Keep != nil
	}
	if p.OlderThanMS != nil {
		age = millis(*p.OlderThanMS)
	}
	if p.Keep != nil {
		keep = *p.Keep
	}
	list := s.index.ended.items
	if p.ParentSessionID != "" {
		list = nil
		if g := s.sessions[p.ParentSessionID]; g != nil {
			list = g.ended.items
		}
	}
	cutoff := s.now.Add(-age)
	passed := make(map[*session]int)
	for _, e := range list {
		g := e.session
		passed[g]++
		beyond := byNumber && passed[g] <= len(g.ended.items)-keep
		if !beyond && (!byAge || e.rec.EndedAt.After(cutoff)) || e.leaving {
			continue
		}
		switch s.keeps(e, false) {
		case events.RemoveUnread:
			unread++
		case "":
			if len(found) == events.MaxRemovals {
				more = true
				continue
			}
			found = append(found, e)
		}
	}
	return found, unread, more
}
