package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Runner is what a run needs of a coordinator. The Go client implements it. A
// call returns a typed [events.Error] or whatever kept the reply away.
type Runner interface {
	Spawn(ctx context.Context, spawn events.Spawn) (events.SpawnReply, error)
	Query(ctx context.Context, query events.Query) (events.QueryReply, error)
	Cancel(ctx context.Context, cancel events.Cancel) (events.CancelReply, error)
	Logs(ctx context.Context, request events.FileRequest) (events.FileReply, error)
}

// Observer is told how a run goes, from the goroutine of the run. Its methods
// must not block.
type Observer interface {
	// Begin comes first, with one row for each subagent in the plan's order.
	Begin(runID string, rows []Row)
	// Changed says that row i is now row.
	Changed(i int, row Row)
	// Interrupted comes when the run is told to end, and again when it is told to
	// kill; left are still in flight.
	Interrupted(left int, kill bool)
}

// Options are how to run a plan. The zero value is good.
type Options struct {
	// RunID is the run's id and its session. Default: a new one.
	RunID string
	// Jobs overrides the plan's.
	Jobs int
	// Env is the base environment of every subagent; the plan's own wins.
	Env map[string]string
	// LookupEnv resolves pass_env. Default: no variable is set.
	LookupEnv func(name string) (value string, ok bool)
	Observer  Observer
	// Refresh is how often the latest of running subagents is read for the
	// Observer. Default [DefaultRefresh].
	Refresh time.Duration
	// Interrupt ends the run: the first value gracefully, the second kills. The
	// end of Run's context counts as one.
	Interrupt <-chan struct{}
}

// The deadlines of a run.
const (
	// DefaultRefresh keeps a display lively at a cost that does not show.
	DefaultRefresh = 500 * time.Millisecond
	// patience is how long a coordinator may leave one subagent's requests
	// without an answer before the run gives up. It covers a restart.
	patience = 2 * time.Minute
	// gracePatience is how long a graceful end may take before the run kills, and
	// killPatience how long killing may take before the run gives up. Both are
	// well over the coordinator's own deadlines.
	gracePatience = 2 * time.Minute
	killPatience  = time.Minute
	// maxInFlight bounds the subagents handed to the coordinator when no number of
	// jobs is set, so that one plan does not fill its queue.
	maxInFlight = 500
	// maxSpawns bounds the spawn requests under way at once.
	maxSpawns = 8
)

// ErrLost is returned when the coordinator gave no answer for so long that the
// end of a subagent is not known.
var ErrLost = errors.New("the coordinator does not answer")

// node is one subagent of a run. The run's goroutine owns it.
type node struct {
	sub *Subagent
	id  string
	row Row
	// waits counts the needs that have not ended.
	waits int
	// dependents are indexes of the nodes that need this one.
	dependents []int
	result     Result
}

// run is one execution of a plan. Its fields belong to the goroutine in
// [Plan.Run], except where said.
type run struct {
	plan    *Plan
	runner  Runner
	options Options
	started time.Time

	nodes    []node
	index    map[string]int // by name
	byID     map[string]int
	ready    []int
	inFlight map[int]bool
	left     int
	err      error

	// work ends when the run gives up; requests are made under it.
	work context.Context
	// stopping is closed when no spawn must be made any more.
	stopping chan struct{}
	stage    stage
	giveUp   *time.Timer

	// spawns bounds concurrent spawn requests.
	spawns chan struct{}
	ended  chan ended
	seen   chan []events.Snapshot
	// polling is true while a poll is under way; its result comes on seen.
	polling bool
	// stopCanceller ends the canceller that runs, if one does. cancelErrs are the
	// last errors of the graceful and the killing one, each its own to write until
	// it has ended.
	stopCanceller context.CancelFunc
	cancelErrs    [2]error
	workers       sync.WaitGroup
}

// stage is how far an interrupt has gone.
type stage int

const (
	stageRunning stage = iota
	stageEnding
	stageKilling
)

// ended is the last word on node i.
type ended struct {
	i       int
	outcome outcome
}

// Run executes the plan and returns when every subagent has ended. The summary
// is complete whatever the error; the error is [ErrLost] when the end of some
// subagent could not be learnt.
func (p *Plan) Run(ctx context.Context, runner Runner, o Options) (Summary, error) {
	r := newRun(p, runner, o)
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.work = work
	if r.options.Observer != nil {
		rows := make([]Row, len(r.nodes))
		for i := range r.nodes {
			rows[i] = r.nodes[i].row
		}
		r.options.Observer.Begin(r.options.RunID, rows)
	}
	r.loop(ctx, cancel)
	cancel()
	r.workers.Wait()
	if r.err != nil {
		r.err = errors.Join(append([]error{r.err}, r.cancelErrs[:]...)...)
	}
	return r.summary(), r.err
}

func newRun(p *Plan, runner Runner, o Options) *run {
	if o.RunID == "" {
		o.RunID = events.NewID()
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
		ended: make(chan ended, n), seen: make(chan []events.Snapshot, 1),
	}
	for i, s := range p.Subagents {
		r.index[s.Name] = i
		r.nodes[i] = node{sub: s, waits: len(s.Needs), row: Row{Name: s.Name, State: StateWaiting}}
		r.nodes[i].result = Result{Name: s.Name, Entry: s.Entry, Needs: s.Needs}
		if len(s.Needs) == 0 {
			r.ready = append(r.ready, i)
		}
	}
	for i, s := range p.Subagents {
		for _, need := range s.Needs {
			d := &r.nodes[r.index[need]]
			d.dependents = append(d.dependents, i)
		}
	}
	return r
}

