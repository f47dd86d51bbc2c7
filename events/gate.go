package events

import "time"

// Gate refuses spawns of a cancelled prompt with [CodePromptCancelled]. It is
// durable by itself, so it holds for prompts that have no subagent, too.
type Gate struct {
	Schema  int    `json:"schema"`
	Session string `json:"parent_session_id"`
	// Prompt is the prompt that was cancelled. Empty: the whole session was, and
	// the prompts seen until At are closed.
	Prompt string `json:"parent_prompt_id,omitempty"`
	// At is when the gate was closed, or lifted.
	At time.Time `json:"at"`
	// Lifted tells that a spawn with reopen lifted it.
	Lifted bool `json:"lifted,omitzero"`
}
