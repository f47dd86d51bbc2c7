package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// ReportFlags are what the verb report takes.
type ReportFlags struct {
	// Names are the subagents to show; none means all.
	Names []string
	// Tail is how many of the last lines of each output are shown; Full shows all
	// of it, and Stderr what went to stderr instead.
	Tail   int
	Full   bool
	Stderr bool
	JSON   bool
}

// Report is a run as shown: its summary, complete or as far as it has come.
type Report struct {
	Status RunStatus `json:"run_status"`
	// PID is the process that executes it.
	PID int `json:"pid,omitzero"`
	Summary
}

// ReportCommand is the body of the verb report and returns its exit code: that
// of the run, or 0 for one that runs.
func ReportCommand(ctx context.Context, rec *Record, f ReportFlags, connect Connect, stdio Stdio) int {
	for _, name := range f.Names {
		if !slices.ContainsFunc(rec.Plan.Subagents, func(s *Subagent) bool { return s.Name == name }) {
			known := make([]string, len(rec.Plan.Subagents))
			for i, s := range rec.Plan.Subagents {
				known[i] = s.Name
			}
			return complain(stdio, ExitBadPlan, fmt.Errorf("run %s has no subagent %s; it has %s", rec.ID, clip(name), enumerate(known)))
		}
	}
	fail := func(err error) int {
		if ctx.Err() != nil {
			return complain(stdio, ExitInterrupted, err)
		}
		return complain(stdio, ExitOwnError, err)
	}
	runner, err := connect(ctx)
	if err != nil {
		return fail(err)
	}
	report, err := rec.report(ctx, runner)
	if err != nil {
		return fail(err)
	}
	if len(f.Names) > 0 {
		report.Subagents = slices.DeleteFunc(report.Subagents, func(r Result) bool { return !slices.Contains(f.Names, r.Name) })
	}
	if err := report.print(ctx, runner, f, stdio); err != nil {
		return fail(err)
	}
	if report.Status == RunRunning || report.Status == RunCompleted {
		return ExitCompleted
	}
	return ExitFailed
}

// report reads where the run stands.
func (r *Record) report(ctx context.Context, runner Runner) (Report, error) {
	pid, driven := r.Driver()
	s, finished, err := r.Finished()
	if err != nil {
		return Report{}, err
	}
	if finished {
		return Report{Status: RunStatus(s.status(nil)), Summary: s}, nil
	}
	survey, err := r.Survey(ctx, runner)
	if err != nil {
		return Report{}, err
	}
	report := Report{Status: RunDied, Summary: r.soFar(survey)}
	if driven {
		report.Status, report.PID = RunRunning, pid
	}
	return report, nil
}

// soFar is the summary of a run that has not ended.
func (r *Record) soFar(survey Survey) Summary {
	s := Summary{
		RunID: r.ID, Plan: r.Plan.Name, Path: r.Plan.Path, StartedAt: r.StartedAt,
		DurationMS: time.Since(r.StartedAt).Milliseconds(), Counts: Counts{Total: len(r.Plan.Subagents)},
	}
	for _, sub := range r.Plan.Subagents {
		e := survey.Found[sub.Name]
		res := Result{Name: sub.Name, Entry: sub.Entry, Line: sub.Line, Needs: sub.Needs, Status: StateWaiting}
		switch {
		case e.Completed != nil:
			res = *e.Completed
		case e.Live:
			res.live(e.Attempt, e.snapshot)
		case e.Last != nil:
			res = *e.Last
		}
		s.Subagents = append(s.Subagents, res)
		s.Counts.add(res.Status, 1)
	}
	return s
}

