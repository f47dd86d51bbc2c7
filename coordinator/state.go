package coordinator

import (
	"strconv"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// State is everything the coordinator knows, and [State.Apply] the only way to
// change it. It is a plain value of one owner: no I/O, no clock, no goroutine,
// no lock. Equal states given equal messages make equal effects.
type State struct {
	cfg Config
	// epoch makes the tokens of this coordinator differ from those of others.
	epoch string

	now   time.Time
	out   []Effect
	dirty []*subagent

	index
	// queued and slots are derived from the records: see place.
	queued map[*subagent]struct{}
	slots  map[*subagent]struct{}
	// unsettled are those whose latest state is not durable.
	unsettled map[*subagent]struct{}
	// typeSlots are the slots of each type that has a limit.
	typeSlots map[string]map[*subagent]struct{}
	// ready holds sessions that have a queue and a free slot, stalled those that
	// wait for a slot of a type, each once.
	ready   []*session
	stalled []*session

	timers    timers
	waits     map[wait]struct{}
	waitOrder uint64
	leases    map[string]*lease // by token
	tokens    uint64
	ordinals  uint64
	ends      uint64

	// gates are the prompts and sessions that were cancelled.
	gates gates
	// retainTimer is armed while something finished can get too old; retainAfter is
	// when the next removal may be tried after one that failed.
	retainTimer *timer
	retainAfter time.Time

	// storeError is why the last write failed, nil once one succeeded.
	storeError *events.Error
	closing    *closing
	finished   bool

	late, lateAcks int64
}

// NewState returns an empty state. epoch goes into tokens and should be unique.
func NewState(cfg Config, epoch string) *State {
	return &State{
		cfg:       cfg.withDefaults(),
		epoch:     epoch,
		index:     newIndex(),
		queued:    make(map[*subagent]struct{}),
		slots:     make(map[*subagent]struct{}),
		unsettled: make(map[*subagent]struct{}),
		typeSlots: make(map[string]map[*subagent]struct{}),
		waits:     make(map[wait]struct{}),
		leases:    make(map[string]*lease),
		gates:     newGates(),
	}
}

// Apply takes one message at the given time and returns what is to be done. The
// slice is valid until the next call.
func (s *State) Apply(m Message, now time.Time) []Effect {
	clear(s.out)
	s.out, s.now = s.out[:0], now
	switch m := m.(type) {
	case Request:
		s.request(m)
	case Ack:
		s.ack(m)
	case Abandoned:
		s.abandoned(m)
	case Lookup:
		s.lookup(m)
	case Remove:
		s.remove(m)
	case Prune:
		s.prune(m)
	case AskStats:
		s.reply(m.Responder, s.stats())
	case ShutDown:
		s.shutDown(m)
	case Restore:
		s.restore(m)
	case Forked:
		s.forked(m)
	case Started:
		s.started(m)
	case Ended:
		s.ended(m)
	case Exited:
		s.exited(m)
	case Persisted:
		s.persisted(m.Record)
	case PersistFailed:
		s.persistFailed(m)
	case GatePersisted:
		s.gatePersisted(m.Gate)
	case Forgotten:
		s.forgotten(m)
	case ShutdownExpired:
		s.shutdownExpired()
	case Halt:
		s.finish(m.Err)
	case Tick:
		s.tick()
	case barrier:
	}
	s.admit()
	s.flush()
	s.closeIfDone()
	return s.out
}

// Next is when the first timer is due.
func (s *State) Next() (time.Time, bool) { return s.timers.next() }

// request answers what cannot wait and parks what must.
func (s *State) request(m Request) {
	if s.finished {
		s.refuse(m.Responder, errShuttingDown())
		return
	}
	if err := s.callerKnown(&m); err != nil {
		s.refuse(m.Responder, err)
		return
	}
	switch e := m.Event.(type) {
	case events.Spawn:
		s.spawn(m, e)
	case events.Query:
		s.query(m, e)
	case events.Cancel:
		s.cancel(m, e)
	case events.ListActive:
		s.list(m, e)
	case events.Completions:
		s.completions(m, e)
	case events.Outstanding:
		s.outstanding(m, e)
	default:
		s.refuse(m.Responder, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "there is no event %T", e))
	}
}

func (s *State) emit(e Effect) { s.out = append(s.out, e) }

func (s *State) reply(to Responder, r any) { s.emit(Reply{To: to, Answer: Answer{Reply: r}}) }

func (s *State) refuse(to Responder, err *events.Error) {
	s.emit(Reply{To: to, Answer: Answer{Error: err}})
}

// stamp is now as it is written into records.
func (s *State) stamp() time.Time { return s.now.UTC().Round(0) }

// tick lets due timers fire.
func (s *State) tick() {
	for range timersPerTick {
		t := s.timers.pop(s.now)
		if t == nil {
			return
		}
		switch t.kind {
		case timerWait:
			t.w.expire(s)
		case timerLease:
			s.release(t.l)
		case timerStart:
			s.stop(t.e, stopOrder{reason: events.ReasonStart, kill: true})
		case timerRun:
			s.stop(t.e, stopOrder{reason: events.ReasonDeadline, kill: true})
		case timerStop:
			s.stopAgain(t.e)
		case timerRetain:
			s.retainTimer = nil
			s.retain()
		}
	}
}

