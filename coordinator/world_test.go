package coordinator

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// epochStart is when the clock of every test world starts.
var epochStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// idOf makes a subagent id of a short name, so that tests can speak of "a".
func idOf(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	return fmt.Sprintf("00000000-0000-7000-8000-%012x", h.Sum64()&(1<<48-1))
}

// ticket is a responder of the state's tests: the harness reads the answer from
// the effect, so nothing calls it.
type ticket struct{ name string }

func (*ticket) Answer(Answer) {}

// tb is what a world needs of a test: *testing.T, *testing.B and *rapid.T have it.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	FailNow()
}

// world is what surrounds a State in a test: a clock, a store with writes under
// way, children, and the answers so far. It carries out effects on request only,
// so a test chooses every interleaving.
type world struct {
	t     tb
	cfg   Config
	state *State
	now   time.Time
	boots int

	// stored is what is durable; writing is the write under way of each id, next
	// what comes after it. order is that of the writes.
	stored  map[string]Stored
	writing map[string]Persist
	next    map[string]Persist
	order   []string
	// gates are those that are durable; closing those being written and forgets the
	// removals under way, both by the key that they have in order.
	gates   map[promptKey]events.Gate
	closing map[string]events.Gate
	forgets map[string]Forget
	removed []string
	// forced tells that ends may be removed that nobody has read.
	forced bool

	children map[string]*childSim
	// ran counts how often a subagent's command was let go, over all boots.
	ran      map[string]int
	answers  map[*ticket][]Answer
	feed     map[string][]events.FeedEvent
	finished []*events.Error
	effects  []Effect // of the last message
}

// childSim is a process of a subagent.
type childSim struct {
	forked, released, adopted bool
	// gone tells that there was nothing to adopt.
	gone  bool
	stops []events.Stop
}

func newWorld(t tb, cfg Config) *world {
	w := &world{
		t: t, cfg: cfg, now: epochStart,
		stored:   map[string]Stored{},
		children: map[string]*childSim{}, ran: map[string]int{}, answers: map[*ticket][]Answer{},
		feed: map[string][]events.FeedEvent{}, gates: map[promptKey]events.Gate{},
	}
	w.boot()
	return w
}

// boot starts a new state on what is durable, as a restart does. Writes that were
// under way are lost, and so are the callers.
func (w *world) boot() []Effect {
	w.boots++
	w.state = NewState(w.cfg, fmt.Sprintf("boot%d", w.boots))
	w.writing, w.next = map[string]Persist{}, map[string]Persist{}
	w.closing, w.forgets = map[string]events.Gate{}, map[string]Forget{}
	w.order, w.finished = nil, nil
	for id, c := range w.children {
		// The start pipe's other end is gone: a child that was not let go is, too.
		if !c.released {
			delete(w.children, id)
		}
	}
	stored := slices.Collect(maps.Values(w.stored))
	return w.apply(Restore{Stored: stored, Gates: slices.Collect(maps.Values(w.gates))})
}

// apply gives the state one message and notes its effects.
func (w *world) apply(m Message) []Effect {
	w.effects = slices.Clone(w.state.Apply(m, w.now))
	for _, e := range w.effects {
		switch e := e.(type) {
		case Persist:
			w.write(e)
		case PersistGate:
			w.hold(gateSlot(e.Gate.Session, e.Gate.Prompt))
			w.closing[gateSlot(e.Gate.Session, e.Gate.Prompt)] = e.Gate
		case ForgetGate:
			delete(w.gates, promptKey{e.Session, e.Prompt})
		case Forget:
			w.forget(e)
		case Publish:
			id := e.Event.SubagentID
			if n := len(w.feed[id]); n > 0 && w.feed[id][n-1].Seq >= e.Event.Seq {
				w.t.Fatalf("the feed of %s goes from %d to %d", id, w.feed[id][n-1].Seq, e.Event.Seq)
			}
			w.feed[id] = append(w.feed[id], e.Event)
		case Reply:
			to := e.To.(*ticket)
			w.answers[to] = append(w.answers[to], e.Answer)
			if n := len(w.answers[to]); n > 1 {
				w.t.Fatalf("%s was answered %d times", to.name, n)
			}
		case StartChild:
			id := e.Spec.ID
			if _, there := w.children[id]; there {
				w.t.Fatalf("%s was started twice", id)
			}
			if _, durable := w.stored[id]; !durable {
				w.t.Fatalf("%s was started before it was durable", id)
			}
			w.children[id] = &childSim{}
		case ReleaseChild:
			c := w.children[e.ID]
			if c == nil || !c.forked {
				w.t.Fatalf("%s was released before it was forked", e.ID)
			}
			if w.stored[e.ID].Record.Process == nil {
				w.t.Fatalf("%s was released before its identity was durable", e.ID)
			}
			c.released = true
			if w.ran[e.ID]++; w.ran[e.ID] > 1 {
				w.t.Fatalf("%s ran twice", e.ID)
			}
		case StopChild:
			if c := w.children[e.ID]; c != nil {
				c.stops = append(c.stops, e.Stop)
			}
		case AdoptChild:
			c := w.children[e.Record.ID]
			if c == nil {
				c = &childSim{gone: true}
				w.children[e.Record.ID] = c
			}
			c.adopted = true
		case Finish:
			w.finished = append(w.finished, e.Err)
		}
	}
	checkState(w.t, w.state)
	return w.effects
}

