package plan

import (
	"fmt"
	"io"
	"time"
)

// stderrLines is how much of a failed subagent's stderr is shown.
const stderrLines = 8

// linePainter writes one line when a subagent begins to run and one when it
// ends: for logs, pipes and dumb terminals.
type linePainter struct {
	w io.Writer
	// shown is the last state written of each row.
	shown []State
}

func (p *linePainter) paint(rows []Row, changed []int, _ time.Time) error {
	if len(p.shown) != len(rows) {
		p.shown = make([]State, len(rows))
	}
	var lines []string
	for _, i := range changed {
		row := rows[i]
		if row.State == p.shown[i] || (row.State != StateRunning && !row.State.Ended()) {
			continue
		}
		p.shown[i] = row.State
		if row.State == StateRunning {
			lines = append(lines, fmt.Sprintf("%-9s  %s", row.State, row.Name))
			continue
		}
		lines = append(lines, endLines(row)...)
	}
	return writeLines(p.w, lines)
}

func (p *linePainter) say(line string) error { return writeLines(p.w, []string{line}) }

func (p *linePainter) finish([]Row, time.Time) error { return nil }

// endLines tells how a subagent ended, with the end of its stderr if it failed.
func endLines(row Row) []string {
	line := fmt.Sprintf("%-9s  %s", row.State, row.Name)
	if row.Duration > 0 {
		line += "  " + clock(row.Duration)
	}
	if row.Reason != "" && row.Reason != "exit" {
		line += "  (" + string(row.Reason) + ")"
	}
	if why := row.why(); why != "" {
		line += "  " + printable(why)
	}
	lines := []string{line}
	if row.State == StateFailed && row.StderrTail != "" {
		lines = append(lines, tail(row.StderrTail, stderrLines)...)
	}
	return lines
}

// beginLine opens a run. In one that is continued some rows are further already.
func beginLine(runID string, rows []Row) string {
	ended, live := 0, 0
	for _, row := range rows {
		switch {
		case row.State.Ended():
			ended++
		case row.State != StateWaiting:
			live++
		}
	}
	if ended+live == 0 {
		return "run " + runID + " of " + countOf(len(rows))
	}
	line := fmt.Sprintf("run %s goes on: of %s, %d completed before", runID, countOf(len(rows)), ended)
	if live > 0 {
		line += fmt.Sprintf(" and %d still run", live)
	}
	return line
}

func failFastLine(name string, left int) string {
	return name + " failed: fail_fast ends the run and " + countOf(left) + " in flight"
}

// hookLines tell that an on_done failed, with the end of what it wrote.
func hookLines(name string, h HookResult) []string {
	return append([]string{"on_done of " + name + " failed: " + printable(h.String())}, tail(h.Output, stderrLines)...)
}

func interruptLine(left int, kill bool) string {
	if kill {
		return "killing " + countOf(left)
	}
	return "interrupted: ending " + countOf(left) + "; interrupt again to kill"
}

func countOf(n int) string {
	if n == 1 {
		return "1 subagent"
	}
	return fmt.Sprintf("%d subagents", n)
}
