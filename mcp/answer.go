package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hayward-dev/hayward/events"
)

// Sizes of answers, in bytes. Clients cut, or refuse, an answer over about 25 000
// tokens; text and structure both stay below maxAnswer, whichever a client shows
// to its model.
const (
	maxAnswer      = 56 << 10
	outputBudget   = 24 << 10 // the outputs of one answer together
	leastOutput    = 64       // of one output, in an answer that has to be halved again and again
	maxErrorText   = 2 << 10
	maxShortText   = 200
	maxQuarantined = 8
	maxDenials     = 4
)

// answer is what a tool says: a body for programs, and for people and models the
// same as text.
type answer struct {
	body body
	// shown are the subagents in full, with output; rows those in a line each.
	shown, rows []events.Snapshot
	// lines come before them in the text.
	lines []string
	// ends are the dedupe ids of the ends that the answer hands over.
	ends []string
}

// body is the structured content. Every tool fills in what it has.
type body struct {
	Subagents    []subagent       `json:"subagents,omitzero"`
	Results      []cancelled      `json:"results,omitzero"`
	Part         *part            `json:"part,omitempty"`
	Outstanding  *outstanding     `json:"outstanding,omitempty"`
	StillRunning []string         `json:"still_running,omitempty" jsonschema:"ids of subagents that have not ended"`
	Unknown      []string         `json:"unknown,omitempty" jsonschema:"ids asked for that this session does not have"`
	More         bool             `json:"more,omitzero" jsonschema:"there are others: call again"`
	After        string           `json:"after,omitempty" jsonschema:"the argument after that continues the list"`
	Limits       map[string]int64 `json:"limits,omitempty" jsonschema:"limits and deadlines in force, deadlines in ms"`
	NextStep     string           `json:"next_step,omitempty" jsonschema:"what to call next"`
	Warnings     []string         `json:"warnings,omitempty"`
	Error        *events.Error    `json:"error,omitempty"`
}

// subagent is a snapshot as a parent agent needs it.
type subagent struct {
	ID             string              `json:"subagent_id"`
	DedupeID       string              `json:"dedupe_id,omitempty" jsonschema:"of an end: the same for every delivery of it"`
	Name           string              `json:"name,omitempty"`
	Description    string              `json:"description,omitempty"`
	Type           string              `json:"subagent_type"`
	ParentPromptID string              `json:"parent_prompt_id,omitempty"`
	ParentID       string              `json:"parent_id,omitempty" jsonschema:"of a nested one: the subagent that spawned it"`
	CommandLine    string              `json:"command_line,omitempty"`
	State          events.State        `json:"state"`
	Status         events.Status       `json:"status"`
	Success        *bool               `json:"success,omitzero" jsonschema:"set once it has ended"`
	Reason         events.Reason       `json:"reason,omitempty"`
	Error          *events.Error       `json:"error,omitempty"`
	ExitCode       *int                `json:"exit_code,omitzero"`
	Signal         string              `json:"signal,omitempty"`
	ElapsedMS      int64               `json:"elapsed_ms"`
	LastLine       string              `json:"last_line,omitempty" jsonschema:"the last line of output of one that runs"`
	Output         string              `json:"output,omitempty" jsonschema:"stdout; head and tail when output_truncated"`
	OutputBytes    int64               `json:"output_bytes,omitzero" jsonschema:"size of the whole stdout"`
	Truncated      bool                `json:"output_truncated,omitzero"`
	OutputOffset   *int64              `json:"output_offset,omitzero" jsonschema:"where the cut output goes on: an argument of query_subagents"`
	Binary         bool                `json:"output_binary,omitzero" jsonschema:"the output is not text; bytes that are none are replaced"`
	OutputPath     string              `json:"output_path,omitempty" jsonschema:"the file that has the whole, on the machine of the coordinator"`
	StderrTail     string              `json:"stderr_tail,omitempty"`
	Sandbox        string              `json:"sandbox,omitempty" jsonschema:"the profile that was applied"`
	SandboxHint    *events.SandboxHint `json:"sandbox_hint,omitempty" jsonschema:"the failure looks like a denial of the sandbox"`
	Quarantined    []string            `json:"quarantined,omitempty"`
	Agent          *events.AgentResult `json:"agent,omitempty" jsonschema:"of an agent: why it stopped, its usage and cost, and what it was denied"`
	TreeTokens     int64               `json:"tree_tokens,omitzero" jsonschema:"model tokens of it and all that is nested in it, each run once"`
}

