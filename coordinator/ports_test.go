package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hayward-dev/hayward/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryJournal is a journal with compare-and-set that can be slow, refuse or
// hang, and that checks what the persister promises.
type memoryJournal struct {
	t testing.TB

	mu       sync.Mutex
	records  map[string]Put
	puts     int
	inflight map[string]bool
	most     int // writes seen under way at once
	history  map[string][]uint64
	gates    map[promptKey]events.Gate
	noDelete error
	// latency delays each write; fault is asked before each write.
	latency time.Duration
	fault   func(ctx context.Context, p Put) error
}

func newMemoryJournal(t testing.TB) *memoryJournal {
	return &memoryJournal{t: t, records: map[string]Put{}, inflight: map[string]bool{}, history: map[string][]uint64{}, gates: map[promptKey]events.Gate{}}
}

func (j *memoryJournal) Put(ctx context.Context, p Put) (uint64, error) {
	id := p.Record.ID
	j.mu.Lock()
	if j.inflight[id] {
		j.t.Errorf("two writes of %s at once", id)
	}
	j.inflight[id] = true
	j.puts++
	j.most = max(j.most, len(j.inflight))
	latency, fault := j.latency, j.fault
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		delete(j.inflight, id)
		j.mu.Unlock()
	}()
	if latency > 0 {
		time.Sleep(latency) // fake time
	}
	if fault != nil {
		if err := fault(ctx, p); err != nil {
			return 0, err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	old := j.records[id]
	if old.Revision != p.Revision {
		return 0, events.Errorf(events.CodeStoreConflict, events.LayerCoordinator, "revision %d, not %d", old.Revision, p.Revision)
	}
	if p.Revision == 0 && p.Spec == nil {
		j.t.Errorf("the first write of %s has no spec", id)
	}
	if p.Spec == nil {
		p.Spec = old.Spec
	}
	p.Revision++
	j.records[id] = p
	j.history[id] = append(j.history[id], p.Record.Seq)
	return p.Revision, nil
}

func (j *memoryJournal) Delete(_ context.Context, id string, revision uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.inflight[id] {
		j.t.Errorf("%s is removed while it is written", id)
	}
	if j.noDelete != nil {
		return j.noDelete
	}
	if old := j.records[id]; old.Revision != revision || old.Record.Live() {
		return events.Errorf(events.CodeStoreConflict, events.LayerCoordinator, "revision %d, not %d", old.Revision, revision)
	}
	delete(j.records, id)
	return nil
}

func (j *memoryJournal) PutGate(_ context.Context, g events.Gate) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gates[promptKey{g.Session, g.Prompt}] = g
	return nil
}

func (j *memoryJournal) DeleteGate(_ context.Context, session, prompt string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.gates, promptKey{session, prompt})
	return nil
}

func (j *memoryJournal) set(latency time.Duration, fault func(context.Context, Put) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.latency, j.fault = latency, fault
}

func (j *memoryJournal) record(id string) events.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.records[id].Record
}

// stored is what a coordinator started anew would load.
func (j *memoryJournal) stored() (list []Stored) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.records {
		st := Stored{Record: p.Record, Revision: p.Revision}
		if p.Record.Live() {
			st.Spec = p.Spec
		}
		list = append(list, st)
	}
	return list
}

// obedient is a spawner whose children do what their prompt says: "ok" ends at
// once, "wait" ends when stopped, "stuck" when killed.
type obedient struct {
	t        testing.TB
	observer Observer

	mu       sync.Mutex
	children map[string]events.Spec
	calls    map[string][]string
	live     int
	most     int
}

func newObedient(t testing.TB) *obedient {
	return &obedient{t: t, children: map[string]events.Spec{}, calls: map[string][]string{}}
}

func (o *obedient) note(id, call string) {
	o.calls[id] = append(o.calls[id], call)
}

func (o *obedient) Start(spec events.Spec) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(spec.ID, "start")
	o.children[spec.ID] = spec
	o.live++
	o.most = max(o.most, o.live)
	o.observer.Forked(spec.ID, spec.Run, events.Fork{Process: events.Process{PID: 1, BootID: "b"}, TokenHash: "h"})
}

func (o *obedient) Release(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(id, "release")
	spec, there := o.children[id]
	if !there {
		return
	}
	o.observer.Started(id, spec.Run, events.SandboxReport{Active: true})
	if spec.Request.Prompt == "ok" {
		o.end(id, completed())
	}
}

