package adapter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// read reads a whole stream that is not in testdata.
func read(agent string, lines ...string) Outcome {
	code := 0
	r := NewReader(events.AdapterSpec{Agent: agent})
	r.Write([]byte(strings.Join(lines, "\n") + "\n"))
	_, out := r.End("x", &events.Exit{Code: &code}, "")
	return out
}

// claude lists the calls that it denied at its end. Where that is missing those that
// its words tell are counted, and nothing that a command may have printed.
func TestDenialsOfACutStream(t *testing.T) {
	call := func(id, name string) string {
		return `{"type":"assistant","message":{"id":"m` + id + `","content":[{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":{}}]}}`
	}
	result := func(id, text string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"` + id + `","is_error":true,"content":"` + text + `"}]}}`
	}
	lines := []string{
		call("1", "Write"), result("1", "Claude requested permissions to write to /x, but you haven't granted it yet."),
		call("2", "Bash"), result("2", "Permission to use Bash with command rm has been denied."),
		call("3", "Bash"), result("3", "push has been denied by the server"),
	}
	out := read(events.AgentClaude, lines...)
	require.Equal(t, events.StopCut, out.Result.StopReason)
	require.Equal(t, []events.Denial{
		{Tool: "Write", ToolID: "1", Origin: events.DenialNoApprover}, {Tool: "Bash", ToolID: "2", Origin: events.DenialRule},
	}, out.Result.Denials)
	require.Equal(t, 2, out.Result.DenialCount)

	// With the terminal event it is what that says.
	out = read(events.AgentClaude, append(lines, `{"type":"result","subtype":"success","result":"x","permission_denials":[{"tool_name":"Write","tool_use_id":"1"}]}`)...)
	require.Equal(t, 1, out.Result.DenialCount)
}

// A budget that is used up is told as that, whoever says it.
func TestBudgetUsedUp(t *testing.T) {
	for agent, line := range map[string]string{
		events.AgentClaude: `{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"API Error: 400 the budget of 5 USD is used up: 6"}`,
		events.AgentCodex:  `{"type":"turn.failed","error":{"message":"unexpected status 400 Bad Request: the budget of 100 tokens is used up: 122"}}`,
	} {
		out := read(agent, line)
		require.Equal(t, events.StopBudget, out.Result.StopReason, agent)
		require.Equal(t, events.CodeLimit, out.Error.Code, agent)
		require.Equal(t, events.ReasonLimit, out.Reason, agent)
	}
}

// The structured result of claude is its answer.
func TestStructuredAnswer(t *testing.T) {
	const line = `{"type":"result","subtype":"success","stop_reason":"end_turn","result":"Here it is.","structured_output":%s}`
	out := read(events.AgentClaude, strings.Replace(line, "%s", `{"a":1}`, 1))
	require.Equal(t, `{"a":1}`, out.Answer)
	out = read(events.AgentClaude, strings.NewReplacer("%s", `{"a":1}`, "end_turn", "tool_use").Replace(line))
	require.Equal(t, events.StopEnd, out.Result.StopReason, "the result is a tool's call")
	require.Equal(t, "Here it is.", read(events.AgentClaude, strings.Replace(line, "%s", "null", 1)).Answer)

	out = read(events.AgentClaude, `{"type":"result","subtype":"error_max_structured_output_retries","is_error":true,"errors":["Failed"]}`)
	require.Equal(t, events.CodeOutputMismatch, out.Error.Code)
}
