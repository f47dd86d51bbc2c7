package plan

import (
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Summary is how a run went; with --json it is what is printed.
type Summary struct {
	RunID string `json:"run_id"`
	Plan  string `json:"plan"`
	Path  string `json:"path"`
	// Success is true when every subagent completed and no on_done failed.
	Success     bool      `json:"success"`
	Interrupted bool      `json:"interrupted"`
	StartedAt   time.Time `json:"started_at"`
	DurationMS  int64     `json:"duration_ms"`
	Counts      Counts    `json:"counts"`
	// OnDone is how the plan's own on_done ended.
	OnDone *HookResult `json:"on_done,omitempty"`
	// Subagents are in the order of the plan.
	Subagents []Result `json:"subagents"`
}

// Counts are numbers of subagents by status.
type Counts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Skipped   int `json:"skipped"`
	// Running and Waiting are of a run that has not ended.
	Running int `json:"running,omitzero"`
	Waiting int `json:"waiting,omitzero"`
}

// Result is how one subagent of a run ended.
type Result struct {
	Name  string `json:"name"`
	Entry string `json:"entry"`
	// Line is the entry's line in the plan file.
	Line int `json:"line,omitzero"`
	// Attempt counts how often it was handed to the coordinator, each time under
	// an id of its own: a run that is continued tries again what did not complete.
	Attempt int `json:"attempt,omitzero"`
	// SubagentID is absent when none was made.
	SubagentID string        `json:"subagent_id,omitempty"`
	Status     State         `json:"status"`
	Reason     events.Reason `json:"reason,omitempty"`
	// BlockedBy is the need for which it was skipped.
	BlockedBy string     `json:"blocked_by,omitempty"`
	Needs     []string   `json:"needs,omitempty"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	// DurationMS is start to end.
	DurationMS int64 `json:"duration_ms"`
	// ExitCode is null when there is none.
	ExitCode *int   `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	// Output is set in a report alone, whole or with the middle left out.
	Output          string                `json:"output,omitempty"`
	OutputEncoding  string                `json:"output_encoding,omitempty"`
	OutputTruncated bool                  `json:"output_truncated,omitzero"`
	OutputBytes     int64                 `json:"output_bytes"`
	OutputPath      string                `json:"output_path,omitempty"`
	StderrTail      string                `json:"stderr_tail,omitempty"`
	Error           *events.Error         `json:"error,omitempty"`
	Sandbox         *events.SandboxReport `json:"sandbox,omitempty"`
	SandboxHint     *events.SandboxHint   `json:"sandbox_hint,omitempty"`
	// OnDone is how the entry's on_done ended, if it has one.
	OnDone *HookResult `json:"on_done,omitempty"`
}

// known reports whether res is the end of an attempt: the coordinator told it,
// or refused to make the subagent.
func (res *Result) known() bool {
	return res.Attempt > 0 && (res.EndedAt != nil || res.SubagentID == "")
}

// fill completes res from the outcome of the subagent with that id.
func (res *Result) fill(id string, o outcome) {
	if !o.never {
		res.SubagentID = id
	}
	if o.snapshot == nil {
		res.fillError(o.err)
		return
	}
	s := o.snapshot
	res.Status, res.Reason, res.Error = State(s.Status), s.Reason, s.Error
	res.StartedAt, res.EndedAt, res.DurationMS = s.StartedAt, s.EndedAt, s.DurationMS
	res.ExitCode, res.Signal = s.ExitCode, s.Signal
	res.OutputBytes, res.OutputPath = s.Output.Bytes, s.Output.Path
	res.StderrTail, res.Sandbox, res.SandboxHint = s.StderrTail, s.Sandbox, s.SandboxHint
}

// fillError is fill for a subagent without a terminal snapshot.
func (res *Result) fillError(err error) {
	res.Error = events.AsError(err)
	switch {
	case res.Error.Code == events.CodePromptCancelled:
		res.Status, res.Reason = StateCancelled, events.ReasonPrompt
	case res.Error.Code == events.CodeLimit, res.Error.Code == events.CodeDepthExceeded:
		res.Status, res.Reason = StateFailed, events.ReasonLimit
	case res.Error.Layer == events.LayerSandbox:
		res.Status, res.Reason = StateFailed, events.ReasonSandbox
	case res.SubagentID != "":
		// Its end is not known; the error says so.
		res.Status = StateFailed
	default:
		res.Status, res.Reason = StateFailed, events.ReasonStart
	}
}

func (r *run) summary() Summary {
	s := Summary{
		RunID: r.options.RunID, Plan: r.plan.Name, Path: r.plan.Path,
		Interrupted: r.interrupted, StartedAt: r.started.UTC(),
		DurationMS: time.Since(r.started).Milliseconds(),
		Counts:     Counts{Total: len(r.nodes)}, Subagents: make([]Result, len(r.nodes)),
	}
	for i := range r.nodes {
		s.Subagents[i] = r.nodes[i].result
		s.Counts.add(r.nodes[i].result.Status, 1)
	}
	s.Success = s.Counts.Completed == s.Counts.Total && r.hookFailures == 0
	return s
}

func (c *Counts) add(s State, n int) {
	switch s {
	case StateCompleted:
		c.Completed += n
	case StateFailed:
		c.Failed += n
	case StateCancelled:
		c.Cancelled += n
	case StateSkipped:
		c.Skipped += n
	case StateWaiting:
		c.Waiting += n
	default:
		c.Running += n
	}
}