func (o *obedient) Stop(id string, stop events.Stop) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(id, "stop")
	if spec, there := o.children[id]; there && (stop.Kill || spec.Request.Prompt != "stuck") {
		o.end(id, events.End{Status: events.StatusCancelled, Reason: stop.Reason})
	}
}

func (o *obedient) Adopt(spec events.Spec, r events.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(spec.ID, "adopt")
	if _, there := o.children[spec.ID]; !there {
		o.observer.Ended(spec.ID, spec.Run, events.End{Status: events.StatusFailed, Reason: events.ReasonCrash})
	}
}

func (o *obedient) end(id string, end events.End) {
	o.observer.Ended(id, o.children[id].Run, end)
	delete(o.children, id)
	o.live--
}

// finish ends a child by itself.
func (o *obedient) finish(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end(id, completed())
}

func (o *obedient) callsOf(id string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.calls[id])
}

// memoryFeed is a publisher that checks the order of each subagent.
type memoryFeed struct {
	t     testing.TB
	mu    sync.Mutex
	last  map[string]uint64
	list  []events.FeedEvent
	fault func() error
}

func newMemoryFeed(t testing.TB) *memoryFeed { return &memoryFeed{t: t, last: map[string]uint64{}} }

func (f *memoryFeed) Publish(_ context.Context, e events.FeedEvent) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault != nil {
		if err := f.fault(); err != nil {
			return err
		}
	}
	if e.Seq <= f.last[e.SubagentID] {
		f.t.Errorf("the feed of %s goes from %d to %d", e.SubagentID, f.last[e.SubagentID], e.Seq)
	}
	f.last[e.SubagentID] = e.Seq
	f.list = append(f.list, e)
	return nil
}

func (f *memoryFeed) states(id string) (states []events.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.list {
		if e.SubagentID == id {
			states = append(states, e.State)
		}
	}
	return states
}

// memoryFiles returns outputs of one byte, repeated.
type memoryFiles struct {
	fill  string
	size  int64
	fault error
}

func (f memoryFiles) Output(id string, limit int) (events.Output, error) {
	if f.fault != nil {
		return events.Output{}, f.fault
	}
	n := min(int64(limit), f.size)
	return events.Output{Text: strings.Repeat(f.fill, int(n)), Bytes: f.size, Truncated: n < f.size, Ref: id + "/stdout.log"}, nil
}

func (f memoryFiles) Progress(id string) *events.Progress {
	return &events.Progress{LastLine: "progress of " + id}
}

// bench is a coordinator with its ports.
type bench struct {
	t       testing.TB
	c       *Coordinator
	journal *memoryJournal
	spawner *obedient
	feed    *memoryFeed
	cancel  context.CancelFunc
	ended   chan error
}

func newBench(t testing.TB, cfg Config) *bench {
	b := &bench{t: t, journal: newMemoryJournal(t), spawner: newObedient(t), feed: newMemoryFeed(t), ended: make(chan error, 1)}
	b.c = New(cfg, Deps{Journal: b.journal, Spawner: b.spawner, Publisher: b.feed, Files: memoryFiles{fill: "x", size: 3}})
	b.spawner.observer = b.c
	return b
}

func (b *bench) run(stored ...Stored) *bench {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go func() { b.ended <- b.c.Run(ctx, Restore{Stored: stored}) }()
	return b
}

// stop ends the coordinator as a crash would and waits for it.
func (b *bench) stop() {
	b.t.Helper()
	b.cancel()
	require.NoError(b.t, <-b.ended)
}

// submit is a request whose answer is read later.
func (b *bench) submit(e events.SubagentEvent) mailbox {
	b.t.Helper()
	to := make(mailbox, 2)
	require.Nil(b.t, b.c.Submit(Request{Caller: Caller{Principal: "client"}, Event: e, Responder: to}))
	return to
}

func reply[R any](t testing.TB, to mailbox) R {
	t.Helper()
	a := <-to
	require.Nil(t, a.Error)
	r, ok := a.Reply.(R)
	require.True(t, ok, "the reply is %T", a.Reply)
	return r
}

func failure(t testing.TB, to mailbox) *events.Error {
	t.Helper()
	a := <-to
	require.NotNil(t, a.Error, "the reply is %+v", a.Reply)
	return a.Error
}

func command(name, prompt string) events.Spawn {
	s := spawnOf(name, "s")
	s.Prompt = prompt
	return s
}

func ids(n int) (list []string) {
	for i := range n {
		list = append(list, idOf(fmt.Sprint("n", i)))
	}
	return list
}
