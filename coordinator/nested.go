package coordinator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/hayward-dev/hayward/events"
)

// A subagent that spawns others is at the top of a tree. What is nested in it
// counts against the limits of the same session and has the same prompt, so that
// a cancel of either reaches it; what it ends with is read by its spawner alone.
// It does not outlive its spawner: its files, its bounds and its budget are the
// spawner's, and nobody else would read its result.

// maxTurnGates bounds the cancelled turns of one subagent.
const maxTurnGates = 64

// spawnerOf returns the subagent that calls, if it may ask for one now.
func (s *State) spawnerOf(c Caller, req events.Spawn) (*subagent, *events.Error) {
	// The record is the witness of what the spawner is, not its claim.
	p := s.byID[c.Principal]
	if p == nil || p.rec.State != events.StateActive || p.stop != nil || p.exited {
		return nil, events.Errorf(events.CodeNotRunning, events.LayerGate, "spawn %s: its spawner %s is not running", req.ID, c.Principal)
	}
	if req.Reopen {
		return nil, events.Errorf(events.CodeForbidden, events.LayerPermission, "spawn %s: a subagent does not reopen a cancelled prompt", req.ID)
	}
	if err := s.checkDepth(req.ID, p.rec.Depth+1); err != nil {
		return nil, err
	}
	var may *events.Spawns
	if p.spec != nil {
		may = p.spec.Spawns
	}
	if err := CheckSpawns(may, p.id, req); err != nil {
		return nil, err
	}
	return p, nil
}

// CheckSpawns refuses a spawn of a type that is not among those that its spawner may
// spawn.
func CheckSpawns(may *events.Spawns, spawner string, req events.Spawn) *events.Error {
	typ := cmp.Or(req.SubagentType, "command")
	if may.Allows(typ) {
		return nil
	}
	spawn := "spawn"
	if req.ID != "" {
		spawn += " " + req.ID
	}
	err := events.Errorf(events.CodeSpawnNotAllowed, events.LayerPermission, "%s: subagent %s may not spawn type %s", spawn, spawner, typ).
		WithDetail("may_spawn", may.String())
	if may == nil {
		return err.WithRemedy("whoever spawns it allows that with may_spawn (--may-spawn), or in the definition of its type")
	}
	return err.WithRemedy("name a type that it may spawn")
}

func (s *State) checkDepth(id string, depth int) *events.Error {
	if depth < s.cfg.Limits.Depth {
		return nil
	}
	return events.Errorf(events.CodeDepthExceeded, events.LayerGate, "spawn %s: depth %d is not below the limit of %d", id, depth, s.cfg.Limits.Depth).
		WithRemedy("do the work in this subagent; the user allows more with limits.depth (serve --max-depth)").
		WithDetail("limit", "depth").WithDetail("max", strconv.Itoa(s.cfg.Limits.Depth))
}

// callerKnown puts the session of a child that calls into m; the child itself must live.
func (s *State) callerKnown(m *Request) *events.Error {
	if !m.Caller.isChild() {
		return nil
	}
	p := s.byID[m.Caller.Principal]
	if p == nil || !p.rec.Live() {
		return events.Errorf(events.CodeNotRunning, events.LayerGate, "%s: the subagent %s that asks is not running", m.Event.EventKind(), m.Caller.Principal)
	}
	m.Caller.Session, m.Caller.Depth = p.rec.ParentSessionID, p.rec.Depth
	return nil
}

// shutTurn closes the gate of a turn that a subagent cancelled. Past the bound its
// oldest goes.
func (s *State) shutTurn(caller, turn string) []*gate {
	var own []promptKey
	for _, key := range s.gates.order {
		if key.session == caller {
			own = append(own, key)
		}
	}
	if key := (promptKey{caller, turn}); len(own) >= maxTurnGates && !slices.Contains(own, key) {
		s.dropGate(own[0])
	}
	return []*gate{s.setGate(promptKey{caller, turn}, false)}
}

// endNested stops what e spawned and still lives.
func (s *State) endNested(e *subagent) []*subagent {
	if len(s.children[e.id]) == 0 {
		return nil
	}
	var below []*subagent
	for _, d := range s.withDescendants([]*subagent{e}) {
		if d != e {
			below = append(below, d)
			s.stop(d, stopOrder{reason: events.ReasonParent, actor: e.id})
		}
	}
	return below
}