// result makes the answer that fits.
func (a *answer) result() (*sdk.CallToolResult, error) {
	base := a.body.Subagents
	for budget := outputBudget; ; budget /= 2 {
		each := budget / max(len(a.shown), 1)
		b := a.body
		b.Subagents = base
		lines := append([]string(nil), a.lines...)
		for _, s := range a.shown {
			v := view(s, each)
			b.Subagents = append(b.Subagents, v)
			lines = append(lines, v.text()...)
		}
		for _, s := range a.rows {
			v := view(s, 0)
			b.Subagents = append(b.Subagents, v)
			lines = append(lines, v.title())
		}
		for _, w := range b.Warnings {
			lines = append(lines, "Warning: "+w)
		}
		if b.NextStep != "" {
			lines = append(lines, b.NextStep)
		}
		structured, err := events.MarshalRecord(b)
		if err != nil {
			return nil, err
		}
		text := strings.Join(lines, "\n")
		if each > leastOutput && (len(structured) > maxAnswer || len(text) > maxAnswer) {
			continue
		}
		r := &sdk.CallToolResult{
			Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: json.RawMessage(structured),
		}
		if len(a.ends) > 0 {
			r.Meta = sdk.Meta{MetaEnds: a.ends}
		}
		return r, nil
	}
}

// view is a snapshot with at most n bytes of output; with 0 it is without any.
func view(s events.Snapshot, n int) subagent {
	v := subagent{
		ID: s.SubagentID, Name: s.Name, Description: middle(clean(s.Description), maxShortText), Type: s.SubagentType,
		ParentPromptID: promptOf(s), ParentID: s.ParentID, CommandLine: middle(clean(s.CommandLine), maxShortText), State: s.State, Status: s.Status,
		Success: s.Success, Reason: s.Reason, ExitCode: s.ExitCode, Signal: s.Signal, ElapsedMS: s.ElapsedMS,
	}
	if s.Error != nil {
		e := *s.Error
		e.Message, e.Details = middle(clean(e.Message), maxErrorText/4), nil
		v.Error = &e
	}
	if s.Sandbox != nil {
		v.Sandbox = s.Sandbox.Profile
	}
	if p := s.Progress; p != nil && !s.Status.Terminal() {
		v.LastLine = clean(p.LastLine)
	}
	if u := s.TreeUsage; u != nil {
		v.TreeTokens = u.Total()
	}
	if s.Status.Terminal() {
		v.DedupeID = events.DedupeID(s.SubagentID, s.Run)
	}
	if n == 0 {
		return v
	}
	v.SandboxHint = s.SandboxHint
	v.Quarantined = s.Quarantined[:min(len(s.Quarantined), maxQuarantined)]
	if s.Agent != nil {
		agent := *s.Agent
		agent.Models = nil
		agent.Denials = agent.Denials[:min(len(agent.Denials), maxDenials)]
		agent.Warnings = agent.Warnings[:min(len(agent.Warnings), maxDenials)]
		v.Agent = &agent
	}
	v.OutputBytes, v.OutputPath = s.Output.Bytes, s.Output.Path
	v.StderrTail = tail(clean(s.StderrTail), min(n/4, events.MaxStderrTail))
	v.cut(s.Output, n-len(v.StderrTail))
	return v
}

// promptOf is the turn that asked for it, as who asked called it.
func promptOf(s events.Snapshot) string {
	if s.ParentID != "" {
		return s.SpawnerPromptID
	}
	return s.ParentPromptID
}

