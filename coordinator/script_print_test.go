package coordinator

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

func (s *script) print(effects []Effect) string {
	var b strings.Builder
	for _, e := range effects {
		b.WriteString(shorten(describe(e), s.names) + "\n")
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// describe is one effect in one line.
func describe(e Effect) string {
	switch e := e.(type) {
	case Persist:
		r := e.Record
		line := fmt.Sprintf("persist %s #%d %s %s", r.ID, r.Seq, r.State, r.Status)
		for _, part := range []struct {
			show bool
			text string
		}{
			{e.Spec != nil, "spec"}, {r.Reason != "", "reason=" + string(r.Reason)},
			{r.Actor != "", "actor=" + r.Actor}, {r.ExplicitKill, "explicit"}, {r.PromptGate, "gate"},
			{r.Error != nil, "error=" + code(r.Error)},
			{r.TreeUsage != nil, "tokens=" + tokens(r)},
			{r.Process != nil, "process"}, {r.Background, "background"}, {r.ReadAt != nil, "read"},
		} {
			if part.show {
				line += " " + part.text
			}
		}
		return line
	case PersistGate:
		return "persist " + describeGate(e.Gate)
	case ForgetGate:
		return "forget gate " + e.Session + "/" + e.Prompt
	case Forget:
		line := "forget " + e.ID
		if e.Gate != nil {
			line += " after " + describeGate(*e.Gate)
		}
		return line
	case Publish:
		return strings.TrimRight(fmt.Sprintf("feed %s #%d %s %s %s", e.Event.SubagentID, e.Event.Seq, e.Event.State, e.Event.Status, e.Event.Reason), " ")
	case StartChild:
		return "start " + e.Spec.ID
	case ReleaseChild:
		return "release " + e.ID
	case StopChild:
		line := "stop " + e.ID + " " + string(e.Stop.Reason)
		if e.Stop.Kill {
			line += " kill"
		}
		return line
	case AdoptChild:
		return "adopt " + e.Record.ID
	case Finish:
		if e.Err != nil {
			return "finish " + string(e.Err.Code)
		}
		return "finish"
	case Reply:
		line := "-> " + e.To.(*ticket).name + ": " + describeAnswer(e.Answer)
		if e.Answer.AckToken != "" {
			line += " token=" + e.Answer.AckToken + " reads=" + strings.Join(e.Answer.Reads, ",")
		}
		return line
	}
	return fmt.Sprintf("%T", e)
}

func describeGate(g events.Gate) string {
	line := "gate " + g.Session + "/" + g.Prompt
	if g.Lifted {
		line += " lifted"
	}
	return line
}

// tokens are those of r itself and, behind a slash, those of its tree.
func tokens(r *events.Record) string {
	var own, tree events.Usage
	if r.Usage != nil {
		own = *r.Usage
	}
	if r.TreeUsage != nil {
		tree = *r.TreeUsage
	}
	return fmt.Sprintf("%d/%d", own.Total(), tree.Total())
}

func code(err *events.Error) string {
	if err == nil {
		return ""
	}
	return string(err.Code)
}

func describeAnswer(a Answer) string {
	if a.Error != nil {
		line := "error " + code(a.Error)
		for _, key := range []string{"subagent_id", "candidates", "limit", "running", "queued", "state"} {
			if v, ok := a.Error.Details[key]; ok {
				line += " " + key + "=" + v
			}
		}
		return line
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch r := a.Reply.(type) {
	case events.SpawnReply:
		add("%s", describeSnapshot(r.Snapshot))
		if r.Backgrounded {
			add("backgrounded")
		}
		for _, w := range r.Warnings {
			add("(%s)", w)
		}
	case events.QueryReply:
		for _, s := range r.Snapshots {
			add("%s", describeSnapshot(s))
		}
		for _, u := range r.Unknown {
			add("unknown=%s", u)
		}
		if r.TimedOut {
			add("timed out")
		}
	case events.CancelReply:
		for _, c := range r.Results {
			one := c.SubagentID + "=" + string(c.Outcome)
			if c.Outcome == events.CancelAlreadyFinished {
				one += "{" + string(c.Status) + "}"
			}
			if c.Background {
				one += "&"
			}
			add("%s", one)
		}
		for _, w := range r.Warnings {
			add("(%s)", w)
		}
	case events.RemoveReply:
		for _, one := range r.Results {
			line := one.SubagentID + "=" + string(one.Outcome)
			if one.Error != nil {
				line += "{" + code(one.Error) + "}"
			}
			add("%s", line)
		}
		add("%d", r.Removed)
		if r.Unread > 0 {
			add("unread=%d", r.Unread)
		}
		if r.More {
			add("more")
		}
	case events.ListActiveReply:
		for _, s := range r.Subagents {
			add("%s", describeSnapshot(s))
		}
		if r.Next != "" {
			add("next=%s", r.Next)
		}
	case events.CompletionsReply:
		for _, c := range r.Completions {
			add("%s", describeSnapshot(c.Snapshot))
		}
		if len(r.Acked) > 0 {
			add("acked=%s", strings.Join(r.Acked, ","))
		}
		if r.More {
			add("more")
		}
		for _, w := range r.Warnings {
			add("(%s)", w)
		}
	case events.OutstandingReply:
		add("live=[%s] background=%v unread=%d settled=%v", strings.Join(r.LiveIDs, " "), r.BackgroundLive, r.Unread, r.UsageSettled)
	case events.ShutdownReply:
		add("ended=%d left=%d", r.Ended, r.Left)
	case Gone:
		add("gone, left=%d", r.Left)
	case Found:
		add("found %s %s", r.Record.ID, r.Record.State)
	}
	if len(parts) == 0 {
		return "empty"
	}
	return strings.Join(parts, ", ")
}

func describeSnapshot(s events.Snapshot) string {
	line := s.SubagentID + " " + string(s.State) + " " + string(s.Status)
	if s.Reason != "" {
		line += " " + string(s.Reason)
	}
	if s.Actor != "" {
		line += " by " + s.Actor
	}
	if s.ExplicitKill {
		line += " explicit"
	}
	if s.Error != nil {
		line += " error=" + code(s.Error)
	}
	if s.ElapsedMS > 0 {
		line += " " + strconv.FormatInt(s.ElapsedMS, 10) + "ms"
	}
	return line
}
