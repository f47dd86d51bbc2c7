package modelstub

import (
	"encoding/json"
	"fmt"
	"os"

	jsonv2 "github.com/go-json-experiment/json"
)

// Script is what the model says.
type Script struct {
	Scenarios []Scenario `json:"scenarios"`
	// Models are what the list of models names. Default: one of each API.
	Models []string `json:"models,omitempty"`
	// Keys are the credentials that are let in, as a bearer token or as an API key.
	// None: everybody.
	Keys []string `json:"keys,omitempty"`
}

// Scenario is one conversation's turns.
type Scenario struct {
	// Match is a part of the request's body. Empty fits every request.
	Match string `json:"match,omitempty"`
	Turns []Turn `json:"turns"`
	// Respond, if set, makes the turn instead: number n of the conversation that r
	// carries.
	Respond func(r Request, n int) Turn `json:"-"`
}

// Turn is one answer of the model: its thinking, its text, then its tool calls.
type Turn struct {
	Thinking string     `json:"thinking,omitempty"`
	Text     string     `json:"text,omitempty"`
	Tools    []ToolCall `json:"tools,omitempty"`
	// Stop is the stop reason in Anthropic's words. Default: tool_use with tools,
	// else end_turn.
	Stop  string `json:"stop,omitempty"`
	Usage Usage  `json:"usage,omitzero"`
	// Fail are the failures that come before the answer, one for each request.
	Fail []Failure `json:"fail,omitempty"`
	// Always makes the last failure stay: there is no answer.
	Always bool `json:"always,omitzero"`
	// DelayMS goes by before the answer, ChunkMS between its parts.
	DelayMS int64 `json:"delay_ms,omitzero"`
	ChunkMS int64 `json:"chunk_ms,omitzero"`
	// Hold stops the answer after its first part until the client goes away.
	Hold bool `json:"hold,omitzero"`
	// Repeat answers every later turn with this one. Only for the last.
	Repeat bool `json:"repeat,omitzero"`
	// Until, if set, stops the answer before its first part until it is closed.
	Until <-chan struct{} `json:"-"`
	// Middle, if set, gets a value when half of a streamed answer is sent, where the
	// answer then stops until Resume is closed. A value that nobody takes is dropped.
	Middle chan<- struct{} `json:"-"`
	Resume <-chan struct{} `json:"-"`
}

// ToolCall is one call of a tool. An input that is a string makes it a custom tool
// of OpenAI's, which takes text.
type ToolCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// Usage is what the answer says it cost, in tokens that do not overlap.
type Usage struct {
	Input         int64 `json:"input,omitzero"`
	Output        int64 `json:"output,omitzero"`
	CacheRead     int64 `json:"cache_read,omitzero"`
	CacheCreation int64 `json:"cache_creation,omitzero"`
}

// Failure is an answer that fails.
type Failure struct {
	// Status is the HTTP status, such as 429, 500, 529.
	Status int `json:"status,omitzero"`
	// RetryAfter is the header of that name, in seconds.
	RetryAfter string `json:"retry_after,omitempty"`
	// Type and Message are those of the error. Default: what goes with Status.
	Type    string `json:"type,omitempty"`
	Message string `json:"message,omitempty"`
	// Cut, without a Status, begins the answer and cuts the connection after so many
	// of its parts.
	Cut int `json:"cut,omitzero"`
}

// Load reads a script from a JSON file. Unknown members are an error.
func Load(path string) (Script, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Script{}, fmt.Errorf("read the script: %w", err)
	}
	var s Script
	if err := jsonv2.Unmarshal(b, &s, jsonv2.RejectUnknownMembers(true)); err != nil {
		return Script{}, fmt.Errorf("script %s: %w", path, err)
	}
	if err := s.check(); err != nil {
		return Script{}, fmt.Errorf("script %s: %w", path, err)
	}
	return s, nil
}

func (s Script) check() error {
	for i, sc := range s.Scenarios {
		for n, t := range sc.Turns {
			switch {
			case t.Repeat && n != len(sc.Turns)-1:
				return fmt.Errorf("scenario %d: turn %d repeats and is not the last", i, n)
			case t.Always && len(t.Fail) == 0:
				return fmt.Errorf("scenario %d: turn %d always fails and has no failure", i, n)
			}
			for _, f := range t.Fail {
				if (f.Status == 0) == (f.Cut == 0) || f.Status != 0 && (f.Status < 400 || f.Status > 599) {
					return fmt.Errorf("scenario %d: turn %d: a failure has either a status of 400 to 599 or a cut", i, n)
				}
			}
			for _, c := range t.Tools {
				if !json.Valid(c.Input) {
					return fmt.Errorf("scenario %d: turn %d: the input of %s is no JSON", i, n, c.Name)
				}
			}
		}
	}
	return nil
}

// stop is the stop reason of a turn.
func (t Turn) stop() string {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Tools) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// custom returns the text of a custom tool's input.
func (c ToolCall) custom() (string, bool) {
	var text string
	if err := json.Unmarshal(c.Input, &text); err != nil {
		return "", false
	}
	return text, true
}