// write is what the persister does with an effect: one write of an id at a time,
// later states coalesce.
func (w *world) write(p Persist) {
	id := p.Record.ID
	old, waiting := w.next[id]
	if !waiting {
		old = w.writing[id]
	}
	if old.Record != nil && old.Record.Seq >= p.Record.Seq {
		w.t.Fatalf("record %s goes from %d to %d", id, old.Record.Seq, p.Record.Seq)
	}
	if p.Spec == nil {
		p.Spec = old.Spec
	}
	if _, busy := w.writing[id]; busy {
		w.next[id] = p
		return
	}
	w.begin(p)
}

func (w *world) begin(p Persist) {
	w.writing[p.Record.ID] = p
	w.order = append(w.order, p.Record.ID)
}

// hold puts key last in the order of what is under way.
func (w *world) hold(key string) {
	if !slices.Contains(w.order, key) {
		w.order = append(w.order, key)
	}
}

// forget notes a removal and checks that it may be.
func (w *world) forget(f Forget) {
	st := w.stored[f.ID]
	if st.Revision == 0 || st.Record.Live() {
		w.t.Fatalf("%s is removed and has not ended durably", f.ID)
	}
	if st.Record.ReadAt == nil && !w.forced {
		w.t.Fatalf("%s is removed and nobody has read it", f.ID)
	}
	if _, busy := w.writing[f.ID]; busy {
		w.t.Fatalf("%s is removed and written at once", f.ID)
	}
	for id, other := range w.stored {
		if !other.Record.Live() || other.Spec == nil {
			continue
		}
		for _, input := range other.Spec.Request.Inputs {
			if input == f.ID {
				w.t.Fatalf("%s is removed and %s reads it", f.ID, id)
			}
		}
	}
	w.forgets["forget "+f.ID] = f
	w.hold("forget " + f.ID)
}

// settleOther makes what is under way with key durable, if it is no record.
func (w *world) settleOther(key string) ([]Effect, bool) {
	drop := func() { w.order = slices.DeleteFunc(w.order, func(o string) bool { return o == key }) }
	if g, is := w.closing[key]; is {
		drop()
		delete(w.closing, key)
		w.gates[promptKey{g.Session, g.Prompt}] = g
		return w.apply(GatePersisted{Gate: g}), true
	}
	if f, is := w.forgets[key]; is {
		drop()
		delete(w.forgets, key)
		if f.Gate != nil {
			w.gates[promptKey{f.Gate.Session, f.Gate.Prompt}] = *f.Gate
		}
		delete(w.stored, f.ID)
		delete(w.feed, f.ID)
		delete(w.ran, f.ID)
		w.removed = append(w.removed, f.ID)
		return w.apply(Forgotten{ID: f.ID}), true
	}
	return nil, false
}

// taken ends the write of id that is under way, which is returned.
func (w *world) taken(id string) Persist {
	p, there := w.writing[id]
	if !there {
		w.t.Fatalf("nothing of %s is being written", id)
	}
	delete(w.writing, id)
	w.order = slices.DeleteFunc(w.order, func(o string) bool { return o == id })
	return p
}

