package adapter

import (
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// Of returns the agent that a command runs, by the base name of its program, or
// "" if it is none of which the stream is known.
func Of(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	switch name := filepath.Base(argv[0]); name {
	case events.AgentClaude, events.AgentCodex:
		return name
	}
	return ""
}

// Request is a spawn of an agent, everything in it resolved. What is empty is left
// to the CLI, except where a field says otherwise.
type Request struct {
	// Agent is "claude" or "codex".
	Agent string
	// Command is the program and arguments of the caller's own, which come first.
	// Default: the agent's name.
	Command []string
	// Prompt is the task.
	Prompt string
	// SystemPrompt is the definition's. It is added to the CLI's own, or is in its
	// place if ReplaceSystemPrompt is set.
	SystemPrompt        string
	ReplaceSystemPrompt bool

	// Tools are the only tools it has; nil: all, empty: none.
	Tools           []string
	DisallowedTools []string
	// CapabilityMode is read-only, read-write, execute or all, as in package agents.
	CapabilityMode string
	// PermissionMode is as in package agents.
	PermissionMode string
	Model          string
	Effort         string
	MaxTurns       int
	// MCPServers are all that it has: those of the user's own configuration are not
	// used.
	MCPServers []MCPServer

	// Home is the private directory of the CLI, absolute, as the subagent sees it.
	// It outlives the run if its session is to be resumed.
	Home string
	// Confined tells that a sandbox of Hayward's is active.
	Confined bool
	// ReadOnlyFiles tells that this sandbox lets it change no file of the workspace.
	ReadOnlyFiles bool
	// TrustedProject lets the CLI use the settings of the project, among them hooks.
	TrustedProject bool
	// RequireNoDenials makes a denied tool call a failure of the run.
	RequireNoDenials bool
	// OutputSchema is the JSON Schema that the result must meet, nil for none.
	OutputSchema jsontext.Value
	// Hooks are commands at the agent's events, in the form of claude's settings.
	Hooks jsontext.Value
	// UID is what the subagent runs as.
	UID int
	// Relay is where its model is reached. The zero value leaves that to the CLI and
	// to the environment of the spawn, which is how a log-in is used.
	Relay Relay
	// Resume is the session to go on with, which is in Home.
	Resume string
	// SessionUsage is that of the result whose session Resume is.
	SessionUsage events.Usage
}

// Relay is an address at which model APIs are reached without their key.
type Relay struct {
	// URL is the base without a path, such as http://127.0.0.1:40123. It comes out in
	// argv and environment alone, never in a file, so that a port that is known only
	// later can be put in there.
	URL string
	// Token is what the relay knows the subagent by. It is no key.
	Token string
}

// MCPServer is one MCP server.
type MCPServer struct {
	Name string
	// Config is its JSON object in the form of claude's .mcp.json: command, args and
	// env, or type, url and headers.
	Config jsontext.Value
}

// Setup is the command that runs an agent.
type Setup struct {
	Argv []string
	// Env is added to the environment of the spawn and wins over it.
	Env map[string]string
	// Unset are variables that must not be in the environment: they would lead the
	// CLI past the relay.
	Unset []string
	// Files are to be in the home before the start. They hold no credential.
	Files []File
	// Stdin is written to the command's stdin, then it is closed.
	Stdin string
	// Adapter goes into the child's spec.
	Adapter events.AdapterSpec
	// Warnings say what was asked and has no counterpart in this CLI.
	Warnings []string
}

// File is a file of the home, mode 0600, its directories 0700.
type File struct {
	// Path is relative to the home, with slashes.
	Path string
	Data []byte
}

// New returns the command of a request, or a refusal that names the ways on.
func New(r Request) (Setup, *events.Error) {
	switch r.Agent {
	case events.AgentClaude:
		return claude(r)
	case events.AgentCodex:
		return codex(r)
	}
	return Setup{}, events.Errorf(events.CodeUnsupported, events.LayerGate, "there is no adapter for the agent %q", r.Agent).
		WithRemedy("use claude or codex, or run it as a command")
}
