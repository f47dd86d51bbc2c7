package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

// TestStateProperties drives the state with random interleavings of commands,
// writes that succeed or fail, children, time, shutdowns and restarts. The world
// checks every step: one answer a request, no command run twice, nothing started
// or let go before it is durable, ends sticky, every index as derived anew,
// slots within their limits. At the end everything is let to settle, and then
// nothing accepted may be lost and no completion either.
func TestStateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(m.actions())
		m.settle()
	})
}

// model is what a test knows beside the world.
type model struct {
	t *rapid.T
	w *world
	// accepted are the ids whose acceptance was answered; refused those whose
	// spawn was answered with an error and that are not otherwise known.
	accepted map[string]bool
	// open are the requests of this boot that have no answer yet.
	open map[*ticket]string
	// seen are answers already looked at; tokens those that may be acknowledged.
	tokens []string
	acked  map[string]bool // read and durable
	gone   []string        // removed since answers were last looked at
	n      int
}

func newModel(t *rapid.T) *model {
	limits := Limits{
		PerSession: rapid.IntRange(1, 3).Draw(t, "per session"), Total: rapid.IntRange(1, 4).Draw(t, "total"),
		QueueLength: rapid.IntRange(1, 5).Draw(t, "queue"), Depth: rapid.IntRange(1, 2).Draw(t, "depth"),
	}
	if rapid.Bool().Draw(t, "typed") {
		limits.PerType = map[string]int{"command": rapid.IntRange(1, 2).Draw(t, "per type")}
	}
	limits.AtLimit = rapid.SampledFrom([]AtLimit{QueueAtLimit, QueueAtLimit, FailAtLimit}).Draw(t, "at limit")
	kept := Retention{PerSession: rapid.IntRange(1, 6).Draw(t, "kept"), Age: time.Duration(rapid.IntRange(1, 300).Draw(t, "age")) * time.Second}
	return &model{
		t: t, w: newWorld(t, Config{Limits: limits, Retention: kept}),
		accepted: map[string]bool{}, open: map[*ticket]string{}, acked: map[string]bool{},
	}
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"spawn": m.spawn, "query": m.query, "cancel": m.cancel, "list": m.list,
		"completions": m.completions, "outstanding": m.outstanding, "ack": m.ack,
		"durable": m.durable, "durable 2": m.durable, "durable 3": m.durable, "fails": m.fails,
		"fork": m.fork, "start": m.start, "end": m.end, "fork 2": m.fork, "start 2": m.start,
		"remove": m.remove, "prune": m.prune,
		"time": m.time, "shutdown": m.shutdown, "restart": m.restart,
		"exited": m.exited,
		"":       func(*rapid.T) { m.collect() },
	}
}

func (m *model) request(name string, c Caller, e events.SubagentEvent) {
	if e.Validate() != nil {
		return
	}
	to := m.w.requestAs(name, c, e)
	m.open[to] = name
}

// collect looks at new answers.
func (m *model) collect() {
	// What was removed may be known again, as somebody else.
	gone := m.w.removed
	m.w.removed = nil
	for _, id := range gone {
		delete(m.accepted, id)
		delete(m.acked, id)
	}
	m.gone = gone
	for to, name := range m.open {
		if len(m.w.answers[to]) == 0 {
			continue
		}
		delete(m.open, to)
		a := m.w.answer(to)
		if a.AckToken != "" {
			m.tokens = append(m.tokens, a.AckToken)
			if len(a.Reads) == 0 {
				m.t.Fatalf("%s: a token without reads", name)
			}
		}
		switch r := a.Reply.(type) {
		case events.SpawnReply:
			if !slices.Contains(m.gone, r.SubagentID) {
				m.accepted[r.SubagentID] = true
			}
			m.truthful(r.Snapshot)
			if r.Backgrounded == r.Status.Terminal() || (r.Success == nil) != r.Backgrounded {
				m.t.Fatalf("spawn reply: %+v", r)
			}
		case events.QueryReply:
			for _, s := range r.Snapshots {
				m.truthful(s)
			}
		case events.ListActiveReply:
			for _, s := range r.Subagents {
				m.truthful(s)
			}
		case events.CompletionsReply:
			for _, c := range r.Completions {
				m.truthful(c.Snapshot)
				if m.acked[c.SubagentID] {
					m.t.Fatalf("%s was delivered after it was read", c.SubagentID)
				}
			}
			for _, id := range r.Acked {
				if slices.Contains(m.gone, id) {
					continue
				}
				m.acked[id] = true
				if m.w.stored[id].Record.ReadAt == nil {
					m.t.Fatalf("%s is said to be read and is not", id)
				}
			}
		case events.CancelReply:
			for _, c := range r.Results {
				if c.Outcome == events.CancelCancelled && !slices.Contains(m.gone, c.SubagentID) && m.w.stored[c.SubagentID].Record.Status != events.StatusCancelled {
					m.t.Fatalf("%s is said to be cancelled and is %s", c.SubagentID, m.w.stored[c.SubagentID].Record.Status)
				}
			}
		case nil:
			require.NotNil(m.t, a.Error)
		}
	}
}

