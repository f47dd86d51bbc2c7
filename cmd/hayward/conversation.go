package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

const (
	// maxShownLines bounds what is shown of a tool's input or result; --json has all.
	maxShownLines = 20
	// maxShownLine bounds what is shown in one line of such.
	maxShownLine = 400
)

// shownSaid is an item of an agent for people: a heading and its text, indented. It
// returns false for other items.
func shownSaid(i events.Item) (string, bool) {
	var heading, text string
	bounded := true
	switch i.Kind {
	case events.ItemSession:
		heading, text = "session "+i.SessionID, ""
		if i.Model != "" {
			heading += " (" + i.Model + ")"
		}
	case events.ItemPrompt:
		heading, text, bounded = "prompt", i.Text, false
	case events.ItemMessage:
		heading, text, bounded = "assistant", i.Text, false
		if i.IsError {
			heading = "error"
		}
	case events.ItemThinking:
		heading, text = "thinking", i.Text
	case events.ItemToolCall:
		heading, text = "tool "+i.Tool, shownInput(i)
	case events.ItemToolResult:
		heading, text = "result", i.Text
		if i.Tool != "" {
			heading += " of " + i.Tool
		}
		if i.IsError {
			heading += ", an error"
		}
	case events.ItemResult:
		heading = "end: " + string(i.StopReason)
		if i.Usage != nil {
			heading += ", " + shownUsage(*i.Usage)
		}
		if i.IsError {
			text = i.Text // else it repeats the last that was said
		}
	case events.ItemEvent:
		heading, text = strings.TrimSpace("event "+i.Tool), i.Text
		if text == "" && i.TextOmitted {
			text = fmt.Sprintf("%d bytes at %d of stdout", i.Bytes, i.Offset)
		}
	default:
		return "", false
	}
	margin := ""
	if i.ParentToolID != "" {
		margin = "    " // of an agent inside the agent
	}
	var b strings.Builder
	b.WriteString(margin + i.At.Local().Format("15:04:05") + " " + printable(heading) + "\n")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	rest := 0
	if bounded && len(lines) > maxShownLines {
		rest = len(lines) - maxShownLines
		lines = lines[:maxShownLines]
	}
	for _, line := range lines {
		line = printable(line)
		if short := clipped(line, maxShownLine); bounded && short != line {
			line = short + "…"
		}
		b.WriteString(margin + strings.TrimRight("  "+line, " ") + "\n")
	}
	if rest > 0 {
		fmt.Fprintf(&b, "%s  … %d more lines\n", margin, rest)
	}
	b.WriteString("\n")
	return b.String(), true
}

// shownInput is what a tool is asked: the member that says it in one word, where
// there is one, else the whole.
func shownInput(i events.Item) string {
	if len(i.Input) == 0 {
		return i.Text
	}
	var members map[string]any
	if json.Unmarshal(i.Input, &members) == nil {
		for _, name := range []string{"command", "cmd", "file_path", "path", "url", "query", "pattern"} {
			if text, ok := members[name].(string); ok {
				return text
			}
		}
	}
	return string(i.Input)
}

// shownUsage is a usage for people.
func shownUsage(u events.Usage) string {
	s := fmt.Sprintf("%d tokens in, %d out", u.InputTokens, u.OutputTokens)
	if cached := u.CacheReadTokens + u.CacheCreationTokens; cached > 0 {
		s += fmt.Sprintf(", %d read from and %d put into caches", u.CacheReadTokens, u.CacheCreationTokens)
	}
	return s
}

// clipped is the beginning of a line, at most n runes of it.
func clipped(s string, n int) string {
	for at := range s {
		if n--; n < 0 {
			return s[:at]
		}
	}
	return s
}

// agent adds what an agent said of its run.
func (d *details) agent(r *events.AgentResult) {
	if r == nil {
		return
	}
	d.add("agent", "%s", strings.TrimSpace(r.Agent+" "+r.Version))
	d.add("  session", "%s", r.SessionID)
	d.add("  model", "%s", r.Model)
	d.add("  stopped by", "%s", r.StopReason)
	d.add("  turns", "%d, %d tool calls", r.Turns, r.ToolCalls)
	usage := shownUsage(r.Usage)
	if r.UsageIncomplete {
		usage += ", at least"
	}
	d.add("  usage", "%s", usage)
	d.add("  cost", "%s", shownCost(r.Cost))
	if r.CostUSD != nil {
		d.add("  own estimate", "%.4f USD", *r.CostUSD)
	}
	for _, m := range r.Models {
		d.add("  of "+m.Model, "%s", shownUsage(m.Usage))
	}
	for _, denial := range r.Denials {
		d.add("  denied", "%s %s (%s)", denial.Tool, denial.Input, denial.Origin)
	}
	for _, w := range r.Warnings {
		d.add("  warning", "%s", w)
	}
}
