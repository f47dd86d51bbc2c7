package plan

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// RunStatus is where a run stands.
type RunStatus string

// The statuses of a run.
const (
	RunRunning     RunStatus = "running"     // a process executes it
	RunCompleted   RunStatus = "completed"   // every subagent completed
	RunFailed      RunStatus = "failed"      // it ended, and some did not complete
	RunInterrupted RunStatus = "interrupted" // it was ended
	RunDied        RunStatus = "died"        // its process ended before it
)

// ListedRun is one run in a list of them.
type ListedRun struct {
	RunID     string    `json:"run_id"`
	Plan      string    `json:"plan"`
	Path      string    `json:"path"`
	StartedAt time.Time `json:"started_at"`
	Status    RunStatus `json:"status"`
	// PID is the process that executes it.
	PID int `json:"pid,omitzero"`
	// Total subagents, and Completed of them as far as the run's own record tells.
	Total     int `json:"total"`
	Completed int `json:"completed"`
}

// listed reads where the run stands, without asking the coordinator.
func (r *Record) listed() (ListedRun, error) {
	l := ListedRun{
		RunID: r.ID, Plan: r.Plan.Name, Path: r.Plan.Path, StartedAt: r.StartedAt,
		Total: len(r.Plan.Subagents), Status: RunDied,
	}
	pid, driven := r.Driver()
	s, finished, err := r.Finished()
	switch {
	case err != nil:
		return l, err
	case finished:
		l.Status, l.Completed = RunStatus(s.status(nil)), s.Counts.Completed
		return l, nil
	case driven:
		l.Status, l.PID = RunRunning, pid
	}
	ends, err := r.ends()
	if err != nil {
		return l, err
	}
	for _, attempts := range ends {
		for _, res := range attempts {
			if res.Status == StateCompleted {
				l.Completed++
				break
			}
		}
	}
	return l, nil
}

// PrintList writes the runs, oldest first: a table, or with json one object.
func (r Runs) PrintList(w io.Writer, json bool) error {
	records, err := r.List()
	if err != nil {
		return err
	}
	list := struct {
		Runs []ListedRun `json:"runs"`
	}{[]ListedRun{}}
	for _, rec := range records {
		l, err := rec.listed()
		if err != nil {
			return err
		}
		list.Runs = append(list.Runs, l)
	}
	if json {
		b, err := events.MarshalRecord(list)
		if err != nil {
			return fmt.Errorf("encode the list of runs: %w", err)
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			return &writeError{err}
		}
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "RUN\tPLAN\tSTARTED\tSTATUS\tCOMPLETED")
	for _, l := range list.Runs {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d of %d\n", l.RunID, printable(l.Plan), l.StartedAt.Local().Format("2006-01-02 15:04:05"), l.Status, l.Completed, l.Total)
	}
	if err := tw.Flush(); err != nil {
		return &writeError{err}
	}
	return nil
}
