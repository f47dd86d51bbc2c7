package coordinator

import (
	"slices"

	"github.com/hayward-dev/hayward/events"
)

// A gate refuses later spawns of a cancelled prompt. It is durable by itself,
// because the prompt may have no subagent yet, or none any more.

// gate is one cancelled prompt, or with an empty prompt one cancelled session.
type gate struct {
	events.Gate
	// before closes the prompts of a cancelled session whose first subagent has at
	// most that ordinal.
	before  uint64
	durable bool
	// waits are the requests that wait until it is durable.
	waits map[wait]struct{}
}

func (g *gate) key() promptKey { return promptKey{g.Session, g.Prompt} }

// gates are all gates, oldest first in order.
type gates struct {
	byKey map[promptKey]*gate
	order []promptKey
}

func newGates() gates { return gates{byKey: make(map[promptKey]*gate)} }

// gated reports whether spawns of the prompt are refused.
func (s *State) gated(session, prompt string) bool {
	if prompt == "" {
		return false
	}
	if own := s.gates.byKey[promptKey{session, prompt}]; own != nil {
		return !own.Lifted
	}
	whole := s.gates.byKey[promptKey{session, ""}]
	g := s.sessions[session]
	if whole == nil || g == nil {
		return false
	}
	p := g.prompts[prompt]
	return p != nil && p.first <= whole.before
}

// shut closes the gates that a cancel asks for and returns them: that of a
// cancelled prompt, or that of a session for the prompts seen so far. Prompts of
// the session that were reopened are closed again.
func (s *State) shut(c events.Cancel) []*gate {
	session := c.ParentSessionID
	switch {
	case c.Target.ParentPromptID != "":
		return []*gate{s.setGate(promptKey{session, c.Target.ParentPromptID}, false)}
	case c.Target.Session && s.sessions[session] != nil:
		shut := []*gate{s.setGate(promptKey{session, ""}, false)}
		for _, key := range slices.Clone(s.gates.order) {
			if key.session == session && s.gates.byKey[key].Lifted {
				shut = append(shut, s.setGate(key, false))
			}
		}
		return shut
	}
	return nil
}

// setGate closes or lifts a gate durably. One of a prompt that is so already
// stays as it is; that of a session is moved to now.
func (s *State) setGate(key promptKey, lifted bool) *gate {
	g := s.gates.byKey[key]
	if g != nil && g.Lifted == lifted && key.prompt != "" {
		return g
	}
	if g == nil {
		g = &gate{}
		s.enterGate(key, g)
	}
	g.Gate = events.Gate{Schema: events.RecordSchema, Session: key.session, Prompt: key.prompt, At: s.stamp(), Lifted: lifted}
	g.durable, g.before = false, s.ordinals
	s.emit(PersistGate{Gate: g.Gate})
	return g
}

// enterGate makes room for one gate; past the bound the oldest goes.
func (s *State) enterGate(key promptKey, g *gate) {
	if len(s.gates.order) >= maxGates {
		s.dropGate(s.gates.order[0])
	}
	s.gates.byKey[key] = g
	s.gates.order = append(s.gates.order, key)
}

func (s *State) dropGate(key promptKey) {
	delete(s.gates.byKey, key)
	if i := slices.Index(s.gates.order, key); i >= 0 {
		s.gates.order = slices.Delete(s.gates.order, i, i+1)
	}
	s.emit(ForgetGate{Session: key.session, Prompt: key.prompt})
}

// expireGates drops the gates that are older than what is kept of subagents:
// nobody spawns for a turn that long ago. Those that somebody waits for stay.
func (s *State) expireGates() {
	cutoff := s.now.Add(-s.cfg.Retention.Age)
	for _, key := range slices.Clone(s.gates.order) {
		if g := s.gates.byKey[key]; g.durable && g.At.Before(cutoff) {
			s.dropGate(key)
		}
	}
}

// restoreGates takes over the gates of an earlier coordinator. It comes after the
// records, in which versions before the gates were files marked the prompt.
func (s *State) restoreGates(list []events.Gate) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b events.Gate) int { return a.At.Compare(b.At) })
	for _, stored := range list {
		g := &gate{Gate: stored, durable: true}
		if s.gates.byKey[g.key()] != nil {
			continue
		}
		// Ordinals follow creation, so the prompts seen until then are a prefix.
		for _, e := range s.all.items {
			if e.rec.CreatedAt.After(stored.At) {
				break
			}
			g.before = e.ord
		}
		s.enterGate(g.key(), g)
	}
	for _, e := range s.all.items {
		key := promptKey{e.rec.ParentSessionID, e.rec.ParentPromptID}
		if e.rec.PromptGate && key.prompt != "" && s.gates.byKey[key] == nil {
			s.setGate(key, false)
		}
	}
}

// gatePersisted notes that a gate is durable and answers who waited for that.
func (s *State) gatePersisted(stored events.Gate) {
	g := s.gates.byKey[promptKey{stored.Session, stored.Prompt}]
	if g == nil || g.Lifted != stored.Lifted || !g.At.Equal(stored.At) {
		return
	}
	g.durable = true
	for _, w := range sorted(g.waits) {
		if _, still := s.waits[w]; still {
			w.poke(s, nil)
		}
	}
	g.waits = nil
}

// await makes w, which is parked, wait for those of list that are not durable.
func (s *State) await(w wait, list []*gate) {
	for _, g := range list {
		if g.durable {
			continue
		}
		if g.waits == nil {
			g.waits = make(map[wait]struct{})
		}
		g.waits[w] = struct{}{}
	}
}

func allDurable(list []*gate) bool {
	return !slices.ContainsFunc(list, func(g *gate) bool { return !g.durable })
}

// reopen lifts the gate of a spawn's prompt; the spawn is judged anew once that
// is durable.
func (s *State) reopen(m Request, req events.Spawn) {
	g := s.setGate(promptKey{req.ParentSessionID, req.ParentPromptID}, true)
	w := &reopenWait{request: m, spawn: req, gate: g}
	s.park(w, m.Responder, nil, s.now.Add(storePatience))
	s.await(w, []*gate{g})
}

// reopenWait is a spawn that waits until its prompt is open.
type reopenWait struct {
	waitBase
	request Request
	spawn   events.Spawn
	gate    *gate
}

func (w *reopenWait) poke(s *State, _ *subagent) {
	if w.gate.durable {
		s.unpark(w)
		s.spawn(w.request, w.spawn)
	}
}

func (w *reopenWait) expire(s *State) {
	err := events.Errorf(events.CodeStorageFailed, events.LayerCoordinator,
		"spawn %s: that prompt %s is open again could not be made durable within %v", w.spawn.ID, w.spawn.ParentPromptID, storePatience)
	if s.storeError != nil {
		err = events.Errorf(s.storeError.Code, s.storeError.Layer, "%s: %w", err.Message, s.storeError)
	}
	s.fail(w, err)
}
