package child

import (
	"sync"

	"github.com/hayward-dev/hayward/adapter"
	"github.com/hayward-dev/hayward/events"
)

// agent reads what an agent CLI says on its stdout. A nil agent is that of a plain
// command.
type agent struct {
	id  string
	out *outbox

	mu     sync.Mutex
	reader *adapter.Reader // guarded by mu
}

// newAgent returns the reader of the command of spec, or nil if it is no agent
// whose stream is known.
func newAgent(spec events.ChildSpec, out *outbox) *agent {
	if spec.Adapter == nil {
		return nil
	}
	reader := adapter.NewReader(*spec.Adapter)
	if reader == nil {
		out.note("there is no adapter for the agent " + spec.Adapter.Agent + ": its output is taken as it is")
		return nil
	}
	return &agent{id: spec.ID, out: out, reader: reader}
}

// write takes bytes that are in the file of stdout.
func (a *agent) write(b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out.said(a.reader.Write(b))
}

// show makes p that of an agent: what it said last, once it said something, instead
// of a line of its stream.
func (a *agent) show(p *events.Progress) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at, text := a.reader.Progress()
	p.Agent = &at
	var l lineTracker
	l.write([]byte(text))
	if said := l.line(); said != "" {
		p.LastLine = said
	}
}

// conclude completes the report of a run that has ended.
func (a *agent) conclude(r *events.Report) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	items, outcome := a.reader.End(a.id, r.Exit, r.Ended)
	a.out.said(items)
	r.Agent, r.Answer = &outcome.Result, outcome.Answer
	r.AgentError, r.AgentReason = outcome.Error, outcome.Reason
}
