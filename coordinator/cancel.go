package coordinator

import (
	"slices"

	"github.com/hayward-dev/hayward/events"
)

// cancel ends the subagents that the target selects and all that they spawned.
// The answer goes out once every end is durable, or at the deadline.
func (s *State) cancel(m Request, c events.Cancel) {
	sc := scopeOf(m.Caller, c.ParentSessionID)
	selected, missing, err := s.selected(m.Caller, sc, c.Target)
	if err != nil {
		s.refuse(m.Responder, err)
		return
	}
	w := &cancelWait{missing: missing, explicit: len(c.Target.IDs) > 0}
	for _, e := range s.withDescendants(selected) {
		w.targets = append(w.targets, cancelTarget{e: e, live: e.rec.Live()})
	}
	if c.DryRun {
		s.reply(m.Responder, w.results(events.CancelWouldCancel))
		return
	}
	switch {
	case !m.Caller.isChild():
		w.gates = s.shut(c)
	case c.Target.ParentPromptID != "":
		w.gates = s.shutTurn(m.Caller.Principal, c.Target.ParentPromptID)
	}
	o := stopOrder{reason: c.Reason, actor: c.Actor, kill: c.Kill, caller: true}
	if o.reason == "" {
		o.reason = defaultReason(m.Caller, c.Target)
	}
	if o.actor == "" && m.Caller.isChild() {
		o.actor = m.Caller.Principal
	}
	for _, t := range w.targets {
		own := o
		own.explicit = w.explicit && slices.Contains(selected, t.e)
		s.stop(t.e, own)
	}
	timeout := s.cfg.CancelReply
	if c.TimeoutMS != nil {
		timeout = millis(*c.TimeoutMS)
	}
	s.park(w, m.Responder, w.subjects(), s.now.Add(timeout))
	s.await(w, w.gates)
	switch {
	case w.done():
		w.answer(s)
	case timeout == 0:
		w.expire(s)
	}
}

// selected returns what the target selects, oldest first, and the references
// that select nothing. Only ids select what has ended.
func (s *State) selected(c Caller, sc scope, t events.CancelTarget) (found []*subagent, missing []string, err *events.Error) {
	if len(t.IDs) > 0 {
		for _, ref := range t.IDs {
			e, err := s.resolve(sc, ref)
			switch {
			case err != nil:
				return nil, nil, err
			case e == nil || e.refused != nil:
				missing = append(missing, ref)
			case !slices.Contains(found, e):
				found = append(found, e)
			}
		}
		slices.SortFunc(found, byCreation)
		return found, missing, nil
	}
	candidates := s.live.items
	if sc.session != "" {
		candidates = nil
		if g := s.sessions[sc.session]; g != nil {
			candidates = g.live.items
		}
	}
	for _, e := range candidates {
		if e.rec.Live() && matches(c, t, e.rec) && s.sees(sc, e) {
			found = append(found, e)
		}
	}
	return found, nil, nil
}

// matches reports whether the target, which is not one of ids, selects r. The
// prompt that a client names is that of whole trees, one that a subagent names is
// its own turn.
func matches(c Caller, t events.CancelTarget, r *events.Record) bool {
	switch {
	case t.ParentPromptID != "" && c.isChild():
		return r.ParentID == c.Principal && r.SpawnerPromptID == t.ParentPromptID
	case t.ParentPromptID != "":
		return r.ParentPromptID == t.ParentPromptID
	}
	for k, v := range t.Label {
		if got, ok := r.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// withDescendants adds the live subagents below those in list, oldest first.
func (s *State) withDescendants(list []*subagent) []*subagent {
	all := slices.Clone(list)
	for i := 0; i < len(all); i++ {
		for e := range s.children[all[i].id] {
			if e.rec.Live() && !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, byCreation)
	return all
}

func defaultReason(c Caller, t events.CancelTarget) events.Reason {
	switch {
	case t.ParentPromptID != "":
		return events.ReasonPrompt
	case t.Session:
		return events.ReasonSession
	case c.isChild():
		return events.ReasonParent
	}
	return events.ReasonUser
}

// cancelTarget is one subagent of a cancel; live tells whether it was when the
// cancel came.
type cancelTarget struct {
	e    *subagent
	live bool
}

// cancelWait answers a cancel once every target's end and the gates are durable.
type cancelWait struct {
	waitBase
	targets  []cancelTarget
	missing  []string
	explicit bool
	gates    []*gate
}

func (w *cancelWait) subjects() []*subagent {
	var on []*subagent
	for _, t := range w.targets {
		if !t.e.endDurable() {
			on = append(on, t.e)
		}
	}
	return on
}

func (w *cancelWait) done() bool {
	if !allDurable(w.gates) {
		return false
	}
	for _, t := range w.targets {
		if !t.e.endDurable() && t.e.refused == nil {
			return false
		}
	}
	return true
}

func (w *cancelWait) poke(s *State, _ *subagent) {
	if w.done() {
		w.answer(s)
	}
}

func (w *cancelWait) expire(s *State) { w.answer(s) }

// answer tells what became of each target. The reply of a cancel by id carries
// the ends, so they count as read once it is acknowledged.
func (w *cancelWait) answer(s *State) {
	r := w.results(events.CancelDraining)
	if !allDurable(w.gates) {
		r.Warnings = append(r.Warnings, "that later spawns are refused is not durable yet")
	}
	var reads []*subagent
	for i, t := range w.targets {
		if w.explicit && r.Results[i].Outcome == events.CancelCancelled {
			reads = append(reads, t.e)
		}
	}
	s.settle(w, r, reads...)
}

// results has one entry for each target, then one for each that is missing.
func (w *cancelWait) results(unended events.CancelOutcome) events.CancelReply {
	r := events.CancelReply{Results: make([]events.CancelResult, 0, len(w.targets)+len(w.missing))}
	for _, t := range w.targets {
		rec := t.e.rec
		one := events.CancelResult{SubagentID: rec.ID, Name: rec.Name, Background: rec.Background}
		switch {
		case t.e.refused != nil:
			one.Outcome = events.CancelNotFound
		case rec.Live():
			one.Outcome = unended
		case t.e.endDurable() && t.live && rec.Status == events.StatusCancelled:
			one.Outcome, one.Status = events.CancelCancelled, rec.Status
		case t.live && !t.e.endDurable():
			one.Outcome = unended
		default:
			one.Outcome, one.Status = events.CancelAlreadyFinished, rec.Status
		}
		r.Results = append(r.Results, one)
	}
	for _, ref := range w.missing {
		r.Results = append(r.Results, events.CancelResult{SubagentID: ref, Outcome: events.CancelNotFound})
	}
	return r
}