// truthful holds a snapshot against what is durable: it may be older, never ahead.
func (m *model) truthful(s events.Snapshot) {
	r, there := m.w.stored[s.SubagentID]
	if slices.Contains(m.gone, s.SubagentID) {
		return // it was removed after the answer was made
	}
	if !there {
		m.t.Fatalf("a reply speaks of %s, which is not durable", s.SubagentID)
	}
	rank := []events.State{events.StateQueued, events.StatePending, events.StateActive, events.StateCompleted}
	if slices.Index(rank, s.State) > slices.Index(rank, r.Record.State) {
		m.t.Fatalf("a reply says that %s is %s, durable is %s", s.SubagentID, s.State, r.Record.State)
	}
}

func (m *model) pick(label string, list []string) string {
	if len(list) == 0 {
		m.t.Skip("nothing to pick")
	}
	slices.Sort(list)
	return rapid.SampledFrom(list).Draw(m.t, label)
}

func (m *model) known() (ids []string) {
	for id := range m.w.state.byID {
		ids = append(ids, id)
	}
	return ids
}

func (m *model) spawn(t *rapid.T) {
	m.n++
	name := fmt.Sprintf("n%d", m.n)
	if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
		name = fmt.Sprintf("n%d", max(1, m.n-2)) // an id that is probably taken
	}
	e := spawnOf(name, rapid.SampledFrom([]string{"s", "r"}).Draw(t, "session"))
	e.ParentPromptID = rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "prompt")
	e.Reopen = e.ParentPromptID != "" && rapid.IntRange(0, 3).Draw(t, "reopen") == 0
	if rapid.IntRange(0, 2).Draw(t, "other type") == 0 {
		e.SubagentType = "other"
	}
	if ids := m.known(); len(ids) > 0 && rapid.IntRange(0, 3).Draw(t, "with input") == 0 {
		e.Inputs = map[string]string{"in": m.pick("input", ids)}
	}
	e.Name = rapid.SampledFrom([]string{"", "", "one", "two"}).Draw(t, "name")
	e.RunInBackground = rapid.Bool().Draw(t, "background")
	if rapid.Bool().Draw(t, "budget") {
		ms := int64(rapid.IntRange(1, 5000).Draw(t, "ms"))
		e.AwaitBudgetMS = &ms
	}
	e.Labels = map[string]string{"k": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "label")}
	if rapid.Bool().Draw(t, "may spawn") {
		e.MaySpawn = []string{events.AnyType}
	}
	caller := Caller{Principal: "client"}
	if ids := m.known(); len(ids) > 0 && rapid.IntRange(0, 4).Draw(t, "nested") == 0 {
		caller = Caller{Principal: m.pick("by", ids), Session: "s"}
	}
	m.request("spawn "+name, caller, e)
}

// caller is a client, or now and then a subagent.
func (m *model) caller(t *rapid.T) Caller {
	if ids := m.known(); len(ids) > 0 && rapid.IntRange(0, 4).Draw(t, "from inside") == 0 {
		return Caller{Principal: m.pick("by", ids)}
	}
	return Caller{Principal: "client"}
}

// exited tells that a child is gone before its end is told.
func (m *model) exited(t *rapid.T) {
	id := m.child(t)
	m.ask("exited", func(to Responder) Message { return Exited{ID: id, Run: 1, Responder: to} })
}

func (m *model) ref(t *rapid.T) string {
	ids := append(m.known(), idOf("nobody"), "one", "two")
	id := m.pick("ref", ids)
	if events.ValidID(id) && rapid.IntRange(0, 4).Draw(t, "tail") == 0 {
		return id[24:]
	}
	return id
}

func (m *model) query(t *rapid.T) {
	q := events.Query{Block: rapid.Bool().Draw(t, "block"), MarkRead: rapid.Bool().Draw(t, "mark")}
	for range rapid.IntRange(1, 3).Draw(t, "ids") {
		q.IDs = append(q.IDs, m.ref(t))
	}
	q.Mode = rapid.SampledFrom([]events.QueryMode{"", events.QueryAny, events.QueryAll}).Draw(t, "mode")
	q.ParentSessionID = rapid.SampledFrom([]string{"", "s", "r"}).Draw(t, "session")
	if rapid.Bool().Draw(t, "timeout") {
		ms := int64(rapid.IntRange(0, 20_000).Draw(t, "ms"))
		q.TimeoutMS = &ms
	}
	m.request("query", m.caller(t), q)
}

