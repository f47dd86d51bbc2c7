package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// node is one subagent of a run. The run's goroutine owns it.
type node struct {
	sub *Subagent
	id  string
	// attempt counts the ids that this subagent has had, this one included.
	attempt int
	row     Row
	// begun is set once it was handed to the coordinator, by this execution or an
	// earlier one.
	begun bool
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
	// keepErr is the first failure to make an end durable.
	keepErr error
	// joined are nodes that an earlier execution started and that have not ended.
	joined []int
	// failedBy is the subagent whose failure ends the run.
	failedBy string

	// work ends when the run gives up; requests are made under it.
	work context.Context
	// stopping is closed when no spawn must be made any more.
	stopping chan struct{}
	stage    stage
	giveUp   *time.Timer
	// interrupted tells an end that was asked for from one by fail_fast.
	interrupted bool
	// hooking ends when hooks are to be killed.
	hooking   context.Context
	stopHooks context.CancelFunc

	// spawns bounds concurrent spawn requests.
	spawns chan struct{}
	ended  chan ended
	seen   chan []events.Snapshot
	hooked chan hooked
	hooks  chan struct{} // bounds concurrent hooks
	// hooksLeft counts those that have not ended, hookFailures those that failed.
	hooksLeft, hookFailures int
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
	r.hooking, r.stopHooks = context.WithCancel(work)
	defer r.stopHooks()
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
	return r.summary(), errors.Join(r.err, r.keepErr)
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
	r.owedHooks()
	for {
		r.start()
		if r.left == 0 && r.hooksLeft == 0 {
			return
		}
		select {
		case h := <-r.hooked:
			r.endHook(h)
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
				r.escalate()
				continue
			}
			// The drivers return at once now, each with what it knows.
			abandon()
		}
	}
}

// start hands out ready nodes as far as the limit allows. What an earlier
// execution started is watched whatever the limit: it runs already.
func (r *run) start() {
	for _, i := range r.joined {
		r.drive(i, true)
	}
	r.joined = nil
	for len(r.ready) > 0 && len(r.inFlight) < r.options.Jobs && r.stage == stageRunning && r.err == nil {
		i := r.ready[0]
		r.ready = r.ready[1:]
		r.nodes[i].begun = true
		r.change(i, func(row *Row) { row.State, row.Since = StateQueued, time.Now() })
		r.drive(i, false)
	}
	if len(r.inFlight) == 0 && r.left > 0 && (r.stage != stageRunning || r.err != nil) {
		r.drop()
	}
}

// drive takes node i from its spawn, or with accepted from behind it, to its end.
func (r *run) drive(i int, accepted bool) {
	n := &r.nodes[i]
	r.byID[n.id] = i
	r.inFlight[i] = true
	d := &driver{run: r, id: n.id, spawn: r.spawn(n), accepted: accepted}
	r.workers.Go(func() { r.ended <- ended{i, d.drive()} })
}

// drop ends every node that was never started: the run is over.
func (r *run) drop() {
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.row.State.Ended() {
			continue
		}
		r.left--
		if r.stage == stageRunning {
			n.result.Status = StateSkipped
			n.result.Error = events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "not started: %w", ErrLost)
		} else {
			r.neverStarted(n)
		}
		r.change(i, func(row *Row) { row.finish(n.result) })
	}
	r.ready = nil
}

// neverStarted is the result of a node that the end of the run came before.
func (r *run) neverStarted(n *node) {
	n.result.Error = nil
	if r.failedBy != "" {
		n.result.Status, n.result.Reason, n.result.BlockedBy = StateSkipped, events.ReasonFailFast, r.failedBy
		return
	}
	n.result.Status, n.result.Reason = StateCancelled, events.ReasonUser
}

// spawn completes the request for n.
func (r *run) spawn(n *node) events.Spawn {
	s := n.sub.spawn()
	s.ID = n.id
	s.ParentSessionID, s.ParentPromptID = r.options.RunID, r.options.Prompt
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
	n.result.Attempt = n.attempt
	n.result.fill(n.id, o)
	// A run that ends has its own prompt cancelled: that refusal is no other end.
	if errors.Is(o.err, errStopped) || (o.never && r.stage != stageRunning && events.HasCode(o.err, events.CodePromptCancelled)) {
		n.result.Attempt = 0
		r.neverStarted(n)
	}
	if o.lost {
		r.fail(fmt.Errorf("run subagent %s (%s): %w", n.sub.Name, n.id, errors.Join(ErrLost, o.err)))
	}
	if n.result.known() {
		r.keep(n.result)
		r.hook(i, n.result)
	}
	r.change(i, func(row *Row) {
		row.finish(n.result)
		if o.never && row.Message != "" && n.sub.Line > 0 {
			row.Message = fmt.Sprintf("%s:%d: %s", r.plan.Path, n.sub.Line, row.Message)
		}
	})
	for _, d := range n.dependents {
		if n.result.Status == StateCompleted {
			if r.nodes[d].waits--; r.nodes[d].waits == 0 && !r.nodes[d].begun && !r.nodes[d].row.State.Ended() {
				r.ready = append(r.ready, d)
			}
			continue
		}
		r.skip(d, n.sub.Name)
	}
	if n.result.Status == StateFailed && r.plan.FailFast {
		r.failFast(n.sub.Name)
	}
}

// fail keeps the first error of the run itself.
func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// keep makes the end of an attempt durable. Subagents go on without: the
// coordinator has their ends as well.
func (r *run) keep(res Result) {
	if r.options.Keep == nil {
		return
	}
	if err := r.options.Keep(res); err != nil && r.keepErr == nil {
		r.keepErr = err
	}
}

// skip ends node i, and all that need it, because need did not complete. When
// the run is being ended they are cancelled with everything else.
func (r *run) skip(i int, need string) {
	n := &r.nodes[i]
	if n.begun || n.row.State.Ended() || r.stage != stageRunning {
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
