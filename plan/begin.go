package plan

import (
	"time"

	"github.com/hayward-dev/hayward/events"
)

// newRun lays out the graph of a run, as far as earlier executions of it came.
func newRun(p *Plan, runner Runner, o Options) *run {
	if o.RunID == "" {
		o.RunID = events.NewID()
	}
	if o.Prompt == "" {
		o.Prompt = o.RunID
	}
	if o.Jobs == 0 {
		o.Jobs = p.Jobs
	}
	if o.Jobs == 0 {
		o.Jobs = maxInFlight
	}
	if o.Refresh == 0 {
		o.Refresh = DefaultRefresh
	}
	n := len(p.Subagents)
	r := &run{
		plan: p, runner: runner, options: o, started: time.Now(),
		nodes: make([]node, n), index: make(map[string]int, n), byID: make(map[string]int, n), inFlight: make(map[int]bool), left: n,
		stopping: make(chan struct{}), spawns: make(chan struct{}, maxSpawns),
		// Buffered so that workers never wait for a loop that has left.
		ended: make(chan ended, n), seen: make(chan []events.Snapshot, 1), hooked: make(chan hooked, 1),
		hooks: make(chan struct{}, maxHooks),
	}
	for i, s := range p.Subagents {
		r.index[s.Name] = i
		r.nodes[i] = node{sub: s, attempt: 1, waits: len(s.Needs), row: Row{Name: s.Name, State: StateWaiting}}
		r.nodes[i].result = Result{Name: s.Name, Entry: s.Entry, Line: s.Line, Needs: s.Needs}
	}
	for i, s := range p.Subagents {
		for _, need := range s.Needs {
			d := &r.nodes[r.index[need]]
			d.dependents = append(d.dependents, i)
		}
	}
	for i := range r.nodes {
		r.takeUp(i)
	}
	for i := range r.nodes {
		if n := &r.nodes[i]; n.waits == 0 && !n.begun {
			r.ready = append(r.ready, i)
		}
	}
	return r
}

// takeUp puts node i where earlier executions of the run left it.
func (r *run) takeUp(i int) {
	n := &r.nodes[i]
	earlier := r.options.Earlier[n.sub.Name]
	n.attempt = max(1, earlier.Attempt)
	n.id = subagentID(r.options.RunID, n.sub.Name, n.attempt)
	switch {
	case earlier.Completed != nil:
		n.begun, n.result = true, *earlier.Completed
		n.row.finish(n.result)
		r.left--
		for _, d := range n.dependents {
			r.nodes[d].waits--
		}
	case earlier.Live:
		n.begun = true
		n.row.State, n.row.Since = StateQueued, r.started
		r.joined = append(r.joined, i)
	}
}