// change returns e's record to be changed. It is a copy of its own until the
// next flush, with the next sequence number.
func (s *State) change(e *subagent) *events.Record {
	if !e.dirty {
		next := *e.rec
		next.Seq++
		e.rec, e.dirty = &next, true
		s.dirty = append(s.dirty, e)
	}
	return e.rec
}

// move takes e to another state and announces it, if the table allows it.
func (s *State) move(e *subagent, to events.State, status events.Status, why Cause) bool {
	if !legal(Transition{e.rec.State, to, why}) {
		return false
	}
	r := s.change(e)
	if n := len(e.feed); n > 0 && e.feed[n-1].Seq == r.Seq {
		r.Seq++ // two states in one message
	}
	r.State, r.Status = to, status
	s.announce(e)
	s.place(e)
	return true
}

// announce notes e's state for the feed.
func (s *State) announce(e *subagent) {
	r := e.rec
	event := events.FeedEvent{
		Seq: r.Seq, SubagentID: e.id, Run: r.Run, At: s.stamp(),
		State: r.State, Status: r.Status,
		Session: r.ParentSessionID, Prompt: r.ParentPromptID,
	}
	if !r.Live() {
		event.Reason = r.Reason
	}
	e.feed = append(e.feed, event)
}

// place derives from e's record which sets it is in. It is the only writer of
// the slots and the queue.
func (s *State) place(e *subagent) {
	g := e.session
	delete(s.queued, e)
	delete(s.slots, e)
	delete(g.slots, e)
	if e.rec.State == events.StateQueued {
		s.queued[e] = struct{}{}
	}
	if e.holdsSlot() {
		s.slots[e] = struct{}{}
		g.slots[e] = struct{}{}
	}
	s.setTypeSlot(e, e.holdsSlot())
	s.offer(g)
}

// flush makes every changed record durable.
func (s *State) flush() {
	for _, e := range s.dirty {
		e.dirty = false
		if e.unsettledSince.IsZero() {
			e.unsettledSince = s.now
		}
		s.unsettled[e] = struct{}{}
		p := Persist{Record: e.rec}
		if e.durable == nil {
			p.Spec = e.spec
		}
		s.emit(p)
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
}

// persisted notes that r is durable and does what waited for it.
func (s *State) persisted(r *events.Record) {
	s.storeError = nil
	e := s.byID[r.ID]
	if e == nil || (e.durable != nil && e.durable.Seq >= r.Seq) {
		return
	}
	ended := e.endDurable()
	e.durable = r
	if e.settled() {
		e.unsettledSince = time.Time{}
		delete(s.unsettled, e)
	}
	s.publish(e)
	if e.endDurable() {
		if !ended {
			s.setLive(e, false)
			e.spec = nil
			s.place(e)
		}
		s.setUnread(e)
		if !ended {
			s.bury(e)
		}
		s.carryOutForget(e)
		s.trim(e.session)
	}
	s.proceed(e)
	s.poke(e)
}

// publish puts the announced states that are durable on the feed.
func (s *State) publish(e *subagent) {
	n := 0
	for n < len(e.feed) && e.feed[n].Seq <= e.durable.Seq {
		s.emit(Publish{Event: e.feed[n]})
		n++
	}
	e.feed = e.feed[n:]
	if len(e.feed) == 0 {
		e.feed = nil
	}
}

// persistFailed notes that the store failed. A spawn that was not durable yet is
// refused; whatever else waits for the record is answered once patience ends.
func (s *State) persistFailed(m PersistFailed) {
	if m.Err.Code == events.CodeStoreConflict {
		s.finish(m.Err)
		return
	}
	s.storeError = m.Err
	e := s.byID[m.ID]
	if e == nil {
		return
	}
	if e.durable == nil && e.refused == nil {
		s.refuseSpawn(e, m.Err)
		return
	}
	told := !e.rec.Live() || e.rec.Background
	if !told || s.now.Sub(e.unsettledSince) < storePatience {
		return
	}
	for _, w := range waiting(e) {
		if w.base().timer == nil {
			s.fail(w, notDurable(e, m.Err))
		}
	}
}

func notDurable(e *subagent, err *events.Error) *events.Error {
	return events.Errorf(err.Code, err.Layer, "subagent %s is %s, but that is not durable yet: %w", e.id, e.rec.State, err).
		WithRemedy("make space for the state directory; then ask again by id")
}

// finish ends the coordinator: every request is answered, no message has an
// effect any more.
func (s *State) finish(err *events.Error) {
	if s.finished {
		return
	}
	s.finished = true
	because := err
	if because == nil {
		because = errShuttingDown()
	}
	for _, w := range sorted(s.waits) {
		s.fail(w, because)
	}
	if s.closing != nil {
		s.answerClosing()
	}
	s.flush()
	s.emit(Finish{Err: err})
}

func errShuttingDown() *events.Error {
	return events.Errorf(events.CodeShuttingDown, events.LayerCoordinator, "the coordinator is shutting down").
		WithRemedy("ask again once it has been started anew")
}

// mintToken returns a token that is good for one subject token.
func (s *State) mintToken() string {
	s.tokens++
	return s.epoch + "-" + strconv.FormatUint(s.tokens, 36)
}
