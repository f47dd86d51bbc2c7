package plan

import (
	"context"
	"sort"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// State is where a subagent stands in a run.
type State string

// The states. The last four are ends; they are the statuses of a [Result].
const (
	StateWaiting   State = "waiting"   // for its needs, or for a job's place
	StateQueued    State = "queued"    // handed to the coordinator
	StateStarting  State = "starting"  // its process is being made
	StateRunning   State = "running"   // its process runs
	StateCompleted State = "completed" // ended well
	StateFailed    State = "failed"
	StateCancelled State = "cancelled"
	StateSkipped   State = "skipped" // never started
)

// Ended reports whether s is an end.
func (s State) Ended() bool {
	return s == StateCompleted || s == StateFailed || s == StateCancelled || s == StateSkipped
}

// Row is one subagent as a display shows it.
type Row struct {
	Name  string
	State State
	// Reason and BlockedBy say why it ended as it did.
	Reason    events.Reason
	BlockedBy string
	// Since is when it was handed over or, later, when it began to run.
	Since time.Time
	// LastLine is the last line of its output.
	LastLine string
	// Duration, ExitCode, Signal, Message and StderrTail are set at the end.
	Duration   time.Duration
	ExitCode   *int
	Signal     string
	Message    string
	StderrTail string
}

// finish makes row that of an ended subagent.
func (row *Row) finish(res Result) {
	row.State, row.Reason, row.BlockedBy = res.Status, res.Reason, res.BlockedBy
	row.Duration = time.Duration(res.DurationMS) * time.Millisecond
	row.ExitCode, row.Signal = res.ExitCode, res.Signal
	row.StderrTail = res.StderrTail
	if res.Error != nil {
		row.Message = res.Error.Error()
	} else if res.SandboxHint != nil {
		row.Message = res.SandboxHint.String()
	}
}

// poll starts reading the latest of all subagents in flight, unless that is
// being done.
func (r *run) poll() {
	if r.polling || len(r.inFlight) == 0 {
		return
	}
	r.polling = true
	ids := make([]string, 0, len(r.inFlight))
	for i := range r.inFlight {
		ids = append(ids, r.nodes[i].id)
	}
	sort.Strings(ids)
	r.workers.Go(func() { r.seen <- r.latest(ids) })
}

// latest reads snapshots. What cannot be read is left out: it is only shown,
// and the driver of each subagent asks for its end by itself.
func (r *run) latest(ids []string) []events.Snapshot {
	var snapshots []events.Snapshot
	for len(ids) > 0 {
		page := ids[:min(len(ids), events.MaxQueryIDs)]
		ids = ids[len(page):]
		ctx, cancel := context.WithTimeout(r.work, replySlack)
		reply, err := r.runner.Query(ctx, events.Query{ParentSessionID: r.options.RunID, IDs: page})
		cancel()
		if err != nil {
			return snapshots
		}
		snapshots = append(snapshots, reply.Snapshots...)
	}
	return snapshots
}

// observe updates the rows of subagents that have not ended.
func (r *run) observe(snapshots []events.Snapshot) {
	for _, s := range snapshots {
		i, known := r.byID[s.SubagentID]
		if !known || !r.inFlight[i] {
			continue
		}
		r.change(i, func(row *Row) {
			switch s.State {
			case events.StatePending:
				row.State = StateStarting
			case events.StateActive:
				row.State = StateRunning
				if s.StartedAt != nil {
					row.Since = *s.StartedAt
				}
			}
			if s.Progress != nil {
				row.LastLine = s.Progress.LastLine
			}
		})
	}
}
