package daemon

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/tracecontext"
	"github.com/hayward-dev/hayward/internal/tracing"
)

// traces tells a tracer of what becomes durable, with the times of a start that
// no record holds. Without a tracer it only hands trace contexts on.
type traces struct {
	tracer *tracing.Tracer

	mu sync.Mutex
	// marks are the times of the live subagents that this coordinator accepted;
	// guarded by mu.
	marks map[string]*tracing.Marks
}

func newTraces(t *tracing.Tracer) *traces {
	return &traces{tracer: t, marks: make(map[string]*tracing.Marks)}
}

// begin is where the subagent that a request asks for stands in a trace.
func (t *traces) begin(h micro.Headers) *events.Trace {
	return t.tracer.Begin(tracecontext.Parse(h.Get(events.HeaderTraceParent), h.Get(events.HeaderTraceState)))
}

// mark notes a time of a subagent, if it is one of ours.
func (t *traces) mark(id string, note func(*tracing.Marks, time.Time)) {
	if t.tracer == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.marks[id]; m != nil {
		note(m, time.Now())
	}
}

// durable is a watcher of [stages].
func (t *traces) durable(s step) {
	if t.tracer == nil {
		return
	}
	now, r := time.Now(), s.record
	t.mu.Lock()
	if s.accepted && r.Live() {
		t.marks[r.ID] = &tracing.Marks{Accepted: now}
	}
	marks := tracing.Marks{}
	if m := t.marks[r.ID]; m != nil {
		marks = *m
	}
	if s.ended {
		delete(t.marks, r.ID)
	}
	t.mu.Unlock()
	if s.started || (s.ended && r.StartedAt == nil) {
		t.tracer.Started(r, marks)
	}
	if s.ended {
		t.tracer.Ended(r, now)
	}
}

// releases notes when children are let go.
type releases struct {
	coordinator.Spawner
	traces *traces
}

// Release implements [coordinator.Spawner].
func (r releases) Release(id string) {
	r.traces.mark(id, func(m *tracing.Marks, now time.Time) { m.Released = now })
	r.Spawner.Release(id)
}
