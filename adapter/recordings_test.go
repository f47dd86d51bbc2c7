package adapter

import (
	"encoding/json"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/modelstub"
)

// A recording is a run of a real CLI against the stand-in, kept as its stdout.
type recording struct {
	name  string
	agent string
	turns []modelstub.Turn
	// ask changes the request, which is otherwise one in an active sandbox.
	ask func(*Request)
	// keys are those that the model API lets in; the CLI has "relay-token".
	keys []string
	// interrupt ends the CLI by SIGINT once an item of this kind came.
	interrupt events.ItemKind
	// kill ends it by SIGKILL then.
	kill events.ItemKind

	// What it is to come to.
	exit    events.Exit
	ended   events.Reason
	stop    events.StopReason
	code    events.Code // of the error, empty for a success
	reason  events.Reason
	answer  string
	usage   events.Usage
	denials int
}

const prompt = "Write hello into made.txt."

func tool(name, input string) []modelstub.ToolCall {
	return []modelstub.ToolCall{{Name: name, Input: json.RawMessage(input)}}
}

// use is a usage with input, output and cached tokens.
func use(input, output, cached int64) modelstub.Usage {
	return modelstub.Usage{Input: input, Output: output, CacheRead: cached}
}

func exited(code int) events.Exit { return events.Exit{Code: &code} }

const (
	claudeWrites = `{"command":"echo hello > made.txt && cat made.txt","description":"Write a file"}`
	codexWrites  = `{"cmd":"echo hello > made.txt && cat made.txt"}`
	done         = "Done: made.txt says hello."
)

func unconfined(r *Request) { r.Confined, r.UID = false, 1000 }