// exited is told of a subagent whose processes are gone and that has not ended
// yet. It is answered once nothing below it lives any more.
func (s *State) exited(m Exited) {
	if s.finished {
		s.refuse(m.Responder, errShuttingDown()) // what lives is the next one's to end
		return
	}
	e := s.byID[m.ID]
	if e == nil || e.rec.Run != m.Run {
		s.reply(m.Responder, Gone{})
		return
	}
	e.exited = true
	w := &goneWait{below: s.endNested(e)}
	// By then the stop ladder of what is below has been climbed.
	s.park(w, m.Responder, w.below, s.now.Add(s.cfg.Grace+s.cfg.KillProof))
	w.poke(s, nil)
}

// Gone answers [Exited]. Left counts what still lives at the deadline; whoever asks
// again waits for that.
type Gone struct{ Left int }

// goneWait answers once the ends of all below are durable, or at the deadline.
type goneWait struct {
	waitBase
	below []*subagent
}

func (w *goneWait) poke(s *State, _ *subagent) {
	for _, e := range w.below {
		if !e.endDurable() && e.refused == nil {
			return
		}
	}
	s.settle(w, Gone{})
}

// expire does not count an end that cannot be written: of that one nothing is left,
// and what is asked for may be what makes space.
func (w *goneWait) expire(s *State) {
	var g Gone
	for _, e := range w.below {
		if e.rec.Live() && e.refused == nil {
			g.Left++
		}
	}
	s.settle(w, g)
}

// bury settles what e, whose end is durable now, leaves: nobody reads the ends of
// what it spawned any more, and its turns are over.
func (s *State) bury(e *subagent) {
	if e.rec.ParentID != "" {
		if p := s.byID[e.rec.ParentID]; p == nil || p.endDurable() {
			s.markRead(e)
		}
	}
	if box := s.nested[e.id]; box != nil {
		for _, d := range sortedByCreation(box.unread) {
			s.markRead(d)
		}
	}
	for _, key := range slices.Clone(s.gates.order) {
		if key.session == e.id {
			s.dropGate(key)
		}
	}
}

// buryOrphans does so after a restart for what an earlier coordinator did not, and
// stops what lives without its spawner.
func (s *State) buryOrphans(live []*subagent) {
	for _, e := range live {
		if id := e.rec.ParentID; id != "" && e.rec.Live() {
			if p := s.byID[id]; p == nil || !p.rec.Live() {
				s.stop(e, stopOrder{reason: events.ReasonParent, actor: id})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.nested)) {
		if p := s.byID[id]; p == nil || p.endDurable() {
			for _, d := range sortedByCreation(s.nested[id].unread) {
				s.markRead(d)
			}
		}
	}
}

// addUp writes what e used, and all below it, into its record. A spawner that ended
// before it counts it as well.
func (s *State) addUp(e *subagent, own *events.Usage) {
	if own != nil {
		s.change(e).Usage = own
	}
	for e != nil && !e.rec.Live() {
		if sum := s.treeUsage(e); sum != nil && (e.rec.TreeUsage == nil || *sum != *e.rec.TreeUsage) {
			s.change(e).TreeUsage = sum
		}
		e = s.byID[e.rec.ParentID]
	}
}

// treeUsage is what e and the ended ones below it used: each run once, for what is
// below one of them is in its own sum.
func (s *State) treeUsage(e *subagent) *events.Usage {
	var sum events.Usage
	if e.rec.Usage != nil {
		sum = *e.rec.Usage
	}
	if box := s.nested[e.id]; box != nil {
		for d := range box.members {
			if d.rec.TreeUsage != nil {
				sum = sum.Add(*d.rec.TreeUsage)
			}
		}
	}
	if sum == (events.Usage{}) {
		return nil
	}
	return &sum
}

func sortedByCreation(set map[*subagent]struct{}) []*subagent {
	list := make([]*subagent, 0, len(set))
	for e := range set {
		list = append(list, e)
	}
	slices.SortFunc(list, byCreation)
	return list
}

// Exited tells that every process of a subagent that may spawn is gone, and returns
// once what it spawned has ended, or with how many live when their ladder should have
// ended them. An error of a coordinator that ends has the code shutting_down.
func (c *Coordinator) Exited(ctx context.Context, id string, run int) (left int, err error) {
	// It goes in with the answers of effects: a full intake does not hold it up.
	to := make(mailbox, 1)
	c.outstanding.Add(1)
	if ok, _ := c.internal.push(Exited{id, run, to}); !ok {
		c.outstanding.Add(-1)
		return 0, errShuttingDown()
	}
	select {
	case a := <-to:
		if a.Error != nil {
			return 0, a.Error
		}
		return a.Reply.(Gone).Left, nil
	case <-c.done: // it was not taken any more
		return 0, errShuttingDown()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
