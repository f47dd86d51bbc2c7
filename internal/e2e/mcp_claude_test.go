package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/modelstub"
)

// agentCLIs names the directory in which npm installed the agent CLIs, see
// scripts/mcp-claude.sh.
const agentCLIs = "HAYWARD_AGENT_CLIS"

// The real claude as a parent: connected to hayward mcp it spawns three subagents,
// cancels one and reads the results of two, told so by a scripted model.
func TestClaudeAsAParent(t *testing.T) {
	dir := os.Getenv(agentCLIs)
	if dir == "" {
		t.Skip("needs the agent CLIs of HAYWARD_AGENT_CLIS")
	}
	asUsers(t, func(t *testing.T, u *user) {
		call := func(name string, input any) modelstub.ToolCall {
			raw, err := json.Marshal(input)
			require.NoError(t, err)
			return modelstub.ToolCall{Name: "mcp__hayward__" + name, Input: raw}
		}
		spawn := func(name, line string) modelstub.ToolCall {
			return call("spawn_subagent", map[string]any{
				"name": name, "command": []string{"sh", "-c", line}, "run_in_background": true, "parent_prompt_id": "turn-1",
			})
		}
		model, err := modelstub.Start(modelstub.Script{Scenarios: []modelstub.Scenario{
			{Match: "mcp__hayward__spawn_subagent", Turns: []modelstub.Turn{
				{Text: "I start three.", Tools: []modelstub.ToolCall{spawn("alpha", "echo result of $((6*7))"), spawn("beta", "sleep 600"), spawn("gamma", "echo gamma > made-by-gamma; exit 3")}},
				{Tools: []modelstub.ToolCall{call("cancel_subagents", map[string]any{"ids": []string{"beta"}})}},
				{Tools: []modelstub.ToolCall{call("query_subagents", map[string]any{"ids": []string{"alpha", "gamma"}, "wait_ms": 30_000})}},
				{Tools: []modelstub.ToolCall{call("read_completions", map[string]any{})}},
				{Text: "All is done.", Repeat: true},
			}},
			{Turns: []modelstub.Turn{{Text: "ok", Repeat: true}}}, // what claude asks beside that
		}}, modelstub.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, model.Close()) }()

		servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"hayward": map[string]any{"command": u.bin, "args": []string{"mcp"}}}})
		require.NoError(t, err)
		config := filepath.Join(u.work, "mcp.json")
		require.NoError(t, os.WriteFile(config, servers, 0o644))

		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		claude := u.command(ctx, "-p", "Go.", "--output-format", "stream-json", "--verbose",
			"--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__hayward__*")
		claude.Path = filepath.Join(dir, "node_modules", ".bin", "claude")
		claude.Args[0] = claude.Path
		claude.Env = append(claude.Env,
			"ANTHROPIC_BASE_URL="+model.URL(), "ANTHROPIC_API_KEY=dummy", "CLAUDE_CONFIG_DIR="+filepath.Join(u.home, "claude"),
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false", "IS_SANDBOX=1")
		r := finish(t, claude)
		require.Zero(t, r.code, "stdout: %s\nstderr: %s", r.stdout, r.stderr)

		results := toolResults(t, r.stdout)
		require.Len(t, results, 6, r.stdout)
		for _, spawned := range results[:3] {
			require.Contains(t, spawned, "subagent_id")
		}
		require.Contains(t, results[3], `"outcome":"cancelled"`)
		require.Contains(t, results[4], "result of 42")
		require.Contains(t, results[4], `"exit_code":3`)
		require.Contains(t, results[5], `"subagents":[]`, "all was told")
		require.Contains(t, r.stdout, `"result":"All is done."`)
		require.FileExists(t, filepath.Join(u.work, "made-by-gamma"))

		all := list(t, u.run("ps", "-a", "--json").object(t), "subagents")
		require.Len(t, all, 3)
		for _, s := range all {
			require.Equal(t, true, s["read"], "%v", s)
			require.True(t, strings.HasPrefix(s["parent_session_id"].(string), "mcp-"))
		}
		if path := os.Getenv(agentCLIs + "_LOG"); path != "" {
			require.NoError(t, os.WriteFile(path, []byte(r.stdout), 0o644))
		}
	})
}

// toolResults are what claude handed to its model of each tool call, in order.
func toolResults(t *testing.T, stream string) (results []string) {
	t.Helper()
	for line := range strings.Lines(stream) {
		var m struct {
			Type    string `json:"type"`
			Message struct {
				Content json.RawMessage `json:"content"`
			} `json:"message"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		var parts []struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
		}
		if m.Type != "user" || json.Unmarshal(m.Message.Content, &parts) != nil {
			continue
		}
		for _, p := range parts {
			if p.Type == "tool_result" {
				var text string
				if json.Unmarshal(p.Content, &text) != nil {
					text = string(p.Content)
				}
				results = append(results, text)
			}
		}
	}
	return results
}