func (m *model) cancel(t *rapid.T) {
	c := events.Cancel{ParentSessionID: rapid.SampledFrom([]string{"s", "r"}).Draw(t, "session")}
	switch rapid.IntRange(0, 5).Draw(t, "target") {
	case 0:
		c.Target.ParentPromptID = "p"
	case 1:
		c.Target.Session = true
	case 2:
		c.Target.Label = map[string]string{"k": "1"}
	default:
		c.ParentSessionID = ""
		c.Target.IDs = []string{m.ref(t)}
	}
	c.Kill, c.DryRun = rapid.Bool().Draw(t, "kill"), rapid.IntRange(0, 5).Draw(t, "dry") == 0
	m.request("cancel", m.caller(t), c)
}

func (m *model) list(t *rapid.T) {
	l := events.ListActive{IncludeFinished: rapid.Bool().Draw(t, "finished"), Max: rapid.IntRange(0, 2).Draw(t, "max")}
	if rapid.Bool().Draw(t, "since") {
		ms := int64(rapid.IntRange(0, 60_000).Draw(t, "ms"))
		l.SinceMS = &ms
	}
	m.request("list", m.caller(t), l)
}

func (m *model) completions(t *rapid.T) {
	c := events.Completions{ParentSessionID: rapid.SampledFrom([]string{"s", "r"}).Draw(t, "session"), Peek: rapid.IntRange(0, 4).Draw(t, "peek") == 0}
	if rapid.Bool().Draw(t, "lease") {
		ms := int64(rapid.IntRange(0, 10_000).Draw(t, "ms"))
		c.LeaseMS = &ms
	}
	if ids := m.known(); len(ids) > 0 {
		if rapid.IntRange(0, 2).Draw(t, "ack") == 0 {
			c.AckIDs = []string{m.pick("id", ids)}
		}
		if rapid.IntRange(0, 2).Draw(t, "suppress") == 0 {
			c.SuppressIDs = []string{m.pick("id", ids)}
		}
	}
	most := rapid.IntRange(0, 3).Draw(t, "max")
	c.Max = &most
	m.request("completions", m.caller(t), c)
}

func (m *model) remove(t *rapid.T) {
	m.ask("remove", func(to Responder) Message {
		return Remove{events.RemoveRequest{IDs: []string{m.ref(t)}, DryRun: rapid.IntRange(0, 4).Draw(t, "dry") == 0}, to}
	})
}

func (m *model) prune(t *rapid.T) {
	keep := rapid.IntRange(0, 3).Draw(t, "keep")
	m.ask("prune", func(to Responder) Message { return Prune{events.PruneRequest{Keep: &keep}, to} })
}

// ask is request for what is no event.
func (m *model) ask(name string, of func(Responder) Message) {
	to := &ticket{name}
	m.w.answers[to] = nil
	m.open[to] = name
	m.w.apply(of(to))
}

func (m *model) outstanding(*rapid.T) {
	m.request("outstanding", Caller{Principal: "client"}, events.Outstanding{ParentSessionID: "s", ParentPromptID: "p"})
}

func (m *model) ack(*rapid.T) {
	m.w.apply(Ack{Token: m.pick("token", slices.Clone(m.tokens))})
}

func (m *model) durable(*rapid.T) { m.w.ack(m.pick("id", slices.Clone(m.w.order))) }

func (m *model) fails(t *rapid.T) {
	code := rapid.SampledFrom([]events.Code{events.CodeStorageFull, events.CodeStorageFailed}).Draw(t, "code")
	m.w.fail(m.pick("id", slices.Clone(m.w.order)), code)
}

// child picks one of the processes, or now and then an id that has none.
func (m *model) child(t *rapid.T) string {
	if rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
		return m.pick("id", m.known())
	}
	var ids []string
	for id := range m.w.children {
		ids = append(ids, id)
	}
	return m.pick("id", ids)
}

func (m *model) fork(t *rapid.T) { m.w.fork(m.child(t)) }

func (m *model) start(t *rapid.T) { m.w.apply(Started{ID: m.child(t), Run: 1}) }

// end ends a child: by itself, by a stop, or by a crash. Only what was let go or
// stopped ends otherwise than by failing to start.
func (m *model) end(t *rapid.T) {
	id := m.child(t)
	m.endChild(id, rapid.IntRange(0, 2).Draw(t, "how"))
}

