package events

import "encoding/json"

// The agent CLIs whose streams Hayward reads.
const (
	AgentClaude = "claude" // claude -p, by Anthropic
	AgentCodex  = "codex"  // codex exec, by OpenAI
)

// AdapterSpec tells the supervisor in a child whose stream the command's stdout
// is and what counts as its success.
type AdapterSpec struct {
	// Agent is "claude" or "codex".
	Agent string `json:"agent"`
	// RequireNoDenials makes a denied tool call a failure of the run.
	RequireNoDenials bool `json:"require_no_denials,omitzero"`
	// SessionUsage is that of the result whose session is resumed.
	SessionUsage Usage `json:"session_usage,omitzero"`
}

// Usage counts tokens. The four counts do not overlap: their sum is everything
// that was read and written.
type Usage struct {
	// InputTokens were read and neither taken from a cache nor put into one.
	InputTokens int64 `json:"input_tokens"`
	// OutputTokens were written, reasoning included.
	OutputTokens        int64 `json:"output_tokens"`
	CacheReadTokens     int64 `json:"cache_read_tokens,omitzero"`
	CacheCreationTokens int64 `json:"cache_creation_tokens,omitzero"`
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:         u.InputTokens + v.InputTokens,
		OutputTokens:        u.OutputTokens + v.OutputTokens,
		CacheReadTokens:     u.CacheReadTokens + v.CacheReadTokens,
		CacheCreationTokens: u.CacheCreationTokens + v.CacheCreationTokens,
	}
}

// Less returns what u has more than v.
func (u Usage) Less(v Usage) Usage {
	return Usage{
		InputTokens:         max(u.InputTokens-v.InputTokens, 0),
		OutputTokens:        max(u.OutputTokens-v.OutputTokens, 0),
		CacheReadTokens:     max(u.CacheReadTokens-v.CacheReadTokens, 0),
		CacheCreationTokens: max(u.CacheCreationTokens-v.CacheCreationTokens, 0),
	}
}

// Total is everything that was read and written.
func (u Usage) Total() int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheCreationTokens
}

// ModelUsage is the usage of one model. Its usage is a member of its own name, so
// that it reads like the total beside it.
type ModelUsage struct {
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
	// CostUSD is what the agent says it cost; absent where it does not say.
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// Cost is what calls of models cost by the coordinator's table of prices.
type Cost struct {
	// USD is the sum over the models that have a price; absent if none has.
	USD *float64 `json:"usd,omitempty"`
	// Unpriced are the models that were used and have no price: what they cost is not
	// in USD.
	Unpriced []string `json:"unpriced_models,omitempty"`
}

// StopReason says why an agent stopped. Only the natural end is a success.
type StopReason string

// The stop reasons.
const (
	StopEnd       StopReason = "end"        // it had nothing more to do
	StopMaxTurns  StopReason = "max_turns"  // it used up its turns
	StopMaxTokens StopReason = "max_tokens" // its last answer was cut at the model's limit
	StopBudget    StopReason = "budget"     // it used up its budget
	StopRefusal   StopReason = "refusal"    // the model refused to go on
	StopError     StopReason = "error"      // the model API or the agent failed
	StopCancelled StopReason = "cancelled"  // it was ended on request, or by a bound
	StopCut       StopReason = "cut"        // its stream ended without saying how
)

// DenialOrigin says who denied a tool call.
type DenialOrigin string

// The origins of a denial.
const (
	DenialNoApprover DenialOrigin = "no_approver" // it would have been asked, and nobody is there to answer
	DenialRule       DenialOrigin = "rule"        // a rule or mode of the agent forbids it
	DenialUnknown    DenialOrigin = "unknown"     // the agent does not say
)

// Denial is a tool call that an agent was not allowed.
type Denial struct {
	Tool   string       `json:"tool"`
	ToolID string       `json:"tool_id,omitempty"`
	Origin DenialOrigin `json:"origin"`
	// Input is what it wanted to do, shortened to [MaxLastLine] bytes.
	Input string `json:"input,omitempty"`
}

// MaxDenials bounds the denials that are listed; all are counted.
const MaxDenials = 16

// AgentResult is what an agent CLI said of its run. The text of its answer is
// the output of the subagent.
type AgentResult struct {
	// Agent is "claude" or "codex", Version the version it tells.
	Agent   string `json:"agent"`
	Version string `json:"version,omitempty"`
	// SessionID is the agent's own, to resume it by.
	SessionID  string     `json:"session_id,omitempty"`
	Model      string     `json:"model,omitempty"`
	StopReason StopReason `json:"stop_reason"`
	// Turns counts the model's answers, or the prompts that were answered where the
	// agent tells no more; ToolCalls counts what it called.
	Turns     int `json:"turns"`
	ToolCalls int `json:"tool_calls"`

	// Usage is that of the whole run. UsageIncomplete tells that the run ended
	// before its agent could say all of it.
	Usage           Usage `json:"usage"`
	UsageIncomplete bool  `json:"usage_incomplete,omitzero"`
	// SessionUsage is that of the session, all its runs, where the agent counts so.
	SessionUsage Usage `json:"session_usage,omitzero"`
	// CostUSD is what the agent says it cost; absent where it does not say.
	CostUSD *float64     `json:"cost_usd,omitempty"`
	Models  []ModelUsage `json:"models,omitempty"`
	// Cost is what its calls through the coordinator's gateway cost by the table of
	// prices; absent where none went through it.
	Cost *Cost `json:"cost,omitempty"`

	// Structured is the result that met the output_schema. One of more than
	// [MaxStructured] bytes is left out: the output has it, whole.
	Structured json.RawMessage `json:"structured,omitempty"`

	// DenialCount counts the tool calls that were denied, Denials lists the first.
	DenialCount int      `json:"denial_count,omitzero"`
	Denials     []Denial `json:"denials,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}

// AgentProgress is how far a running agent is.
type AgentProgress struct {
	Turns     int    `json:"turns"`
	ToolCalls int    `json:"tool_calls"`
	LastTool  string `json:"last_tool,omitempty"`
	Usage     Usage  `json:"usage"`
	// Cost is what its calls through the coordinator's gateway cost so far.
	Cost *Cost `json:"cost,omitempty"`
}