// cut takes at most n bytes of an output: a quarter from its beginning, the rest
// from its end.
func (v *subagent) cut(o events.Output, n int) {
	text := o.Text
	if o.Encoding != "" {
		v.Binary = true
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil { // it is cut, with a mark in the middle
			v.Truncated, v.OutputOffset = true, new(int64)
			return
		}
		text = string(raw)
	}
	if len(text) <= n && !o.Truncated {
		v.Output = clean(text)
		return
	}
	// What the coordinator cut has more than this of the beginning and of the end.
	first := head(text, min(n/4, events.ReplyOutputHead))
	last := tail(text, min(n-len(first), events.ReplyOutputTail))
	if len(first)+len(last) > len(text) { // all that there is, of a short budget
		first, last = "", text
	}
	offset := int64(len(first))
	v.Truncated, v.OutputOffset = true, &offset
	v.Output = clean(first) + fmt.Sprintf("\n[... %d of %d bytes left out; query_subagents with output_offset %d reads on ...]\n",
		o.Bytes-int64(len(first)+len(last)), o.Bytes, offset) + clean(last)
}

// label is how a subagent is called in a text.
func label(s events.Snapshot) string {
	if s.Name != "" {
		return s.Name
	}
	return s.SubagentID
}

// title is one line about a subagent.
func (v *subagent) title() string {
	var b strings.Builder
	b.WriteString(v.ID)
	if v.Name != "" {
		fmt.Fprintf(&b, " (%s)", v.Name)
	}
	fmt.Fprintf(&b, ": %s", v.Status)
	if v.Success == nil && v.State != events.StateActive {
		fmt.Fprintf(&b, ", %s", v.State)
	}
	switch {
	case v.ExitCode != nil:
		fmt.Fprintf(&b, ", exit code %d", *v.ExitCode)
	case v.Signal != "":
		fmt.Fprintf(&b, ", %s", v.Signal)
	}
	if v.Reason != "" {
		fmt.Fprintf(&b, ", reason %s", v.Reason)
	}
	fmt.Fprintf(&b, ", %v", (time.Duration(v.ElapsedMS) * time.Millisecond).Round(time.Millisecond))
	what := v.Description
	if what == "" {
		what = v.CommandLine
	}
	if what != "" {
		fmt.Fprintf(&b, ": %s", strings.ReplaceAll(what, "\n", " "))
	}
	if v.LastLine != "" {
		fmt.Fprintf(&b, "\n  last line: %s", v.LastLine)
	}
	return b.String()
}

// text is all about a subagent, in lines.
func (v *subagent) text() []string {
	lines := []string{v.title()}
	if v.Error != nil {
		lines = append(lines, fmt.Sprintf("error %s: %s", v.Error.Code, v.Error.Message))
		if v.Error.Remedy != "" {
			lines = append(lines, "what to do: "+v.Error.Remedy)
		}
	}
	if h := v.SandboxHint; h != nil {
		lines = append(lines, fmt.Sprintf("the sandbox %s seems to have refused to %s %s: %s", h.Profile, h.Operation, h.Path, h.Remedy))
	}
	if g := v.Agent; g != nil {
		line := fmt.Sprintf("%s stopped: %s, after %d turns, %d tool calls and %d tokens", g.Agent, g.StopReason, g.Turns, g.ToolCalls, g.Usage.Total())
		if g.CostUSD != nil {
			line += fmt.Sprintf(" for $%.4f", *g.CostUSD)
		}
		if g.DenialCount > 0 {
			line += fmt.Sprintf("; %d calls were denied", g.DenialCount)
		}
		lines = append(lines, line)
	}
	if v.Output != "" {
		lines = append(lines, "output:", strings.TrimSuffix(v.Output, "\n"))
	}
	if v.StderrTail != "" {
		lines = append(lines, "end of stderr:", strings.TrimSuffix(v.StderrTail, "\n"))
	}
	if len(v.Quarantined) > 0 {
		lines = append(lines, "moved aside: "+strings.Join(v.Quarantined, ", "))
	}
	return lines
}

// handOver notes the ends among subagents that the answer shows in full.
func (a *answer) handOver(list []events.Snapshot) {
	a.shown = append(a.shown, list...)
	for _, s := range list {
		if s.Status.Terminal() {
			a.ends = append(a.ends, events.DedupeID(s.SubagentID, s.Run))
		} else {
			a.body.StillRunning = append(a.body.StillRunning, s.SubagentID)
		}
	}
}
