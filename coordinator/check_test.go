package coordinator

import (
	"maps"
	"slices"

	"github.com/hayward-dev/hayward/events"
)

// checkState derives every index anew from the records and compares.
func checkState(t tb, s *State) {
	t.Helper()
	fail := func(format string, args ...any) { t.Helper(); t.Fatalf("state: "+format, args...) }
	running, queued, unsettled := 0, 0, 0
	perSession := map[*session]int{}
	for id, e := range s.byID {
		r := e.rec
		if e.id != id || e.session != s.sessions[r.ParentSessionID] || e.dirty {
			fail("%s is indexed wrongly", id)
		}
		if _, in := s.slots[e]; in != e.holdsSlot() {
			fail("%s is %s and holds a slot=%v", id, r.State, in)
		}
		if _, in := e.session.slots[e]; in != e.holdsSlot() {
			fail("%s is %s and holds a slot of its session=%v", id, r.State, in)
		}
		if _, in := s.queued[e]; in != (r.State == events.StateQueued) {
			fail("%s is %s and queued=%v", id, r.State, in)
		}
		if in := slices.Contains(e.session.queue, e); in != (r.State == events.StateQueued) {
			fail("%s is %s and in the queue=%v", id, r.State, in)
		}
		if in := slices.Contains(s.live.items, e); in == e.endDurable() {
			fail("%s is live=%v", id, in)
		}
		if in := slices.Contains(s.index.ended.items, e); in != e.endDurable() {
			fail("%s is ended=%v", id, in)
		}
		unread := e.endDurable() && r.ReadAt == nil && !e.leaving
		if in := slices.Contains(e.session.read.items, e); in != (e.endDurable() && r.ReadAt != nil && !e.leaving) {
			fail("%s is read=%v", id, in)
		}
		if _, in := e.session.leaving[e]; in != e.leaving {
			fail("%s is leaving=%v", id, in)
		}
		if !slices.Contains(s.byTail[id[len(id)-tailLength:]], e) || !slices.Contains(s.all.items, e) || !slices.Contains(e.session.all.items, e) {
			fail("%s is not to be found", id)
		}
		if r.ParentID == "" && e.inbox != &e.session.inbox || r.ParentID != "" && e.inbox != s.nested[r.ParentID] {
			fail("%s is in the wrong inbox", id)
		}
		if _, in := e.inbox.unread[e]; in != unread {
			fail("%s is unread=%v", id, in)
		}
		if in := slices.Contains(e.inbox.deliverable.items, e); in != (unread && e.lease == nil) {
			fail("%s is deliverable=%v", id, in)
		}
		if _, in := s.unsettled[e]; in == e.settled() {
			fail("%s is unsettled=%v", id, in)
		}
		if p := s.byID[r.ParentID]; r.ParentID != "" && r.Live() && (p == nil || !p.rec.Live()) && e.stop == nil {
			fail("%s lives without its spawner and is not told to end", id)
		}
		if p := s.byID[r.ParentID]; r.ParentID != "" && unread && (p == nil || p.endDurable()) {
			fail("%s is unread and nobody is left to read it", id)
		}
		for w := range e.waits {
			if _, in := s.waits[w]; !in {
				fail("%s keeps an answered wait", id)
			}
		}
		if e.holdsSlot() {
			running++
			perSession[e.session]++
		}
		if r.State == events.StateQueued {
			queued++
		}
		if !e.settled() {
			unsettled++
		}
		if r.State == events.StateCompleted && (e.startTimer != nil || e.runTimer != nil || e.stopTimer != nil) {
			fail("%s keeps a timer", id)
		}
	}
	if running > s.cfg.Limits.Total {
		fail("%d run, the limit is %d", running, s.cfg.Limits.Total)
	}
	for g, n := range perSession {
		if n > s.cfg.Limits.PerSession {
			fail("%d of session %s run, the limit is %d", n, g.id, s.cfg.Limits.PerSession)
		}
	}
	for t, most := range s.cfg.Limits.PerType {
		n := 0
		for _, e := range s.all.items {
			if e.rec.SubagentType == t && e.holdsSlot() {
				n++
			}
		}
		if n > most || n != len(s.typeSlots[t]) {
			fail("%d of type %s run, indexed %d, the limit is %d", n, t, len(s.typeSlots[t]), most)
		}
	}
	if s.storeError == nil && s.closing == nil && !s.finished {
		checkAdmission(t, s)
	}
	if running != len(s.slots) || queued != len(s.queued) || unsettled != len(s.unsettled) {
		fail("%d/%d run, %d/%d wait, %d/%d unsettled", len(s.slots), running, len(s.queued), queued, len(s.unsettled), unsettled)
	}
	for i, tm := range s.timers.heap {
		if tm.index != i {
			fail("a timer is misplaced")
		}
	}
	checkDerived(t, s)
	if !slices.IsSortedFunc(s.index.ended.items, byEndTime) || !slices.IsSortedFunc(s.live.items, byCreation) {
		fail("an index is out of order")
	}
}