// loop runs until no node is left.
func (r *run) loop(ctx context.Context, abandon context.CancelFunc) {
	var tick <-chan time.Time
	if r.options.Observer != nil {
		ticker := time.NewTicker(r.options.Refresh)
		defer ticker.Stop()
		tick = ticker.C
	}
	r.giveUp = time.NewTimer(0)
	r.giveUp.Stop()
	defer r.giveUp.Stop()
	done := ctx.Done()
	for {
		r.start()
		if r.left == 0 {
			return
		}
		select {
		case e := <-r.ended:
			r.end(e.i, e.outcome)
		case snapshots := <-r.seen:
			r.polling = false
			r.observe(snapshots)
		case <-tick:
			r.poll()
		case <-r.options.Interrupt:
			r.interrupt()
		case <-done:
			done = nil
			r.interrupt()
		case <-r.giveUp.C:
			if r.stage == stageEnding {
				r.interrupt()
				continue
			}
			// The drivers return at once now, each with what it knows.
			abandon()
		}
	}
}

// start hands out ready nodes as far as the limit allows.
func (r *run) start() {
	for len(r.ready) > 0 && len(r.inFlight) < r.options.Jobs && r.stage == stageRunning && r.err == nil {
		i := r.ready[0]
		r.ready = r.ready[1:]
		n := &r.nodes[i]
		n.id = events.NewID()
		r.byID[n.id] = i
		r.inFlight[i] = true
		r.change(i, func(row *Row) { row.State, row.Since = StateQueued, time.Now() })
		d := &driver{run: r, id: n.id, spawn: r.spawn(n)}
		r.workers.Go(func() { r.ended <- ended{i, d.drive()} })
	}
	if len(r.inFlight) == 0 && r.left > 0 && (r.stage != stageRunning || r.err != nil) {
		r.drop()
	}
}

// drop ends every node that was never started: the run is over.
func (r *run) drop() {
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.row.State.Ended() {
			continue
		}
		r.left--
		n.result.Status, n.result.Reason = StateCancelled, events.ReasonUser
		if r.stage == stageRunning {
			n.result.Status, n.result.Reason = StateSkipped, ""
			n.result.Error = events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "not started: %w", ErrLost)
		}
		r.change(i, func(row *Row) { row.finish(n.result) })
	}
	r.ready = nil
}

// spawn completes the request for n.
func (r *run) spawn(n *node) events.Spawn {
	s := n.sub.spawn()
	s.ID = n.id
	s.ParentSessionID, s.ParentPromptID = r.options.RunID, r.options.RunID
	env := merged(r.options.Env, nil)
	for _, name := range n.sub.PassEnv {
		if v, ok := r.lookup(name); ok {
			env = merged(env, map[string]string{name: v})
		}
	}
	s.Env = merged(env, n.sub.Env)
	s.Labels = merged(map[string]string{LabelPlan: r.plan.Name}, n.sub.Labels)
	s.Labels[LabelRun] = r.options.RunID
	if len(n.sub.Inputs) > 0 {
		s.Inputs = make(map[string]string, len(n.sub.Inputs))
		for variable, need := range n.sub.Inputs {
			s.Inputs[variable] = r.nodes[r.index[need]].id
		}
	}
	return s
}

func (r *run) lookup(name string) (string, bool) {
	if r.options.LookupEnv == nil {
		return "", false
	}
	return r.options.LookupEnv(name)
}

// end records the outcome of node i and lets its dependents go on or skips them.
func (r *run) end(i int, o outcome) {
	n := &r.nodes[i]
	delete(r.inFlight, i)
	r.left--
	n.result.fill(n.id, o)
	if o.lost && r.err == nil {
		r.err = fmt.Errorf("run subagent %s (%s): %w", n.sub.Name, n.id, errors.Join(ErrLost, o.err))
	}
	r.change(i, func(row *Row) { row.finish(n.result) })
	for _, d := range n.dependents {
		if n.result.Status == StateCompleted {
			if r.nodes[d].waits--; r.nodes[d].waits == 0 && !r.nodes[d].row.State.Ended() {
				r.ready = append(r.ready, d)
			}
			continue
		}
		r.skip(d, n.sub.Name)
	}
}

// skip ends node i, and all that need it, because need did not complete. When
// the run is being ended they are cancelled with everything else.
func (r *run) skip(i int, need string) {
	n := &r.nodes[i]
	if n.row.State.Ended() || r.stage != stageRunning {
		return
	}
	r.left--
	n.result.Status, n.result.Reason, n.result.BlockedBy = StateSkipped, events.ReasonDependency, need
	r.change(i, func(row *Row) { row.finish(n.result) })
	for _, d := range n.dependents {
		r.skip(d, n.sub.Name)
	}
}

// change edits the row of node i and tells the observer if it is another now.
func (r *run) change(i int, edit func(*Row)) {
	row := r.nodes[i].row
	edit(&row)
	if row == r.nodes[i].row {
		return
	}
	r.nodes[i].row = row
	if r.options.Observer != nil {
		r.options.Observer.Changed(i, row)
	}
}
