package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// execution is one process's part in a run: its beginning, or what is left of it.
type execution struct {
	flags   Flags
	stdio   Stdio
	signals *signals
	plan    *Plan
	// record is nil for a run that is not kept.
	record *Record
}

func (e *execution) run(ctx context.Context, connect Connect) (code int) {
	goesOn := e.record != nil
	if goesOn {
		if err := e.record.Take(); err != nil {
			return complain(e.stdio, ExitOwnError, err)
		}
	}
	defer func() {
		if e.record == nil {
			return
		}
		if err := e.record.Close(); err != nil {
			code = complain(e.stdio, ExitOwnError, fmt.Errorf("let go of run %s: %w", e.record.ID, err))
		}
	}()
	runner, code := reach(ctx, connect, e.signals, e.stdio)
	if runner == nil {
		return code
	}
	o := Options{
		Env: e.flags.Env, Environ: e.flags.Environ, LookupEnv: e.flags.LookupEnv,
		Interrupt: e.signals.interrupts,
	}
	if goesOn {
		if done, code := e.takeUp(ctx, runner, &o); done {
			return code
		}
	} else if err := e.begin(&o); err != nil {
		return complain(e.stdio, ExitOwnError, err)
	}
	return e.execute(ctx, runner, o)
}

// begin makes the record of a new run: nothing is spawned without it.
func (e *execution) begin(o *Options) error {
	if e.flags.Runs.Dir == "" {
		return nil
	}
	rec, err := e.flags.Runs.Create(e.plan)
	if err != nil {
		return err
	}
	e.record = rec
	o.RunID, o.Keep = rec.ID, rec.Keep
	if err := e.flags.Runs.Forget(time.Now().Add(-retention)); err != nil {
		complain(e.stdio, ExitCompleted, err) // it costs space, not this run
	}
	return nil
}

// takeUp finds out where a run is that goes on; done is true when it needs not.
func (e *execution) takeUp(ctx context.Context, runner Runner, o *Options) (done bool, code int) {
	if changed := e.record.Changed(); changed != "" {
		complain(e.stdio, ExitCompleted, fmt.Errorf("%s since run %s began; the plan goes on as it was then", changed, e.record.ID))
	}
	var survey Survey
	var err error
	interrupted := e.signals.during(ctx, func(ctx context.Context) { survey, err = e.record.Survey(ctx, runner) })
	for _, end := range survey.Fresh {
		if err == nil {
			err = e.record.Keep(end)
		}
	}
	switch {
	case interrupted:
		return true, complain(e.stdio, ExitInterrupted, errNothingStarted)
	case err != nil:
		return true, complain(e.stdio, ExitOwnError, err)
	}
	last, finished, err := e.record.Finished()
	if err != nil {
		return true, complain(e.stdio, ExitOwnError, err)
	}
	if finished && survey.complete() {
		complain(e.stdio, ExitCompleted, fmt.Errorf("run %s: nothing to run again, %s completed", e.record.ID, countOf(last.Counts.Total)))
		return true, e.print(ctx, runner, last, last.exitCode(nil))
	}
	if err := e.record.reopen(); err != nil {
		return true, complain(e.stdio, ExitOwnError, err)
	}
	o.RunID, o.Keep, o.Earlier = e.record.ID, e.record.Keep, survey.Found
	// The prompt of an execution that was interrupted takes no more spawns.
	o.Prompt = events.NewID()
	return false, ExitCompleted
}

// execute runs the plan to its end and says how that was.
func (e *execution) execute(ctx context.Context, runner Runner, o Options) int {
	d := newDisplayFor(e.stdio.Err, e.flags.LookupEnv)
	o.Observer = d
	summary, runErr := e.plan.Run(ctx, runner, o)
	d.close()
	// The work is done, so what is left obeys the next interrupt at once.
	var err error
	e.signals.during(context.WithoutCancel(ctx), func(ctx context.Context) { err = e.finish(ctx, &summary, runErr) })
	code := summary.exitCode(errors.Join(runErr, err))
	for _, err := range []error{runErr, err} {
		if err != nil {
			complain(e.stdio, code, err)
		}
	}
	complain(e.stdio, code, errors.New(summary.Line()))
	if e.record != nil && summary.Counts.Completed < summary.Counts.Total {
		complain(e.stdio, code, fmt.Errorf("run what did not complete again: hayward run --continue %s", shortID(e.record.ID)))
	}
	return e.print(ctx, runner, summary, code)
}

// finish keeps the summary and runs the plan's on_done, which can read it.
func (e *execution) finish(ctx context.Context, s *Summary, runErr error) error {
	path := ""
	keep := func() (err error) {
		if e.record != nil {
			path, err = e.record.Finish(*s)
		}
		return err
	}
	err := keep()
	if len(e.plan.OnDone) == 0 {
		return err
	}
	env := append(append([]string(nil), e.flags.Environ...), planEnvironment(*s, s.status(runErr), path)...)
	h := runHook(ctx, hookTimeout, e.plan.OnDone, e.plan.Dir, env)
	s.OnDone = &h
	if h.Failed() {
		s.Success = false
		for _, line := range hookLines("the plan", h) {
			complain(e.stdio, ExitFailed, errors.New(line))
		}
	}
	return errors.Join(err, keep())
}

// status is how a run ended, in one word.
func (s Summary) status(err error) string {
	switch {
	case s.Interrupted:
		return "interrupted"
	case err != nil || !s.Success:
		return "failed"
	}
	return "completed"
}

// print writes the data of a run; code is how the verb ends if that succeeds.
func (e *execution) print(ctx context.Context, runner Runner, s Summary, code int) int {
	onTerminal := isTerminal(e.stdio.Out)
	var err error
	interrupted := e.signals.during(context.WithoutCancel(ctx), func(ctx context.Context) {
		err = e.plan.print(ctx, e.flags, runner, s, e.stdio.Out)
	})
	var gone *writeError
	switch {
	case err == nil:
		return code
	case errors.As(err, &gone) && (onTerminal || e.signals.hungUp()):
		return code // the terminal was closed: nobody is left to tell
	case interrupted:
		return complain(e.stdio, ExitInterrupted, err)
	}
	return complain(e.stdio, ExitOwnError, err)
}