// checkAdmission proves that no slot stays free while somebody could have it.
func checkAdmission(t tb, s *State) {
	t.Helper()
	if len(s.slots) >= s.cfg.Limits.Total {
		return
	}
	for e := range s.queued {
		if len(e.session.slots) < s.cfg.Limits.PerSession && s.typeHasRoom(e.rec.SubagentType) {
			t.Fatalf("state: %s waits and there is a slot", e.id)
		}
	}
}

// checkDerived compares what names and prompts lead to with the records.
func checkDerived(t tb, s *State) {
	t.Helper()
	if len(s.all.items) != len(s.byID) {
		t.Fatalf("state: %d are listed, %d known", len(s.all.items), len(s.byID))
	}
	sizes, names, used := map[*prompt]int{}, map[nameKey]*subagent{}, 0
	for _, e := range s.all.items {
		if e.prompt != nil {
			sizes[e.prompt]++
		}
		if e.rec.Name != "" {
			names[nameKey{ownerOf(e.rec), e.rec.Name}] = e // the youngest is last
		}
		if !e.endDurable() {
			used += len(uses(e))
		}
	}
	boxes, members := slices.Collect(maps.Values(s.nested)), 0
	for id, box := range s.nested {
		for e := range box.members {
			if members++; e.rec.ParentID != id || s.byID[e.id] != e {
				t.Fatalf("state: %s is counted below %s", e.id, id)
			}
		}
		if len(box.members) == 0 {
			t.Fatalf("state: the inbox of %s is kept for nothing", id)
		}
	}
	for _, e := range s.all.items {
		if e.rec.ParentID != "" {
			members--
		}
	}
	if members != 0 {
		t.Fatalf("state: %d too many are counted as nested", members)
	}
	for _, g := range s.sessions {
		boxes = append(boxes, &g.inbox)
	}
	for _, box := range boxes {
		for id, p := range box.prompts {
			if p.size != sizes[p] || p.size == 0 {
				t.Fatalf("state: prompt %s has %d subagents, counted %d", id, sizes[p], p.size)
			}
		}
	}
	if !maps.Equal(names, s.named) {
		t.Fatalf("state: %d names, indexed %d", len(names), len(s.named))
	}
	listed := 0
	for _, list := range s.byName {
		listed += len(list)
		for i, e := range list {
			if e.nameSlot != i {
				t.Fatalf("state: %s is misplaced among its name", e.id)
			}
		}
	}
	if listed != len(names) {
		t.Fatalf("state: %d names, listed %d", len(names), listed)
	}
	linked := 0
	for _, set := range s.users {
		linked += len(set)
	}
	if linked != used {
		t.Fatalf("state: %d uses, indexed %d", used, linked)
	}
}
