package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/tracecontext"
)

// spawnArguments are what a model may ask for. What would widen the rights of a
// subagent is not among it: that is for who started the server.
type spawnArguments struct {
	Type           string            `json:"subagent_type"`
	Command        []string          `json:"command"`
	Prompt         string            `json:"prompt"`
	Description    string            `json:"description"`
	Name           string            `json:"name"`
	Background     bool              `json:"run_in_background"`
	WaitMS         *int64            `json:"wait_ms"`
	ParentPromptID string            `json:"parent_prompt_id"`
	Cwd            string            `json:"cwd"`
	Sandbox        string            `json:"sandbox"`
	Isolation      string            `json:"isolation"`
	Model          string            `json:"model"`
	ResumeFrom     string            `json:"resume_from"`
	MaxRuntimeMS   *int64            `json:"max_runtime_ms"`
	Env            map[string]string `json:"env"`
	Labels         map[string]string `json:"labels"`
	Inputs         map[string]string `json:"inputs"`
	OutputSchema   json.RawMessage   `json:"output_schema"`
	NoDenials      bool              `json:"require_no_denials"`
}

var spawnInput = []argument{
	{"subagent_type", text("the type, see the description of the tool; command when command is given")},
	{"command", list("for type command: the program and its arguments, not passed to a shell; for a shell line use [\"sh\", \"-c\", \"...\"]", 1, events.MaxArgv)},
	{"prompt", text("the task of an agent; a command reads it on stdin. At most 256 KiB")},
	{"description", text("what it is for, in three to five words")},
	{"name", text("a short name, unique among what runs in the session; usable instead of the id")},
	{"run_in_background", flag("return at once instead of waiting for the result")},
	{"wait_ms", number("how long to wait for the result, when not in the background. Default: as long as a call may take, which is less than a minute", 1, events.MaxQueryMS)},
	{"parent_prompt_id", text("an id of your current turn, the same for all spawns of it: cancel_subagents and outstanding take it")},
	{"cwd", text("working directory, absolute or below that of this server, which is the default")},
	{"sandbox", text("sandbox profile, see the description of the tool; the default is the widest that may be named unless the user allowed more")},
	{"isolation", word("none: it works on the files themselves; worktree: in a working tree of its own", events.IsolationNone, events.IsolationWorktree)},
	{"model", text("model of an agent, in place of its type's")},
	{"resume_from", text("id of a subagent of this session that has ended, to go on from: it knows what was said and done, and reads the prompt next. Leave subagent_type and command out; cwd, model and env stay as they were")},
	{"max_runtime_ms", number("end it after that long", 1, events.MaxDurationMS)},
	{"env", table("environment variables to add")},
	{"labels", table("labels to select by, as in cancel_subagents")},
	{"inputs", table("name to id of an ended subagent of this session, whose stdout is then the file in $HAYWARD_INPUT_<name>")},
	{"output_schema", object("a JSON Schema that the result of an agent has to meet; the result is then in agent.structured")},
	{"require_no_denials", flag("fail if an agent is denied a tool call")},
}

// spawn starts a subagent and waits for its result, unless in the background.
func (k *call) spawn(a spawnArguments) (*answer, error) {
	if err := within("wait_ms", a.WaitMS, 1, events.MaxQueryMS); err != nil {
		return nil, err
	}
	if a.Background && a.WaitMS != nil {
		return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "run_in_background and wait_ms exclude each other")
	}
	request, refusal := k.wanted(a)
	if refusal != nil {
		return nil, refusal
	}
	k.mu.Lock()
	k.spawned[request.ID] = struct{}{}
	k.mu.Unlock()

	stop := func() {}
	if !a.Background {
		budget := k.left(a.WaitMS).Milliseconds()
		request.AwaitBudgetMS = &budget
		stop = k.progress("starting", func() []string { return []string{request.ID} })
	}
	reply, err := k.c.Spawn(k.traced(k.wait), request)
	stop()
	snapshot := reply.Value.Snapshot
	if k.gone(err) {
		var known bool
		if snapshot, known, err = k.known(request.ID); !known && err == nil {
			err = errGone
		}
	}
	if err != nil {
		e := *events.AsError(err)
		return nil, e.WithDetail("subagent_id", request.ID)
	}
	answer := &answer{body: body{Warnings: reply.Value.Warnings}}
	answer.handOver([]events.Snapshot{snapshot})
	switch {
	case snapshot.Status.Terminal():
	case a.Background:
		answer.body.NextStep = fmt.Sprintf("It runs in the background. Call query_subagents with ids [%q] and wait_ms, or read_completions later.", snapshot.SubagentID)
	default:
		answer.body.NextStep = stillRunning([]string{snapshot.SubagentID})
	}
	return answer, nil
}

