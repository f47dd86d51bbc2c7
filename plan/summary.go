package plan

import (
	"errors"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Summary is how a run went; with --json it is what is printed.
type Summary struct {
	RunID string `json:"run_id"`
	Plan  string `json:"plan"`
	Path  string `json:"path"`
	// Success is true when every subagent completed.
	Success     bool      `json:"success"`
	Interrupted bool      `json:"interrupted"`
	StartedAt   time.Time `json:"started_at"`
	DurationMS  int64     `json:"duration_ms"`
	Counts      Counts    `json:"counts"`
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
}

// Result is how one subagent of a run ended.
type Result struct {
	Name  string `json:"name"`
	Entry string `json:"entry"`
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
	ExitCode    *int                  `json:"exit_code"`
	Signal      string                `json:"signal,omitempty"`
	OutputBytes int64                 `json:"output_bytes"`
	OutputPath  string                `json:"output_path,omitempty"`
	StderrTail  string                `json:"stderr_tail,omitempty"`
	Error       *events.Error         `json:"error,omitempty"`
	Sandbox     *events.SandboxReport `json:"sandbox,omitempty"`
	SandboxHint *events.SandboxHint   `json:"sandbox_hint,omitempty"`
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
	case errors.Is(err, errStopped):
		res.Status, res.Reason, res.Error = StateCancelled, events.ReasonUser, nil
	case res.Error.Code == events.CodePromptCancelled:
		res.Status, res.Reason = StateCancelled, events.ReasonPrompt
	case res.Error.Code == events.CodeLimit:
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
		Interrupted: r.stage != stageRunning, StartedAt: r.started.UTC(),
		DurationMS: time.Since(r.started).Milliseconds(),
		Counts:     Counts{Total: len(r.nodes)}, Subagents: make([]Result, len(r.nodes)),
	}
	for i := range r.nodes {
		s.Subagents[i] = r.nodes[i].result
		s.Counts.add(r.nodes[i].result.Status, 1)
	}
	s.Success = s.Counts.Completed == s.Counts.Total
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
	}
}
