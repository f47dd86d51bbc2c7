package plan

import (
	"context"
	"errors"
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
	// FailedFast comes when the failure of the subagent called name ends the run;
	// left are still in flight.
	FailedFast(name string, left int)
	// HookFailed comes when the on_done of the subagent called name failed.
	HookFailed(name string, h HookResult)
}

// Options are how to run a plan. The zero value is good.
type Options struct {
	// RunID is the run's id and its session. Default: a new one.
	RunID string
	// Prompt is the prompt of what this execution spawns. Default: RunID. One that
	// goes on needs another: the first one's may have been cancelled.
	Prompt string
	// Earlier is what earlier executions of the same run left, by subagent's name.
	Earlier map[string]Earlier
	// Keep, if set, makes the end of an attempt durable. It is called from the
	// goroutine of the run, so it must be quick.
	Keep func(Result) error
	// Jobs overrides the plan's.
	Jobs int
	// Environ is the environment of on_done, "K=V" each.
	Environ []string
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
