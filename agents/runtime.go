package agents

import (
	"strings"
)

// Value is a setting with the place that it comes from: request, role NAME,
// persona NAME, definition, default.
type Value[T any] struct {
	Value T      `json:"value"`
	From  string `json:"from"`
}

// Request is what a spawn asks of an agent. Empty: not said.
type Request struct {
	Model          string
	Effort         string
	CapabilityMode CapabilityMode
	Isolation      string
	Sandbox        string
	Background     *bool
	MaxTurns       int
	// DefaultSandbox and DefaultIsolation count where nobody says anything.
	DefaultSandbox, DefaultIsolation string
}

// Runtime is what a subagent of a type runs with.
type Runtime struct {
	Type           string                `json:"type"`
	Persona        string                `json:"persona,omitempty"`
	Role           string                `json:"role,omitempty"`
	Definition     Source                `json:"definition"`
	Model          Value[string]         `json:"model"`
	Effort         Value[string]         `json:"effort"`
	CapabilityMode Value[CapabilityMode] `json:"capability_mode"`
	PermissionMode Value[PermissionMode] `json:"permission_mode"`
	Isolation      Value[string]         `json:"isolation"`
	Sandbox        Value[string]         `json:"sandbox"`
	Background     Value[bool]           `json:"background"`
	MaxTurns       Value[int]            `json:"max_turns"`
	Spawns         SpawnsOf              `json:"spawns"`
	// Prompt is the system prompt: the definition's and the role's.
	Prompt string `json:"prompt,omitempty"`
	// Instructions are the persona's, put in front of the task.
	Instructions string `json:"instructions,omitempty"`
}

const fromDefault = "default"

// Resolve decides each setting of a spawn: what the request says, else the role,
// else the persona, else the definition. The capability mode is what all of them
// allow together, so that nobody widens what another one bounds. persona and role
// are nil where there is none.
func Resolve(d *Definition, persona *Persona, role *Role, r Request) Runtime {
	out := Runtime{
		Type: d.Name, Definition: d.Source, Spawns: d.Spawns(), Prompt: d.Prompt,
		PermissionMode: pick(candidate[PermissionMode]{d.PermissionMode, "definition"}, candidate[PermissionMode]{"default", fromDefault}),
		MaxTurns:       pick(candidate[int]{r.MaxTurns, "request"}, candidate[int]{d.MaxTurns, "definition"}),
		Sandbox: pick(candidate[string]{r.Sandbox, "request"}, candidate[string]{d.Sandbox, "definition"},
			candidate[string]{r.DefaultSandbox, fromDefault}),
		Background: Value[bool]{d.Background, "definition"},
	}
	if r.Background != nil {
		out.Background = Value[bool]{*r.Background, "request"}
	}
	var ofRole, ofPersona Defaults
	fromRole, fromPersona := "", ""
	if role != nil {
		ofRole, fromRole, out.Role = role.Defaults, "role "+role.Name, role.Name
		out.Prompt = strings.TrimSpace(d.Prompt + "\n\n" + role.Prompt)
	}
	if persona != nil {
		ofPersona, fromPersona, out.Persona = persona.Defaults, "persona "+persona.Name, persona.Name
		out.Instructions = persona.Instructions
	}
	choose := func(request, role, persona, definition, otherwise string) Value[string] {
		return pick(candidate[string]{request, "request"}, candidate[string]{role, fromRole}, candidate[string]{persona, fromPersona},
			candidate[string]{definition, "definition"}, candidate[string]{otherwise, fromDefault})
	}
	out.Model = choose(r.Model, ofRole.Model, ofPersona.Model, d.Model, "")
	out.Effort = choose(r.Effort, ofRole.Effort, ofPersona.Effort, d.Effort, "")
	out.Isolation = choose(r.Isolation, ofRole.Isolation, ofPersona.Isolation, d.Isolation, r.DefaultIsolation)

	out.CapabilityMode = Value[CapabilityMode]{CapabilityAll, fromDefault}
	for _, c := range []candidate[CapabilityMode]{
		{d.CapabilityMode, "definition"}, {ofRole.CapabilityMode, fromRole}, {ofPersona.CapabilityMode, fromPersona}, {r.CapabilityMode, "request"},
	} {
		if both := out.CapabilityMode.Value.Intersect(c.value); c.value != "" && both != out.CapabilityMode.Value {
			out.CapabilityMode = Value[CapabilityMode]{both, c.from}
		}
	}
	return out
}

type candidate[T any] struct {
	value T
	from  string
}

// pick returns the first candidate that is not zero, else a zero default.
func pick[T comparable](candidates ...candidate[T]) Value[T] {
	var zero T
	for _, c := range candidates {
		if c.value != zero {
			return Value[T]{c.value, c.from}
		}
	}
	return Value[T]{zero, fromDefault}
}

// RoleName is the role that goes with a spawn: that of the type, else that of the
// persona.
func RoleName(typ, persona string, exists func(string) bool) string {
	if exists(typ) {
		return typ
	}
	if persona != "" && exists(persona) {
		return persona
	}
	return ""
}
