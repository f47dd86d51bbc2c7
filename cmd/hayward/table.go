package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/hayward-dev/hayward/events"
)

// table is rows of columns, the last of which takes what is left of the line.
type table struct {
	header []string
	rows   [][]string
}

// columnGap is between columns.
const columnGap = "  "

func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = oneLine(cells[i])
		if cells[i] == "" && i < len(cells)-1 {
			cells[i] = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

// render lays the table out. width bounds the lines, 0 does not.
func (t *table) render(width int, color bool) string {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	var b strings.Builder
	line := func(row []string, style string) {
		var l strings.Builder
		for i, cell := range row {
			l.WriteString(cell)
			if i < len(row)-1 {
				l.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)) + columnGap)
			}
		}
		text := strings.TrimRight(l.String(), " ")
		if width > 0 {
			text = ansi.Truncate(text, width, "…")
		}
		if style != "" {
			text = style + text + styleOff
		}
		b.WriteString(text + "\n")
	}
	header := ""
	if color {
		header = styleBold
	}
	line(t.header, header)
	for _, row := range t.rows {
		style := ""
		if color {
			style = styleOf(row)
		}
		line(row, style)
	}
	return b.String()
}

// The styles of a terminal that takes colors.
const (
	styleBold = "\x1b[1m"
	styleRed  = "\x1b[31m"
	styleDim  = "\x1b[2m"
	styleOff  = "\x1b[0m"
)

// styleOf marks the rows that a reader looks for.
func styleOf(row []string) string {
	switch {
	case slices.Contains(row, string(events.StatusFailed)):
		return styleRed
	case slices.Contains(row, string(events.StatusCancelled)):
		return styleDim
	}
	return ""
}

// printTable writes a table to stdout.
func (a *app) printTable(t *table) error {
	width, _ := terminal(a.stdout)
	return a.write([]byte(t.render(width, a.colored())))
}

// snapshotHeader is the header of snapshot tables.
var snapshotHeader = []string{"ID", "NAME", "STATUS", "EXIT", "ELAPSED", "SANDBOX", "SESSION", "COMMAND"}

// addSnapshot adds a row of such a table; prefix goes before the name.
func (t *table) addSnapshot(s events.Snapshot, prefix string) {
	t.add(shortID(s.SubagentID), prefix+s.Name, shownStatus(s), shownExit(s), shownDuration(s.ElapsedMS), shownSandbox(s), s.ParentSessionID, shownCommand(s))
}

// shortID is the end of an id that tables show and every verb takes.
func shortID(id string) string {
	if len(id) > 8 {
		return id[len(id)-8:]
	}
	return id
}

func shownStatus(s events.Snapshot) string {
	switch s.State {
	case events.StateQueued:
		return "queued"
	case events.StatePending:
		return "starting"
	case events.StateActive:
		return "running"
	}
	return string(s.Status)
}

// shownExit is the exit code, the signal, or why there is neither.
func shownExit(s events.Snapshot) string {
	switch {
	case s.State != events.StateCompleted:
		return ""
	case s.Reason != "" && s.Reason != events.ReasonExit:
		return string(s.Reason)
	case s.Signal != "":
		return s.Signal
	case s.ExitCode != nil:
		return fmt.Sprint(*s.ExitCode)
	}
	return ""
}

func shownSandbox(s events.Snapshot) string {
	switch {
	case s.Sandbox == nil:
		return ""
	case s.Sandbox.Active:
		return s.Sandbox.Profile
	}
	return s.Sandbox.Profile + " (inactive)"
}

func shownCommand(s events.Snapshot) string {
	what := s.CommandLine
	if what == "" {
		what = s.SubagentType
	}
	if s.Description != "" {
		what = s.Description + ": " + what
	}
	if p := s.Progress; p != nil && p.HeartbeatLost {
		what += " | not heard of since " + p.HeartbeatAt.Local().Format(time.TimeOnly)
	} else if s.Progress != nil && s.Progress.LastLine != "" {
		what += " | " + s.Progress.LastLine
	}
	return what
}

// shownDuration is a duration as people read it.
func shownDuration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
