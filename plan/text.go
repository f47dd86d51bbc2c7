package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/hayward-dev/hayward/events"
)

// printable returns s, which a subagent wrote, as one line that cannot move the
// cursor, change colors or otherwise speak to a terminal.
func printable(s string) string {
	s = ansi.Strip(strings.ToValidUTF8(s, "\ufffd"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case isControl(r), r == '\u2028', r == '\u2029', bidiControl(r):
			return -1
		}
		return r
	}, s)
}

// bidiControl tells the characters that turn the direction of the text around
// them, past the end of what wrote them.
func bidiControl(r rune) bool {
	return (r >= '\u202a' && r <= '\u202e') || (r >= '\u2066' && r <= '\u2069') || r == '\u200e' || r == '\u200f'
}

// fit returns s cut to width columns, with an ellipsis where it was cut.
func fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}

// pad returns s filled up to width columns.
func pad(s string, width int) string {
	if gap := width - ansi.StringWidth(s); gap > 0 {
		return s + strings.Repeat(" ", gap)
	}
	return s
}

// clock writes a duration the way a person reads it: 0.4s, 12.3s, 4m05s, 2h03m.
func clock(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", float64(d.Truncate(100*time.Millisecond))/float64(time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// why says in a few words how row ended, if there is more to say than its state.
func (row Row) why() string {
	switch {
	case row.State == StateSkipped && row.Reason == events.ReasonFailFast:
		return row.BlockedBy + " failed"
	case row.State == StateSkipped && row.BlockedBy != "":
		return "needs " + row.BlockedBy
	case row.State == StateCompleted:
		return ""
	case row.Message != "":
		return row.Message
	case row.Signal != "":
		return row.Signal
	case row.ExitCode != nil && *row.ExitCode != 0:
		return fmt.Sprintf("exit %d", *row.ExitCode)
	}
	return ""
}

// outcomeText writes a state with its reason: failed(deadline).
func outcomeText(s State, reason string) string {
	// The exit column says what reason exit would.
	if reason == "" || reason == "exit" {
		return string(s)
	}
	return string(s) + "(" + reason + ")"
}

// tail returns the last lines of what a subagent wrote, indented.
func tail(text string, most int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	out := lines[:0]
	for _, l := range lines {
		if l = strings.TrimRight(printable(l), " "); l != "" {
			out = append(out, "    "+l)
		}
	}
	return out
}
