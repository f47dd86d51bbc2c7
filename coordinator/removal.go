package coordinator

import (
	"time"

	"github.com/hayward-dev/hayward/events"
)

// removalWait bounds the wait of who asked for a removal; it goes on afterwards.
const removalWait = 20 * time.Second

// remove takes finished subagents away that the caller names.
func (s *State) remove(m Remove) {
	if s.finished || s.closing != nil {
		s.refuse(m.Responder, errShuttingDown())
		return
	}
	w := &removeWait{dry: m.Request.DryRun}
	sc := scope{session: m.Request.ParentSessionID}
	for _, ref := range m.Request.IDs {
		e, err := s.resolve(sc, ref)
		switch {
		case err != nil:
			w.decided(events.RemoveResult{SubagentID: ref, Outcome: events.RemoveFailed, Error: err})
		case !known(e) || e.durable == nil:
			w.decided(events.RemoveResult{SubagentID: ref, Outcome: events.RemoveNotFound})
		default:
			w.add(s, e, s.keeps(e, m.Request.Force))
		}
	}
	w.begin(s, m.Responder)
}

// prune takes away what the request selects.
func (s *State) prune(m Prune) {
	if s.finished || s.closing != nil {
		s.refuse(m.Responder, errShuttingDown())
		return
	}
	w := &removeWait{dry: m.Request.DryRun}
	found, unread, more := s.selectPrune(m.Request)
	w.reply.Unread, w.reply.More = unread, more
	for _, e := range found {
		w.add(s, e, "")
	}
	w.begin(s, m.Responder)
}

// removeWait answers once nothing of it is under way.
type removeWait struct {
	waitBase
	dry   bool
	reply events.RemoveReply
	// targets has an entry for each result: what is being removed, or nil.
	targets []*subagent
}

func (w *removeWait) decided(r events.RemoveResult) {
	w.reply.Results = append(w.reply.Results, r)
	w.targets = append(w.targets, nil)
}

// add removes e, unless there is an outcome already.
func (w *removeWait) add(s *State, e *subagent, outcome events.RemoveOutcome) {
	r := e.durable
	result := events.RemoveResult{
		SubagentID: e.id, Name: r.Name, ParentSessionID: r.ParentSessionID,
		Outcome: outcome, Status: r.Status, EndedAt: r.EndedAt,
	}
	if outcome == "" && w.dry {
		result.Outcome = events.RemoveWouldRemove
	}
	w.decided(result)
	if result.Outcome == "" {
		s.forget(e)
		w.targets[len(w.targets)-1] = e
	}
}

func (w *removeWait) begin(s *State, to Responder) {
	var on []*subagent
	for _, e := range w.targets {
		if e != nil {
			on = append(on, e)
		}
	}
	s.park(w, to, on, s.now.Add(removalWait))
	w.poke(s, nil)
}

func (w *removeWait) poke(s *State, _ *subagent) {
	for _, e := range w.targets {
		if e != nil && e.leaving {
			return
		}
	}
	w.expire(s)
}

// expire tells what became of each so far.
func (w *removeWait) expire(s *State) {
	if w.reply.Results == nil {
		w.reply.Results = []events.RemoveResult{}
	}
	for i, e := range w.targets {
		r := &w.reply.Results[i]
		switch {
		case e == nil:
		case e.gone:
			r.Outcome = events.RemoveRemoved
		case e.leaving:
			r.Outcome = events.RemoveFailed
			r.Error = events.Errorf(events.CodeTimeout, events.LayerCoordinator, "subagent %s is still being removed after %v", e.id, removalWait)
		default:
			r.Outcome, r.Error = events.RemoveFailed, e.removeErr
		}
		if r.Outcome == events.RemoveRemoved || r.Outcome == events.RemoveWouldRemove {
			w.reply.Removed++
		}
	}
	s.settle(w, w.reply)
}

// forget decides that e goes. Until it is gone it can be looked at, and its id is
// taken; it is no longer delivered, and nothing can begin to use it.
func (s *State) forget(e *subagent) {
	if e.leaving {
		return
	}
	e.leaving = true
	put(&e.session.leaving, e)
	if e.lease != nil {
		delete(e.lease.held, e)
		e.lease = nil
	}
	s.setUnread(e)
	s.carryOutForget(e)
}

// carryOutForget removes e once its latest state is durable. A prompt that is
// gated only by what is known of its session gets a gate of its own: with the
// record goes the knowledge that the session had it.
func (s *State) carryOutForget(e *subagent) {
	if !e.leaving || e.forgetting || !e.settled() {
		return
	}
	e.forgetting = true
	f := Forget{ID: e.id}
	key := promptKey{e.rec.ParentSessionID, e.rec.ParentPromptID}
	own := s.gates.byKey[key]
	if own == nil && s.gated(key.session, key.prompt) {
		own = &gate{Gate: events.Gate{Schema: events.RecordSchema, Session: key.session, Prompt: key.prompt, At: s.stamp()}}
		s.enterGate(key, own)
	}
	if own != nil && !own.durable {
		stored := own.Gate
		f.Gate, e.forgetGate = &stored, &stored
	}
	s.emit(f)
}

// forgotten takes e out of everything, or keeps it if it could not be removed.
func (s *State) forgotten(m Forgotten) {
	e := s.byID[m.ID]
	if e == nil || !e.leaving {
		return
	}
	if m.Err != nil && m.Err.Code == events.CodeStoreConflict {
		s.finish(m.Err)
		return
	}
	e.leaving, e.forgetting, e.removeErr = false, false, m.Err
	delete(e.session.leaving, e)
	if m.Err == nil {
		e.gone = true
		s.drop(e)
		if g := e.forgetGate; g != nil {
			s.gatePersisted(*g)
		}
	} else {
		s.setUnread(e)
		s.retainAfter = s.now.Add(retainAgain)
	}
	s.armRetention()
	s.poke(e)
}
