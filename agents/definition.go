package agents

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// TypeCommand is the type that runs a command as it is. It is no definition, and
// none can have its name.
const TypeCommand = "command"

// Definition is a type of subagent. What it leaves open is empty.
type Definition struct {
	// Name is the type, in lower case.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Prompt is the system prompt: the text below the header.
	Prompt string `json:"prompt,omitempty"`

	// Tools are rules such as Read, mcp__github__* or Agent(explore). Nil: all
	// tools that the spawner has; empty: none.
	Tools           []string `json:"tools,omitzero"`
	DisallowedTools []string `json:"disallowed_tools,omitempty"`

	CapabilityMode CapabilityMode `json:"capability_mode,omitempty"`
	PermissionMode PermissionMode `json:"permission_mode,omitempty"`

	// Model is an alias or a full id. Empty: the spawner's.
	Model string `json:"model,omitempty"`
	// Effort is low, medium, high, xhigh, max, or a number of tokens.
	Effort   string `json:"effort,omitempty"`
	MaxTurns int    `json:"max_turns,omitzero"`

	// Isolation is none or worktree; Sandbox is the name of a profile.
	Isolation string `json:"isolation,omitempty"`
	Sandbox   string `json:"sandbox,omitempty"`
	// Background: a spawn of it returns at once.
	Background bool `json:"background,omitzero"`
	// Disabled: a spawn of it is refused.
	Disabled bool `json:"disabled,omitzero"`

	// MCP says which of the spawner's MCP servers it has, MCPServers are its own.
	MCP        MCPInheritance `json:"mcp_inheritance,omitzero"`
	MCPServers []MCPServer    `json:"mcp_servers,omitempty"`
	Skills     []string       `json:"skills,omitempty"`
	// InitialPrompt comes before the prompt of the spawn.
	InitialPrompt string `json:"initial_prompt,omitempty"`
	// Hooks are kept as they are written; [Definition.HookSettings] reads them.
	Hooks any `json:"hooks,omitempty"`
	// OutputSchema is the JSON Schema that a result must meet.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// RequireNoDenials makes a denied tool call a failure of the run.
	RequireNoDenials bool `json:"require_no_denials,omitzero"`

	// Runner is what runs it: claude, codex or command. Empty: chosen at the spawn.
	Runner string `json:"runner,omitempty"`
	// Command is the argv of the runner command.
	Command []string          `json:"command,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Limits  Limits            `json:"limits,omitzero"`

	// Extra holds the keys that Hayward does not know, as they are written.
	Extra map[string]any `json:"extra,omitempty"`

	Source Source `json:"source"`
	// Lines has the line of each key that the file gives, by the key's name here.
	Lines map[string]int `json:"lines,omitempty"`
}

// Limits bound a run. Zero: no bound of its own.
type Limits struct {
	MaxRuntime  time.Duration `json:"max_runtime,omitzero,format:units"`
	IdleTimeout time.Duration `json:"idle_timeout,omitzero,format:units"`
	// MaxMemory is in bytes.
	MaxMemory int64 `json:"max_memory,omitzero"`
}

// MCPServer is an MCP server: one of the spawner's by its name, or one of its own.
type MCPServer struct {
	Name   string `json:"name"`
	Config any    `json:"config,omitempty"`
}

// MCPInheritance is all, none, only the named, or all except the named. The zero
// value is all.
type MCPInheritance struct {
	Mode  string   `json:"mode,omitempty"` // "", all, none, named, except
	Names []string `json:"names,omitempty"`
}

// Scope is a place that definitions come from.
type Scope string

// The scopes, the strongest first.
const (
	ScopeProject Scope = "project"
	ScopeUser    Scope = "user"
	ScopeBuiltIn Scope = "built-in"
)

// Source is where a definition stands.
type Source struct {
	Scope Scope `json:"scope"`
	// Format is whose form the file has: hayward, claude, grok, codex.
	Format string `json:"format"`
	// Path is the file; empty for a built-in one.
	Path string `json:"path,omitempty"`
	// Untrusted: the project is not trusted.
	Untrusted bool `json:"untrusted,omitzero"`
}

// String names the source for people.
func (s Source) String() string {
	if s.Path == "" {
		return string(s.Scope)
	}
	return s.Path
}

// SpawnsOf says which types a definition may spawn.
type SpawnsOf struct {
	// Blocked: none. Any: every type but those in Except. Else only Types.
	Blocked bool     `json:"blocked,omitzero"`
	Any     bool     `json:"any,omitzero"`
	Except  []string `json:"except,omitempty"`
	Types   []string `json:"types,omitempty"`
}

// Allows reports whether a type may be spawned.
func (s SpawnsOf) Allows(typ string) bool {
	typ = strings.ToLower(typ)
	switch {
	case s.Blocked:
		return false
	case s.Any:
		return !slices.Contains(s.Except, typ)
	}
	return slices.Contains(s.Types, typ)
}

// SpawnsRule reports whether a tool rule is about the types that may be spawned.
func SpawnsRule(rule string) bool {
	name, _ := splitRule(rule)
	return isAgentTool(name)
}

// CommandsRule reports whether a tool rule is about every command that is run in a
// shell, not about some of them.
func CommandsRule(rule string) bool {
	name, args := splitRule(rule)
	return (name == "Bash" || name == "shell") && (len(args) == 0 || slices.Equal(args, []string{"*"}))
}

// Spawns derives it from the tool lists: rules Agent(a, b), or Task(a, b) as older
// files have it, allow those types; the bare tool or an open list allows every
// type; a list without it allows none. A bare Agent in the deny list blocks all,
// Agent(x) there takes x away.
func (d *Definition) Spawns() SpawnsOf {
	s := SpawnsOf{Any: d.Tools == nil, Blocked: d.Tools != nil}
	for _, rule := range d.Tools {
		name, args := splitRule(rule)
		if !isAgentTool(name) {
			continue
		}
		s.Blocked = false
		if args == nil {
			s.Any = true
			continue
		}
		s.Types = appendNames(s.Types, args)
	}
	if s.Any {
		s.Types = nil
	}
	for _, rule := range d.DisallowedTools {
		name, args := splitRule(rule)
		if !isAgentTool(name) {
			continue
		}
		if args == nil {
			return SpawnsOf{Blocked: true}
		}
		s.Types = removeNames(s.Types, args)
		if s.Any {
			s.Except = appendNames(s.Except, args)
		}
	}
	if !s.Any && len(s.Types) == 0 {
		return SpawnsOf{Blocked: true}
	}
	return s
}
