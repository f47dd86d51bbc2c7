package events

import "encoding/json"

// RunnerCommand runs the command of a type as it is; the other runners are agents.
const RunnerCommand = "command"

// AgentSpec is an agent type as a spawn of it was resolved. It is part of the
// [Spec], so that a later change of the definition changes nothing of a subagent
// that was accepted.
type AgentSpec struct {
	// Runner is what runs it: "claude", "codex" or "command".
	Runner string `json:"runner"`
	// Definition is where the type is defined: a file, or "built-in"; empty where a
	// command was recognized as an agent. Hash is the SHA-256 of the settings here.
	Definition string `json:"definition,omitempty"`
	Hash       string `json:"hash,omitempty"`
	Persona    string `json:"persona,omitempty"`
	Role       string `json:"role,omitempty"`

	// SystemPrompt is the definition's and the role's. Instructions, of the persona,
	// and InitialPrompt come before the prompt of the spawn.
	SystemPrompt  string `json:"system_prompt,omitempty"`
	Instructions  string `json:"instructions,omitempty"`
	InitialPrompt string `json:"initial_prompt,omitempty"`

	Model          string `json:"model,omitempty"`
	Effort         string `json:"effort,omitempty"`
	CapabilityMode string `json:"capability_mode,omitempty"`
	PermissionMode string `json:"permission_mode,omitempty"`
	MaxTurns       int    `json:"max_turns,omitzero"`
	// Tools are the only tools; absent: all.
	Tools           []string         `json:"tools,omitzero"`
	DisallowedTools []string         `json:"disallowed_tools,omitempty"`
	MCPServers      []AgentMCPServer `json:"mcp_servers,omitempty"`
	// Skills are read into the agent's context at the start; their files are in its
	// home.
	Skills []AgentSkill `json:"skills,omitempty"`
	// Hooks are commands that the agent runs at its events, in the sandbox.
	Hooks json.RawMessage `json:"hooks,omitempty"`
	// OutputSchema is the JSON Schema that the result must meet.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// RequireNoDenials makes a denied tool call a failure of the run.
	RequireNoDenials bool `json:"require_no_denials,omitzero"`
	// TrustedProject: the project's own settings of the agent count.
	TrustedProject bool `json:"trusted_project,omitzero"`
	// Spawns says which types it may spawn by its definition.
	Spawns *Spawns `json:"spawns,omitempty"`
	// Access is how the model is reached: "gateway", or "login" with the agent's own
	// credentials, which are then within its reach.
	Access string `json:"access,omitempty"`

	// Origins says where a setting is from: request, definition, role NAME, persona
	// NAME, default.
	Origins map[string]string `json:"origins,omitempty"`
}

// The ways to a model.
const (
	AccessGateway = "gateway" // through the coordinator, which has the key
	AccessLogin   = "login"   // with a credential of the agent's own
)

// AgentSkill is a skill: a directory with a file SKILL.md. Hash is the SHA-256 of
// its files as they were when the spawn was accepted.
type AgentSkill struct {
	Name string `json:"name"`
	Dir  string `json:"dir"`
	Hash string `json:"hash"`
}

// AgentMCPServer is an MCP server of an agent. Config is absent for one that the
// runner knows by its name.
type AgentMCPServer struct {
	Name   string          `json:"name"`
	Config json.RawMessage `json:"config,omitempty"`
}