// known reads a subagent that may not have been accepted.
func (k *call) known(id string) (s events.Snapshot, ok bool, err error) {
	r, err := k.snapshots([]string{id})
	if events.HasCode(err, events.CodeUnknownID) || err == nil && len(r.Snapshots) == 0 {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	return r.Snapshots[0], true, nil
}

func (k *call) spawnRequest(a spawnArguments) (events.Spawn, *events.Error) {
	s := events.Spawn{}
	k.o.Prepare(&s)
	s.ParentSessionID, s.ID, s.AddDirs = k.o.Session, events.NewID(), k.o.AddDirs
	s.SubagentType, s.Command, s.Prompt, s.ParentPromptID = a.Type, a.Command, a.Prompt, a.ParentPromptID
	s.Description, s.Name, s.RunInBackground = a.Description, a.Name, a.Background
	s.Model, s.ResumeFrom, s.Labels, s.Inputs = a.Model, a.ResumeFrom, a.Labels, a.Inputs
	s.OutputSchema, s.RequireNoDenials = a.OutputSchema, a.NoDenials
	if len(a.Command) == 0 && a.Type == "" {
		return s, events.Errorf(events.CodeMissingCommand, events.LayerGate, "spawn_subagent: there is neither a command nor a subagent_type")
	}
	if a.Isolation != "" {
		s.Isolation = a.Isolation
	}
	if a.MaxRuntimeMS != nil {
		s.MaxRuntimeMS = a.MaxRuntimeMS
	}
	for name, value := range a.Env {
		if s.Env == nil {
			s.Env = make(map[string]string)
		}
		s.Env[name] = value
	}
	if a.Sandbox != "" {
		if !slices.ContainsFunc(k.o.Sandboxes, func(p string) bool { return sameProfile(p, a.Sandbox) }) {
			return s, events.Errorf(events.CodeForbidden, events.LayerPermission, "spawn_subagent: the sandbox profile %q may not be named here", a.Sandbox).
				WithDetail("allowed", strings.Join(k.o.Sandboxes, ", ")).
				WithRemedy("name one of these or none; the user allows others with hayward mcp --allow-sandbox")
		}
		s.Sandbox = a.Sandbox
	}
	var err *events.Error
	s.Cwd, err = k.cwd(a.Cwd)
	return s, err
}

// sameProfile compares names as the sandbox does.
func sameProfile(a, b string) bool {
	fold := strings.NewReplacer("-", "", "_", "")
	return strings.EqualFold(fold.Replace(a), fold.Replace(b))
}

// cwd is where a spawn starts: within the directories that the server was given,
// links resolved. The daemon opens it again, so this is a rule for a well-meaning
// model; what a subagent can reach is up to its sandbox.
func (k *call) cwd(asked string) (string, *events.Error) {
	if asked == "" {
		return k.o.Dir, nil
	}
	if !filepath.IsAbs(asked) {
		asked = filepath.Join(k.o.Dir, asked)
	}
	real, err := filepath.EvalSymlinks(asked)
	if err != nil {
		return "", events.Errorf(events.CodeCwdMissing, events.LayerWorkspace, "spawn_subagent: cwd: %w", err)
	}
	for _, dir := range append([]string{k.o.Dir}, k.o.AddDirs...) {
		top, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue // it is gone, so nothing is below it
		}
		if rel, err := filepath.Rel(top, real); err == nil && filepath.IsLocal(rel) {
			return real, nil
		}
	}
	return "", events.Errorf(events.CodeForbidden, events.LayerPermission, "spawn_subagent: cwd %s is not below %s", asked, k.o.Dir).
		WithRemedy("choose a directory below it; the user allows others with hayward mcp --add-dir")
}

// traced carries the span of the call, if its client is in one: the subagent is a
// part of it, and its command finds itself in TRACEPARENT.
func (k *call) traced(ctx context.Context) context.Context {
	member := func(key string) string {
		v, _ := k.request.Params.Meta[key].(string)
		if len(v) > maxTrace || strings.ContainsFunc(v, notHeader) {
			return ""
		}
		return v
	}
	span := tracecontext.Parse(member(events.HeaderTraceParent), member(events.HeaderTraceState))
	if !span.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, span)
}

// maxTrace bounds a member of a trace context: W3C Trace Context asks for 512
// bytes at least.
const maxTrace = 512

func notHeader(r rune) bool { return r < ' ' || r > '~' }

// stillRunning says how to go on waiting.
func stillRunning(ids []string) string {
	return fmt.Sprintf("Still running, which is no failure: %s. Call query_subagents with these ids and wait_ms to wait on, or do something else and call read_completions later.", strings.Join(ids, ", "))
}