// ack makes the write of id durable that is under way.
func (w *world) ack(id string) []Effect {
	if effects, other := w.settleOther(id); other {
		return effects
	}
	p := w.taken(id)
	if next, waiting := w.next[id]; waiting {
		delete(w.next, id)
		w.begin(next)
	}
	old := w.stored[id]
	if !old.Record.Live() && old.Revision > 0 && p.Record.Status != old.Record.Status {
		w.t.Fatalf("%s went from %s to %s after its end", id, old.Record.Status, p.Record.Status)
	}
	spec := p.Spec
	if spec == nil {
		spec = old.Spec
	}
	if !p.Record.Live() {
		spec = nil
	}
	w.stored[id] = Stored{Record: *p.Record, Revision: old.Revision + 1, Spec: spec}
	return w.apply(Persisted{Record: p.Record})
}

// fail fails the write of id that is under way. The latest state is tried again.
func (w *world) fail(id string, code events.Code) []Effect {
	if _, gate := w.closing[id]; gate {
		return nil // it is tried again
	}
	if f, is := w.forgets[id]; is {
		delete(w.forgets, id)
		w.order = slices.DeleteFunc(w.order, func(o string) bool { return o == id })
		return w.apply(Forgotten{ID: f.ID, Err: events.Errorf(code, events.LayerCoordinator, "removal failed")})
	}
	p := w.taken(id)
	if next, waiting := w.next[id]; waiting {
		delete(w.next, id)
		p = next
	}
	w.begin(p)
	return w.apply(PersistFailed{ID: id, Err: events.Errorf(code, events.LayerCoordinator, "put failed")})
}

// ackAll makes everything durable.
func (w *world) ackAll() {
	for len(w.order) > 0 {
		w.ack(w.order[0])
	}
}

// advance moves the clock and lets timers fire on their way.
func (w *world) advance(d time.Duration) []Effect {
	until := w.now.Add(d)
	var all []Effect
	for {
		at, armed := w.state.Next()
		if !armed || at.After(until) {
			break
		}
		if at.After(w.now) {
			w.now = at
		}
		all = append(all, w.apply(Tick{})...)
	}
	w.now = until
	return all
}

// request submits an event and returns the ticket of its answer.
func (w *world) request(name string, e events.SubagentEvent) *ticket {
	return w.requestAs(name, Caller{Principal: "client"}, e)
}

func (w *world) requestAs(name string, c Caller, e events.SubagentEvent) *ticket {
	require.Nil(w.t, e.Validate())
	to := &ticket{name}
	w.answers[to] = nil
	r := Request{Caller: c, Event: e, Responder: to, digest: "digest"}
	if spawn, is := e.(events.Spawn); is {
		r.Spawns = events.SpawnsOf(spawn.MaySpawn)
	}
	w.apply(r)
	return to
}

// answer returns the one answer of a ticket.
func (w *world) answer(to *ticket) Answer {
	w.t.Helper()
	require.Len(w.t, w.answers[to], 1, "answers of %s", to.name)
	return w.answers[to][0]
}

// run takes an accepted spawn to active.
func (w *world) run(id string) {
	w.t.Helper()
	w.ackAll()
	w.fork(id)
	w.ackAll()
	w.apply(Started{ID: id, Run: 1, Report: events.SandboxReport{Profile: "workspace", Active: true}})
	w.ackAll()
	require.Equal(w.t, events.StateActive, w.stored[id].Record.State)
}

func (w *world) fork(id string) []Effect {
	if c := w.children[id]; c != nil {
		c.forked = true
	}
	return w.apply(Forked{ID: id, Run: 1, Fork: events.Fork{
		Process: events.Process{PID: 4711, StartTime: 1, BootID: "boot"}, TokenHash: "hash", TempDir: "/tmp/x",
	}})
}

func (w *world) end(id string, end events.End) []Effect {
	effects := w.apply(Ended{ID: id, Run: 1, End: end})
	if end.NotRun {
		delete(w.children, id)
		w.ran[id] = 0 // the spawner died before it carried the release out
	}
	return effects
}

func completed() events.End {
	code := 0
	return events.End{Status: events.StatusCompleted, Exit: &events.Exit{Code: &code}, Output: &events.Output{Text: "hi\n", Bytes: 3}}
}

func spawnOf(name, session string) events.Spawn {
	return events.Spawn{
		ID: idOf(name), ParentSessionID: session, SubagentType: "command",
		Command: []string{"true"}, Cwd: "/w", Workspace: "/w",
	}
}

func background(s events.Spawn) events.Spawn {
	s.RunInBackground = true
	return s
}

// shorten replaces ids by the names they were made of.
func shorten(s string, names []string) string {
	pairs := make([]string, 0, 2*len(names))
	for _, n := range names {
		pairs = append(pairs, idOf(n), n)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}