var recordings = []recording{
	{
		name: "claude-success", agent: events.AgentClaude,
		turns: []modelstub.Turn{
			{Thinking: "One command will do.", Text: "I write the file.", Tools: tool("Bash", claudeWrites), Usage: use(100, 20, 50)},
			{Text: done, Usage: use(130, 9, 155)},
		},
		exit: exited(0), stop: events.StopEnd, answer: done, usage: events.Usage{InputTokens: 230, OutputTokens: 29, CacheReadTokens: 205},
	},
	{
		name: "claude-error", agent: events.AgentClaude,
		turns: []modelstub.Turn{{Fail: []modelstub.Failure{{Status: 500, Message: "Internal server error"}}, Always: true}},
		exit:  exited(1), stop: events.StopError, code: events.CodeModelFailed, reason: events.ReasonExit,
	},
	{
		name: "claude-rate-limited", agent: events.AgentClaude,
		turns: []modelstub.Turn{{Fail: []modelstub.Failure{{Status: 429, RetryAfter: "0", Message: "This request would exceed your rate limit"}}, Always: true}},
		exit:  exited(1), stop: events.StopError, code: events.CodeRateLimited, reason: events.ReasonExit,
	},
	{
		name: "claude-denied", agent: events.AgentClaude, ask: unconfined,
		turns: []modelstub.Turn{
			{Text: "I write the file.", Tools: tool("Write", `{"file_path":"made.txt","content":"hello\n"}`), Usage: use(100, 20, 0)},
			{Text: "I was not allowed to write.", Usage: use(130, 9, 0)},
		},
		exit: exited(0), stop: events.StopEnd, answer: "I was not allowed to write.", denials: 1,
		usage: events.Usage{InputTokens: 230, OutputTokens: 29},
	},
	{
		name: "claude-denied-by-rule", agent: events.AgentClaude,
		ask: func(r *Request) { r.Tools = []string{"Read", "Bash(git status:*)"} },
		turns: []modelstub.Turn{
			{Text: "I write the file.", Tools: tool("Bash", claudeWrites), Usage: use(100, 20, 0)},
			{Text: "I was not allowed to write.", Usage: use(130, 9, 0)},
		},
		exit: exited(0), stop: events.StopEnd, answer: "I was not allowed to write.", denials: 1,
		usage: events.Usage{InputTokens: 230, OutputTokens: 29},
	},
	{
		name: "claude-not-logged-in", agent: events.AgentClaude, ask: func(r *Request) { r.Relay = Relay{} },
		exit: exited(1), stop: events.StopError, code: events.CodeNoModelAccess, reason: events.ReasonExit,
	},
	{
		name: "claude-unauthorized", agent: events.AgentClaude, keys: []string{"another"},
		exit: exited(1), stop: events.StopError, code: events.CodeNoModelAccess, reason: events.ReasonExit,
	},
	{
		name: "claude-max-turns", agent: events.AgentClaude, ask: func(r *Request) { r.MaxTurns = 2 },
		turns: []modelstub.Turn{{Text: "Again.", Tools: tool("Bash", claudeWrites), Usage: use(10, 5, 0), Repeat: true}},
		exit:  exited(1), stop: events.StopMaxTurns, code: events.CodeAgentIncomplete, reason: events.ReasonMaxTurns, answer: "Again.",
		usage: events.Usage{InputTokens: 20, OutputTokens: 10},
	},
	{
		name: "claude-refusal", agent: events.AgentClaude,
		turns: []modelstub.Turn{{Text: "The answer is", Stop: "refusal", Usage: use(10, 5, 0)}},
		exit:  exited(1), stop: events.StopRefusal, code: events.CodeAgentIncomplete, reason: events.ReasonExit, answer: "The answer is",
		usage: events.Usage{InputTokens: 10, OutputTokens: 5},
	},
	{
		name: "claude-no-answer", agent: events.AgentClaude,
		turns: []modelstub.Turn{{Thinking: "There is nothing to say.", Usage: use(10, 5, 0)}},
		exit:  exited(0), stop: events.StopEnd, code: events.CodeAgentIncomplete, reason: events.ReasonExit,
		usage: events.Usage{InputTokens: 20, OutputTokens: 10}, // it asks once more
	},
	{
		name: "claude-api-cut", agent: events.AgentClaude,
		turns: []modelstub.Turn{{Text: "This is cut in the middle of its stream, every time.", Fail: []modelstub.Failure{{Cut: 3}}, Always: true}},
		exit:  exited(1), stop: events.StopError, code: events.CodeOverloaded, reason: events.ReasonExit,
	},
	{
		name: "claude-killed", agent: events.AgentClaude, kill: events.ItemToolResult,
		turns: []modelstub.Turn{{Text: "I write the file.", Tools: tool("Bash", claudeWrites), Usage: use(100, 20, 0)}, {Text: "held", Hold: true}},
		exit:  events.Exit{Signal: "SIGKILL"}, stop: events.StopCut, code: events.CodeAgentIncomplete, reason: events.ReasonExit,
		answer: "I write the file.", usage: events.Usage{InputTokens: 100, OutputTokens: 1},
	},
	{
		name: "claude-cancelled", agent: events.AgentClaude, interrupt: events.ItemToolResult, ended: events.ReasonUser,
		turns: []modelstub.Turn{{Text: "I write the file.", Tools: tool("Bash", claudeWrites), Usage: use(100, 20, 0)}, {Text: "held", Hold: true}},
		exit:  exited(0), stop: events.StopCancelled, answer: "I write the file.", usage: events.Usage{InputTokens: 100, OutputTokens: 20},
	},
	{
		name: "codex-success", agent: events.AgentCodex,
		turns: []modelstub.Turn{
			{Thinking: "One command will do.", Text: "I write the file.", Tools: tool("exec_command", codexWrites), Usage: use(100, 20, 50)},
			{Text: done, Usage: use(130, 9, 155)},
		},
		exit: exited(0), stop: events.StopEnd, answer: done, usage: events.Usage{InputTokens: 230, OutputTokens: 29, CacheReadTokens: 205},
	},
	{
		name: "codex-patch", agent: events.AgentCodex,
		turns: []modelstub.Turn{
			{Tools: tool("apply_patch", `"*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch\n"`), Usage: use(100, 20, 0)},
			{Text: done, Usage: use(130, 9, 0)},
		},
		exit: exited(0), stop: events.StopEnd, answer: done, usage: events.Usage{InputTokens: 230, OutputTokens: 29},
	},
	{
		name: "codex-error", agent: events.AgentCodex,
		turns: []modelstub.Turn{{Fail: []modelstub.Failure{{Status: 500, Message: "Internal server error"}}, Always: true}},
		exit:  exited(1), stop: events.StopError, code: events.CodeOverloaded, reason: events.ReasonExit,
	},
	{
		name: "codex-rate-limited", agent: events.AgentCodex,
		turns: []modelstub.Turn{{Fail: []modelstub.Failure{{Status: 429, RetryAfter: "0", Message: "Rate limit reached"}}, Always: true}},
		exit:  exited(1), stop: events.StopError, code: events.CodeRateLimited, reason: events.ReasonExit,
	},
	{
		name: "codex-unauthorized", agent: events.AgentCodex, keys: []string{"another"},
		exit: exited(1), stop: events.StopError, code: events.CodeNoModelAccess, reason: events.ReasonExit,
	},
	{
		name: "codex-denied", agent: events.AgentCodex,
		turns: []modelstub.Turn{
			{Tools: tool("exec_command", `{"cmd":"rm -rf /","sandbox_permissions":"require_escalated","justification":"to see"}`), Usage: use(100, 20, 0)},
			{Text: "I was not allowed to.", Usage: use(130, 9, 0)},
		},
		ask:  func(r *Request) { unconfined(r); r.PermissionMode = modePlan },
		exit: exited(0), stop: events.StopEnd, answer: "I was not allowed to.", usage: events.Usage{InputTokens: 230, OutputTokens: 29},
	},
	{
		name: "codex-api-cut", agent: events.AgentCodex,
		turns: []modelstub.Turn{{Text: "This is cut in the middle of its stream, every time.", Fail: []modelstub.Failure{{Cut: 3}}, Always: true}},
		exit:  exited(1), stop: events.StopError, code: events.CodeOverloaded, reason: events.ReasonExit,
	},
	{
		name: "codex-killed", agent: events.AgentCodex, kill: events.ItemToolResult,
		turns: []modelstub.Turn{{Text: "I write the file.", Tools: tool("exec_command", codexWrites), Usage: use(100, 20, 0)}, {Text: "held", Hold: true}},
		exit:  events.Exit{Signal: "SIGKILL"}, stop: events.StopCut, code: events.CodeAgentIncomplete, reason: events.ReasonExit, answer: "I write the file.",
	},
	{
		name: "codex-cancelled", agent: events.AgentCodex, interrupt: events.ItemToolResult, ended: events.ReasonUser,
		turns: []modelstub.Turn{{Text: "I write the file.", Tools: tool("exec_command", codexWrites), Usage: use(100, 20, 0)}, {Text: "held", Hold: true}},
		exit:  exited(1), stop: events.StopCancelled, answer: "I write the file.",
	},
}
