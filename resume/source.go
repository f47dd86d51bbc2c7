package resume

import (
	"cmp"
	"maps"
	"path/filepath"

	"github.com/hayward-dev/hayward/events"
)

// Source is a finished subagent as its record and its spec say it.
type Source struct {
	Record events.Record
	Spec   events.Spec
}

// Runner is what ran it: claude, codex or command.
func (s Source) Runner() string {
	if s.Spec.Agent == nil {
		return events.RunnerCommand
	}
	return s.Spec.Agent.Runner
}

// Persona is the persona that it had, empty for none.
func (s Source) Persona() string {
	if s.Spec.Agent == nil {
		return ""
	}
	return s.Spec.Agent.Persona
}

// Isolated reports whether it had a working tree of its own.
func (s Source) Isolated() bool { return s.Record.Worktree != nil }

// Cwd is where it worked.
func (s Source) Cwd() string {
	w := s.Record.Worktree
	if w == nil {
		return s.Spec.Request.Cwd
	}
	below, err := filepath.Rel(w.Repository, s.Spec.Request.Cwd)
	if err != nil || !filepath.IsLocal(below) {
		return w.Path
	}
	return filepath.Join(w.Path, below)
}

// Session is the session that the agent named at its end, empty if it did not.
func (s Source) Session() string {
	if s.Record.Agent == nil {
		return ""
	}
	return s.Record.Agent.SessionID
}

// inherited is the model that a CLI chooses by itself.
const inherited = "inherit"

// model is the model that it said it used, else the one that was asked for.
func (s Source) model() string {
	if s.Runner() == events.RunnerCommand {
		return ""
	}
	if s.Record.Agent != nil && s.Record.Agent.Model != "" {
		return s.Record.Agent.Model
	}
	if m := s.Spec.Agent.Model; m != inherited {
		return m
	}
	return ""
}

// snapshotRef is the ref that the files of its working tree are kept by.
func (s Source) snapshotRef() string {
	if !s.Isolated() {
		return ""
	}
	return "refs/hayward/subagents/" + s.Record.ID + "/tree"
}

// goOn is what an agent is told by a resume that says nothing.
const goOn = "Go on where you stopped."

// inherit fills in what the request of a resume leaves open from that of its source.
func inherit(s events.Spawn, src Source) events.Spawn {
	from := src.Spec.Request
	s.SubagentType, s.Persona, s.Cwd, s.Workspace = from.SubagentType, src.Persona(), from.Cwd, from.Workspace
	// The command of a type that runs one is today's.
	if from.SubagentType == commandType || src.Runner() != events.RunnerCommand {
		s.Command, s.Raw = from.Command, from.Raw
	}
	if s.Prompt == "" && s.PromptFile == "" && s.Stdin != events.StdinStream {
		if src.Runner() == events.RunnerCommand {
			s.Prompt, s.PromptFile = from.Prompt, from.PromptFile
		} else {
			s.Prompt = goOn
		}
	}
	if s.Sandbox == "" {
		s.Sandbox, s.SandboxBestEffort = from.Sandbox, s.SandboxBestEffort || from.SandboxBestEffort
	}
	s.Isolation = cmp.Or(s.Isolation, from.Isolation)
	s.CapabilityMode = cmp.Or(s.CapabilityMode, from.CapabilityMode)
	s.Description = cmp.Or(s.Description, from.Description)
	s.AddDirs = orSlice(s.AddDirs, from.AddDirs)
	s.Deny = orSlice(s.Deny, from.Deny)
	s.Labels = orMap(s.Labels, from.Labels)
	s.Inputs = orMap(s.Inputs, from.Inputs)
	s.MaySpawn = orSlice(s.MaySpawn, from.MaySpawn)
	s.MaxRuntimeMS = cmp.Or(s.MaxRuntimeMS, from.MaxRuntimeMS)
	s.MaxMemoryBytes = cmp.Or(s.MaxMemoryBytes, from.MaxMemoryBytes)
	s.IdleTimeoutMS = cmp.Or(s.IdleTimeoutMS, from.IdleTimeoutMS)
	if s.OutputSchema == nil {
		s.OutputSchema = from.OutputSchema
	}
	env := make(map[string]string, len(from.Env)+len(s.Env))
	maps.Copy(env, from.Env)
	for _, trace := range []string{"TRACEPARENT", "TRACESTATE"} { // of the request that has ended
		delete(env, trace)
	}
	maps.Copy(env, s.Env)
	s.Env = env
	return s
}

// commandType is the subagent type that runs a command as it is.
const commandType = "command"

func orSlice(a, b []string) []string {
	if len(a) > 0 {
		return a
	}
	return b
}

func orMap(a, b map[string]string) map[string]string {
	if len(a) > 0 {
		return a
	}
	return b
}
