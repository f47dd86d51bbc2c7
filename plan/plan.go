package plan

import "github.com/hayward-dev/hayward/events"

// LabelRun and LabelPlan are the labels that a run gives to its subagents: the
// run's id and the plan's name.
const (
	LabelRun  = "run"
	LabelPlan = "plan"
)

// Plan is a plan file, checked and resolved. It is what a run keeps of the file,
// so its encoding only grows.
type Plan struct {
	Name string `json:"name"`
	// Path is the file as it was named, Dir its absolute directory.
	Path string `json:"path"`
	Dir  string `json:"dir"`
	// Digest is the SHA-256 of the file's text, in hex; empty when there is none.
	Digest string `json:"digest,omitempty"`
	// Jobs bounds the subagents in flight; 0: the coordinator's limit decides.
	Jobs int `json:"jobs,omitzero"`
	// FailFast ends the run at the first subagent that fails.
	FailFast bool `json:"fail_fast,omitzero"`
	// OnDone is run when the run has ended.
	OnDone []string `json:"on_done,omitempty"`
	// Subagents are in the order of the file, those of a for_each entry in the
	// order of its items.
	Subagents []*Subagent `json:"subagents"`
}

// Subagent is one subagent of a plan, with defaults and item filled in.
type Subagent struct {
	Name string `json:"name"`
	// Entry is the name of the entry and Item the for_each item it comes from.
	Entry string `json:"entry"`
	Item  string `json:"item,omitempty"`
	// Line is the entry's line in the file; 0 when there is none.
	Line int `json:"line,omitzero"`

	Type        string   `json:"type,omitempty"`
	Description string   `json:"description,omitempty"`
	Command     []string `json:"command,omitempty"`
	Prompt      string   `json:"prompt,omitempty"`
	// PromptFile, Cwd, Workspace and AddDirs are absolute.
	PromptFile        string   `json:"prompt_file,omitempty"`
	Cwd               string   `json:"cwd"`
	Workspace         string   `json:"workspace,omitempty"`
	AddDirs           []string `json:"add_dirs,omitempty"`
	Deny              []string `json:"deny,omitempty"`
	Isolation         string   `json:"isolation,omitempty"`
	Sandbox           string   `json:"sandbox,omitempty"`
	SandboxBestEffort bool     `json:"sandbox_best_effort,omitzero"`
	// MaxRuntimeMS is 0 for the coordinator's default.
	MaxRuntimeMS int64             `json:"max_runtime_ms,omitzero"`
	Env          map[string]string `json:"env,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	// PassEnv names variables taken from the environment of the run.
	PassEnv []string `json:"pass_env,omitempty"`
	// Needs are the names of the subagents that must complete before.
	Needs []string `json:"needs,omitempty"`
	// Inputs maps the end of a HAYWARD_INPUT_ variable to one of Needs.
	Inputs map[string]string `json:"inputs,omitempty"`
	// Show asks for the output at the end of the run.
	Show bool `json:"show,omitzero"`
	// OnDone is run when this subagent has ended.
	OnDone []string `json:"on_done,omitempty"`
}

// spawn returns the request for s without what only a run knows.
func (s *Subagent) spawn() events.Spawn {
	spawn := events.Spawn{
		Name: s.Name, Description: s.Description, SubagentType: s.Type, Command: s.Command,
		Prompt: s.Prompt, PromptFile: s.PromptFile,
		Cwd: s.Cwd, Workspace: s.Workspace, AddDirs: s.AddDirs, Deny: s.Deny, Isolation: s.Isolation,
		Sandbox: s.Sandbox, SandboxBestEffort: s.SandboxBestEffort,
		Env: s.Env, Labels: s.Labels, RunInBackground: true,
	}
	if s.MaxRuntimeMS > 0 {
		ms := s.MaxRuntimeMS
		spawn.MaxRuntimeMS = &ms
	}
	return spawn
}