func (m *model) endChild(id string, how int) {
	c := m.w.children[id]
	end := completed()
	switch {
	case c != nil && c.gone && m.w.ran[id] == 0:
		end = events.End{Status: events.StatusFailed, Reason: events.ReasonCrash, NotRun: true}
	case c != nil && c.gone, how == 1:
		end = events.End{Status: events.StatusFailed, Reason: events.ReasonCrash}
	case c != nil && len(c.stops) > 0 && how == 2:
		end = events.End{Status: events.StatusCancelled, Reason: c.stops[0].Reason}
	case c != nil && !c.released:
		end = events.End{Status: events.StatusFailed, Reason: events.ReasonStart}
	}
	m.w.end(id, end)
	delete(m.w.children, id)
}

func (m *model) time(t *rapid.T) {
	m.w.advance(time.Duration(rapid.IntRange(1, 40_000).Draw(t, "ms")) * time.Millisecond)
}

func (m *model) shutdown(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip("not this time")
	}
	to := &ticket{"shutdown"}
	m.w.answers[to] = nil
	m.open[to] = "shutdown"
	m.w.apply(ShutDown{events.ShutdownRequest{Kill: rapid.Bool().Draw(t, "kill"), Handover: rapid.Bool().Draw(t, "handover")}, to})
}

// restart ends the coordinator as a crash does: callers get no answer, writes
// that were under way are lost.
func (m *model) restart(*rapid.T) {
	m.collect()
	m.open, m.tokens = map[*ticket]string{}, nil
	m.w.boot()
}

// settle lets everything come to its end and looks at what is left.
func (m *model) settle() {
	w := m.w
	w.ackAll()
	if w.state.closing != nil || w.state.finished {
		m.finishShutdown()
	}
	for range 1000 {
		w.ackAll()
		var ids []string
		for id := range w.children {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if len(ids) == 0 {
			break
		}
		for _, id := range ids {
			w.fork(id)
			w.ackAll()
			w.apply(Started{ID: id, Run: 1})
			w.ackAll()
			m.endChild(id, 0)
		}
	}
	w.ackAll()
	w.advance(time.Hour)
	w.ackAll()
	m.collect()
	require.Empty(m.t, m.open, "requests without an answer")
	require.Empty(m.t, w.state.waits)
	require.Empty(m.t, w.state.slots)
	require.Empty(m.t, w.state.queued)
	require.Empty(m.t, w.state.unsettled)
	for id := range m.accepted {
		require.Equal(m.t, events.StateCompleted, w.stored[id].Record.State, "%s was accepted", id)
	}
	m.readAll()
}

// finishShutdown ends the children of a shutdown, then starts a coordinator anew.
func (m *model) finishShutdown() {
	w := m.w
	for id := range w.children {
		if !w.state.finished && !w.state.closing.handover {
			m.endChild(id, 2)
			w.ackAll()
		}
	}
	for range 100 {
		if w.state.finished {
			break
		}
		w.advance(time.Minute)
		for id := range w.children {
			if c := w.children[id]; len(c.stops) > 0 {
				m.endChild(id, 2)
			}
		}
		w.ackAll()
	}
	require.True(m.t, w.state.finished, "the shutdown has no end")
	m.collect()
	require.Empty(m.t, m.open, "requests without an answer after a shutdown")
	m.restart(m.t)
}

// readAll drains the completions: exactly what is unread in the store, in order,
// each once.
func (m *model) readAll() {
	w := m.w
	for _, session := range []string{"s", "r"} {
		want := map[string]bool{}
		for id, st := range w.stored {
			if st.Record.ParentSessionID == session && st.Record.ReadAt == nil {
				want[id] = true
			}
		}
		last := uint64(0)
		for {
			to := w.request("drain", events.Completions{ParentSessionID: session})
			a := w.answer(to)
			page := a.Reply.(events.CompletionsReply).Completions
			if len(page) == 0 {
				break
			}
			for _, c := range page {
				require.True(m.t, want[c.SubagentID], "%s was delivered twice or read before", c.SubagentID)
				delete(want, c.SubagentID)
				require.Equal(m.t, c.SubagentID+".1", c.DedupeID)
				order := w.stored[c.SubagentID].Record.EndOrder
				require.Greater(m.t, order, last)
				last = order
			}
			w.apply(Ack{Token: a.AckToken})
			w.ackAll()
		}
		require.Empty(m.t, want, "completions were lost")
	}
	require.Zero(m.t, w.state.stats().Unread)
	require.False(m.t, strings.Contains(fmt.Sprint(w.finished), "conflict"))
}
