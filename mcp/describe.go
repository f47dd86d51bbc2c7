package mcp

import (
	"fmt"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/agents"
)

// maxDescription bounds a description: clients cut longer ones.
const maxDescription = 2000

// instructions tell a model how the tools go together.
func (s *Server) instructions() string {
	return fmt.Sprintf(`Hayward runs subagents: sandboxed child processes that work in parallel to you.
Start several with spawn_subagent and run_in_background, go on with your own work, and collect what has ended with read_completions (wait_ms waits for the next end), or query_subagents for particular ones. No call takes over %v: what is not ready by then is in still_running; call again.
Results are kept until you have read them, also over a restart. A failed subagent is a result, not an error of the tool; errors have a code and say what to do.
Subagents go on when you stop waiting: cancel_subagents ends them with all their processes. Pass one parent_prompt_id per turn to cancel or check a turn as a whole.`, s.o.CallLimit) + s.aboutNesting()
}

// aboutNesting tells an agent that is a subagent itself what that means.
func (s *Server) aboutNesting() string {
	if !s.o.Inside {
		return ""
	}
	return `
You are a subagent yourself. What you spawn has no more rights than you, works in your directory, counts against your budget and limits, and ends when you end: collect its results before you finish.`
}

func (s *Server) aboutSpawn() string {
	var b strings.Builder
	fmt.Fprintf(&b, `Start a subagent, a sandboxed child process: a command, or an agent of a type. Waits for the result, less than %v; what takes longer goes on and is in still_running. With run_in_background it returns at once.
`, s.o.CallLimit)
	b.WriteString(s.limits())
	fmt.Fprintf(&b, "Sandbox: %s unless named; may be named: %s. Working directory: %s or below.\n",
		s.o.Sandbox, strings.Join(s.o.Sandboxes, ", "), s.o.Dir)
	if s.o.Inside {
		b.WriteString("You are a subagent yourself: what you spawn has no more rights than you, and ends when you end. At a limit it is refused.\n")
	}
	b.WriteString("Types:\n")
	if s.maySpawn(agents.TypeCommand) {
		b.WriteString("- command: runs command; prompt goes to its stdin. Costs a process, no model tokens.\n")
	}
	for i, d := range s.o.Types {
		if !s.maySpawn(d.Name) {
			continue
		}
		line := "- " + aboutType(d) + "\n"
		more := fmt.Sprintf("- and %d more, which the user can list with: hayward agents\n", len(s.o.Types)-i)
		if b.Len()+len(line)+len(more) > maxDescription {
			b.WriteString(more)
			break
		}
		b.WriteString(line)
	}
	return head(strings.TrimSuffix(b.String(), "\n"), maxDescription)
}

// maySpawn reports whether a spawn of the type can be accepted.
func (s *Server) maySpawn(typ string) bool { return !s.o.Inside || s.o.MaySpawn.Allows(typ) }

// aboutType is a type with what a run of it costs.
func aboutType(d agents.Definition) string {
	about := middle(strings.Join(strings.Fields(clean(d.Description)), " "), maxShortText)
	costs := []string{"model tokens"}
	if d.Runner == agents.TypeCommand && len(d.Command) > 0 {
		costs = []string{"a process"}
	}
	if d.Model != "" {
		costs = append(costs, "model "+d.Model)
	}
	if d.Effort != "" {
		costs = append(costs, "effort "+d.Effort)
	}
	if d.MaxTurns > 0 {
		costs = append(costs, fmt.Sprintf("at most %d turns", d.MaxTurns))
	}
	if d.Limits.MaxRuntime > 0 {
		costs = append(costs, fmt.Sprintf("at most %v", d.Limits.MaxRuntime))
	}
	return fmt.Sprintf("%s: %s Costs %s.", d.Name, strings.TrimSuffix(about, ".")+".", clean(strings.Join(costs, ", ")))
}

// limits are those that a parent should know before it spawns many.
func (s *Server) limits() string {
	var parts []string
	add := func(name, format string, show func(int64) any) {
		if n, ok := s.o.Limits[name]; ok && n > 0 {
			parts = append(parts, fmt.Sprintf(format, show(n)))
		}
	}
	count := func(n int64) any { return n }
	span := func(n int64) any { return time.Duration(n) * time.Millisecond }
	add("per_session", "%d at once in this session (more wait in a queue, or are refused with code limit)", count)
	add("total", "%d at once on this machine", count)
	add("max_runtime_ms", "each runs at most %v", span)
	add("max_memory_bytes", "each uses at most %d bytes of memory", count)
	if len(parts) == 0 {
		return ""
	}
	return "Limits: " + strings.Join(parts, ", ") + ".\n"
}

func (s *Server) aboutQuery() string {
	return fmt.Sprintf(`Read subagents of this session by id or name, and with wait_ms wait for them, less than %v a call. One that has ended is given with its result: status, exit code, output, end of stderr. Long outputs are cut with head and tail; output_offset reads the rest. Costs nothing but your own context.
What has ended and was shown counts as read once you call another tool, so read_completions does not repeat it.`, s.o.CallLimit)
}

func (s *Server) aboutCancel() string {
	return `End subagents of this session with all their processes, by ids, by turn (parent_prompt_id), by labels, or all. Returns once no process of them is left; draining tells that the time was too short for that. First they are asked to end, then killed; kill skips the asking. What they wrote to files stays. After a cancel by parent_prompt_id later spawns of that turn are refused.`
}

func (s *Server) aboutList() string {
	return `List the subagents of this session, oldest first, a line each, without outputs: those that are queued or run, and with include_finished those that have ended. Also the limits in force. Reads nothing as read. Costs nothing but your own context.`
}

func (s *Server) aboutCompletions() string {
	return fmt.Sprintf(`Read what has ended in this session and was not read, in the order in which it ended, with results. With wait_ms it waits for the next end when there is none, less than %v. An end counts as read once you call another tool after it was shown; what got lost on the way comes back, with the same dedupe_id. Costs nothing but your own context.`, s.o.CallLimit)
}

func (s *Server) aboutOutstanding() string {
	return `What is open of a turn (parent_prompt_id), or of the session: live foreground subagents, whether background ones live, and how many ends are unread. Ask before you finish a turn. Costs nothing but your own context.`
}