// live completes res from the snapshot of a subagent that has not ended.
func (res *Result) live(attempt int, s events.Snapshot) {
	res.Attempt, res.SubagentID, res.Status = attempt, s.SubagentID, StateQueued
	switch s.State {
	case events.StatePending:
		res.Status = StateStarting
	case events.StateActive:
		res.Status = StateRunning
	}
	res.StartedAt, res.Sandbox = s.StartedAt, s.Sandbox
	res.OutputBytes, res.OutputPath = s.Bytes, s.Path
	if s.Progress != nil {
		res.OutputBytes = s.Progress.StdoutBytes
	}
	if s.StartedAt != nil {
		res.DurationMS = time.Since(*s.StartedAt).Milliseconds()
	}
}

func (r *Report) print(ctx context.Context, runner Runner, f ReportFlags, stdio Stdio) error {
	if f.JSON {
		return r.printJSON(ctx, runner, stdio.Out)
	}
	if err := r.Table(stdio.Out); err != nil {
		return &writeError{err}
	}
	complain(stdio, ExitCompleted, errors.New(r.Line()))
	switch r.Status {
	case RunRunning:
		complain(stdio, ExitCompleted, fmt.Errorf("it goes on in process %d", r.PID))
	case RunDied:
		complain(stdio, ExitCompleted, fmt.Errorf("its process is gone; go on with: hayward run --continue %s", shortID(r.RunID)))
	case RunFailed, RunInterrupted:
		if r.Counts.Completed < r.Counts.Total {
			complain(stdio, ExitCompleted, fmt.Errorf("run what did not complete again: hayward run --continue %s", shortID(r.RunID)))
		}
	}
	for _, res := range r.Subagents {
		if res.SubagentID == "" {
			continue
		}
		if err := r.printOutput(ctx, runner, f, res, stdio.Out); err != nil {
			return err
		}
	}
	return nil
}

// printOutput writes the end of one output under a heading.
func (r *Report) printOutput(ctx context.Context, runner Runner, f ReportFlags, res Result, w io.Writer) error {
	request := events.FileRequest{ParentSessionID: r.RunID, ID: res.SubagentID, Stream: "stdout"}
	if f.Stderr {
		request.Stream = "stderr"
	}
	if !f.Full {
		request.Tail = &f.Tail
	}
	out := &headed{w: w, heading: "\n==> " + res.Name + " <==\n"}
	err := copyLog(ctx, runner, request, out)
	if events.HasCode(err, events.CodeUnknownID) {
		_, err := fmt.Fprintf(out, "(its output is not kept any more)\n")
		return err
	}
	return err
}

// headed writes a heading before the first of what is written.
type headed struct {
	w       io.Writer
	heading string
}

func (h *headed) Write(p []byte) (int, error) {
	if h.heading != "" && len(p) > 0 {
		if _, err := io.WriteString(h.w, h.heading); err != nil {
			return 0, err
		}
		h.heading = ""
	}
	return h.w.Write(p)
}

// printJSON writes the report with the outputs as the coordinator shortens them.
func (r *Report) printJSON(ctx context.Context, runner Runner, w io.Writer) error {
	at := make(map[string]int)
	var ids []string
	for i, res := range r.Subagents {
		if res.SubagentID != "" {
			at[res.SubagentID] = i
			ids = append(ids, res.SubagentID)
		}
	}
	// Few at a time: each brings up to 32 KiB of output.
	for page := range slices.Chunk(ids, 10) {
		reply, err := patiently(ctx, func(ctx context.Context) (events.QueryReply, error) {
			return runner.Query(ctx, events.Query{ParentSessionID: r.RunID, IDs: page})
		})
		if err != nil {
			return fmt.Errorf("read the outputs of run %s: %w", r.RunID, err)
		}
		for _, s := range reply.Snapshots {
			res := &r.Subagents[at[s.SubagentID]]
			res.Output, res.OutputEncoding, res.OutputTruncated = s.Text, s.Encoding, s.Truncated
		}
	}
	b, err := events.MarshalRecord(r)
	if err != nil {
		return fmt.Errorf("encode the report of run %s: %w", r.RunID, err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return &writeError{err}
	}
	return nil
}
