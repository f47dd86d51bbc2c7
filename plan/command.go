package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/hayward-dev/hayward/events"
)

// The exit codes of [Command].
const (
	ExitCompleted   = 0   // every subagent completed
	ExitFailed      = 1   // some subagent did not
	ExitBadPlan     = 2   // the plan or a flag is bad; nothing was started
	ExitOwnError    = 125 // no coordinator, or our own output failed
	ExitInterrupted = 130 // interrupted, and every process is gone
)

// Flags are what the verb run takes. Exactly one of Path, Plan and Continue says
// what to run.
type Flags struct {
	// Path is the plan file.
	Path string
	// Plan is a plan that was read before.
	Plan *Plan
	// Continue is a run to go on with.
	Continue *Record
	// Runs is where a new run is kept.
	Runs Runs
	// Jobs is -j; 0 leaves it to the plan.
	Jobs int
	// FailFast overrides the plan's, if set.
	FailFast *bool
	// Fleeting says that the output files are gone once Command has returned, so
	// none is named.
	Fleeting bool
	// JSON prints the summary as one object instead of the table and output.
	JSON bool
	// Env is the base environment of every subagent.
	Env map[string]string
	// Environ is the environment of on_done, "K=V" each. Default: [os.Environ].
	Environ []string
	// LookupEnv resolves pass_env and NO_COLOR. Default: [os.LookupEnv].
	LookupEnv func(string) (string, bool)
}

// Stdio is where data and progress go. They may be terminals.
type Stdio struct {
	Out io.Writer // data
	Err io.Writer // progress
}

// Connect reaches a coordinator. It is called once the plan is known to be
// good, so a bad plan starts no daemon.
type Connect func(ctx context.Context) (Runner, error)

// Command is the body of the verb run and returns its exit code.
//
// Command handles the signals itself, so ctx must not be one that they end. The
// first SIGINT or SIGTERM, or the end of ctx, ends the run gracefully, a
// second one kills; Command returns when everything is gone. SIGHUP detaches: a
// run whose terminal was closed starts its later subagents all the same and ends
// when they have, silently.
func Command(ctx context.Context, f Flags, connect Connect, stdio Stdio) int {
	if f.LookupEnv == nil {
		f.LookupEnv = os.LookupEnv
	}
	if f.Environ == nil {
		f.Environ = os.Environ()
	}
	signals := catchSignals()
	defer signals.stop()
	return command(ctx, f, connect, stdio, signals)
}

func command(ctx context.Context, f Flags, connect Connect, stdio Stdio, signals *signals) int {
	if f.Jobs < 0 || f.Jobs > MaxJobs {
		return complain(stdio, ExitBadPlan, fmt.Errorf("-j %d is not between 1 and %d", f.Jobs, MaxJobs))
	}
	e := &execution{flags: f, stdio: stdio, signals: signals, record: f.Continue}
	var err error
	if e.plan, err = f.plan(); err != nil {
		return complain(stdio, ExitBadPlan, err)
	}
	return e.run(ctx, connect)
}

// plan returns what to run, with what the flags override.
func (f Flags) plan() (*Plan, error) {
	p := f.Plan
	switch {
	case f.Continue != nil:
		p = f.Continue.Plan
	case p == nil:
		var err error
		if p, err = Load(f.Path); err != nil {
			return nil, err
		}
	}
	own := *p
	if f.Jobs > 0 {
		own.Jobs = f.Jobs
	}
	if f.FailFast != nil {
		own.FailFast = *f.FailFast
	}
	return &own, nil
}

// reach connects; without a runner, code is how Command ends.
func reach(ctx context.Context, connect Connect, s *signals, stdio Stdio) (runner Runner, code int) {
	var err error
	interrupted := s.during(ctx, func(ctx context.Context) { runner, err = connect(ctx) })
	switch {
	case interrupted || ctx.Err() != nil:
		if err == nil {
			err = errNothingStarted
		}
		return nil, complain(stdio, ExitInterrupted, err)
	case err != nil:
		return nil, complain(stdio, ExitOwnError, err)
	}
	return runner, ExitCompleted
}

// errNothingStarted is told after an interrupt that came early enough.
var errNothingStarted = errors.New("interrupted before anything was started")

func (s Summary) exitCode(err error) int {
	switch {
	case err != nil:
		return ExitOwnError
	case s.Interrupted:
		return ExitInterrupted
	case !s.Success: // an on_done that failed included
		return ExitFailed
	}
	return ExitCompleted
}

// print writes the data of a run: the object, or the table and the output that
// the plan asks for.
func (p *Plan) print(ctx context.Context, f Flags, runner Runner, s Summary, w io.Writer) error {
	if f.Fleeting {
		s.Subagents = slices.Clone(s.Subagents)
		for i := range s.Subagents {
			s.Subagents[i].OutputPath = ""
		}
	}
	if f.JSON {
		b, err := events.MarshalRecord(s)
		if err != nil {
			return fmt.Errorf("encode the summary of run %s: %w", s.RunID, err)
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			return &writeError{err}
		}
		return nil
	}
	if err := s.Table(w); err != nil {
		return &writeError{err}
	}
	res, ok := p.shown(s)
	if !ok {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return &writeError{err}
	}
	return copyOutput(ctx, runner, s.RunID, res.SubagentID, w)
}

// complain writes a message for people and returns code. A terminal that takes
// no message takes no complaint about it either.
func complain(stdio Stdio, code int, err error) int {
	_, _ = fmt.Fprintln(stdio.Err, err)
	return code
}

// newDisplayFor picks the painter for w: in place on a terminal, else lines.
func newDisplayFor(w io.Writer, lookup func(string) (string, bool)) *display {
	kind, _ := lookup("TERM")
	if !isTerminal(w) || kind == "dumb" {
		return newDisplay(&linePainter{w: w}, 0)
	}
	noColor, _ := lookup("NO_COLOR")
	return newDisplay(&screenPainter{w: w, started: time.Now(), color: noColor == "", size: func() (int, int) {
		width, height, err := term.GetSize(int(w.(descriptor).Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}}, screenEvery)
}

// descriptor is what [os.File] has and a terminal needs.
type descriptor interface{ Fd() uintptr }

func isTerminal(w io.Writer) bool {
	d, ok := w.(descriptor)
	return ok && term.IsTerminal(int(d.Fd()))
}
