package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/modelstub"
)

// says are a model's answers to prompts that have a word in them.
func says(word string, turns ...modelstub.Turn) modelstub.Scenario {
	return modelstub.Scenario{Match: word, Turns: turns}
}

// What an agent's calls cost is in its ledger, its result, inspect and ps. A model
// without a price has no cost, which is said; a budget of money ends a run.
func TestAgentCost(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		used := modelstub.Usage{Input: 1000, Output: 100, CacheRead: 10000}
		u.models(modelstub.Script{Scenarios: []modelstub.Scenario{
			says("much", modelstub.Turn{Text: "Once more.", Tools: bash("true").Tools, Usage: used, Repeat: true}),
			says("", modelstub.Turn{Text: "All done.", Usage: used}),
		}})
		config := u.text(".config/hayward/config.toml")
		u.configure("config.toml", config+"[gateway.prices]\ncheap = { input = 3, output = 15, cache_read = 0.3 }\n")
		spawn := func(model, prompt string) map[string]any {
			return u.run("spawn", "--type", "general-purpose", "--model", model, "--prompt", prompt, "--json").object(t)
		}
		const each = (3000 + 1500 + 3000) / 1e6
		o := spawn("cheap", "a little")
		require.Equal(t, "completed", o["status"], o)
		require.InDelta(t, each, o["agent"].(map[string]any)["cost"].(map[string]any)["usd"], 1e-9)
		id := o["subagent_id"].(string)
		require.Contains(t, u.run("inspect", id).stdout, "0.0075 USD")
		require.Contains(t, u.text("state/subagents/"+id+"/usage.jsonl"), `"cost_usd":0.0075`)

		o = spawn("dear", "a little")
		require.Equal(t, map[string]any{"unpriced_models": []any{"dear"}}, o["agent"].(map[string]any)["cost"])
		require.Contains(t, u.run("inspect", o["subagent_id"].(string)).stdout, "no price for dear")
		table := u.run("ps", "-a").stdout
		require.Contains(t, table, "COST")
		require.Contains(t, table, "$0.0075")
		require.Contains(t, table, " ? ")

		require.Zero(t, u.run("shutdown").code)
		u.configure("config.toml", config+"max_cost_usd = 0.02\n[gateway.prices]\ncheap = { input = 3, output = 15, cache_read = 0.3 }\n")
		o = spawn("cheap", "much")
		require.Equal(t, "failed", o["status"])
		require.Equal(t, "limit", o["reason"])
		require.Contains(t, o["error"].(map[string]any)["message"], "the budget of 0.02 USD is used up")
		require.Equal(t, "budget", o["agent"].(map[string]any)["stop_reason"])
		require.InDelta(t, 3*each, o["agent"].(map[string]any)["cost"].(map[string]any)["usd"], 1e-9)
		o = spawn("dear", "much")
		require.Equal(t, "failed", o["status"])
		require.Contains(t, o["error"].(map[string]any)["message"], "dear has no price")
	})
}

// A result that meets its schema is in the record, one that does not is a failure.
func TestAgentOutputSchema(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.models(modelstub.Script{Scenarios: []modelstub.Scenario{
			says("well", modelstub.Turn{Text: `{"verdict": "good", "faults": []}`}),
			says("badly", modelstub.Turn{Text: `{"verdict": "good"}`}),
			says("in prose", modelstub.Turn{Text: `It is good.`}),
		}})
		const schema = `{"type": "object", "required": ["verdict", "faults"], "properties": {"faults": {"type": "array"}}}`
		file := filepath.Join(u.home, "schema.json")
		u.file(file, schema, 0o644)
		spawn := func(prompt string, flags ...string) result {
			return u.run(append([]string{"spawn", "--type", "general-purpose", "--json", "--prompt", prompt}, flags...)...)
		}
		o := spawn("Answer well.", "--output-schema", "@"+file).object(t)
		require.Equal(t, "completed", o["status"], o)
		require.Equal(t, map[string]any{"verdict": "good", "faults": []any{}}, o["agent"].(map[string]any)["structured"])
		for _, how := range []string{"badly", "in prose"} {
			r := spawn("Answer "+how+".", "--output-schema", schema)
			require.Equal(t, 1, r.code, r.stderr)
			o := r.object(t)
			require.Equal(t, "failed", o["status"])
			require.Equal(t, "output_mismatch", o["error"].(map[string]any)["code"])
			require.Nil(t, o["agent"].(map[string]any)["structured"])
		}
		// One of a definition holds as well, and one of the request is over it.
		u.agentType("judge", "output_schema: {type: object, required: [nothing]}\n")
		o = u.run("spawn", "--type", "judge", "--json", "--prompt", "Answer well.").object(t)
		require.Equal(t, "output_mismatch", o["error"].(map[string]any)["code"])
		require.Zero(t, u.run("spawn", "--type", "judge", "--json", "--output-schema", schema, "--prompt", "Answer well.").code)

		r := spawn("Answer well.", "--output-schema", `{"$ref": "#"}`)
		require.Equal(t, 2, r.code)
		require.Contains(t, r.stderr, "comes back to itself")
		r = u.run("spawn", "--output-schema", schema, "--", "true")
		require.Contains(t, r.stderr, "no output_schema for type command")
	})
}

// A call that nobody approves is denied at once and told; where there may be none it
// is a failure.
func TestAgentDenials(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.models(modelstub.Script{Scenarios: []modelstub.Scenario{{Turns: []modelstub.Turn{
			{Text: "I ask.", Tools: []modelstub.ToolCall{{Name: "Write", Input: json.RawMessage(`{"file_path":"x"}`)}}},
			{Text: "I was not allowed to."},
		}}}})
		o := u.run("spawn", "--type", "general-purpose", "--json", "--prompt", "Go.").object(t)
		require.Equal(t, "completed", o["status"], o)
		agent := o["agent"].(map[string]any)
		require.Equal(t, "end", agent["stop_reason"])
		require.EqualValues(t, 1, agent["denial_count"])
		denial := agent["denials"].([]any)[0].(map[string]any)
		require.Equal(t, "Write", denial["tool"])
		require.Equal(t, "no_approver", denial["origin"])
		require.Contains(t, u.run("inspect", o["subagent_id"].(string)).stdout, "(no_approver)")

		// The file with the gateway's key does not stand in the way of profile off.
		require.Zero(t, u.run("spawn", "--sandbox", "off", "--", "true").code)

		u.agentType("careful", "require_no_denials: true\n")
		for _, flags := range [][]string{{"--type", "general-purpose", "--require-no-denials"}, {"--type", "careful"}} {
			r := u.run(append([]string{"spawn", "--json", "--prompt", "Go."}, flags...)...)
			require.Equal(t, 1, r.code, r.stderr)
			require.Equal(t, "tool_denied", r.object(t)["error"].(map[string]any)["code"])
		}
	})
}

// Hooks reach the agent's settings with a deadline each, skills its context and its
// home; those of a project only once it is trusted.
func TestAgentHooksAndSkills(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		server := u.models(modelstub.Script{Scenarios: []modelstub.Scenario{{Turns: []modelstub.Turn{{Text: "All done."}}}}})
		project := filepath.Join(u.work, ".hayward")
		skill := filepath.Join(project, "skills/weigh")
		for _, dir := range []string{filepath.Join(project, "agents"), skill} {
			require.NoError(t, os.MkdirAll(dir, 0o755))
		}
		u.file(filepath.Join(skill, "SKILL.md"), "---\nname: weigh\n---\nUse the scales.\n", 0o644)
		u.file(filepath.Join(skill, "scales.sh"), "#!/bin/sh\necho 7\n", 0o755)
		u.file(filepath.Join(project, "agents/weigher.md"), `---
name: weigher
description: Weighs.
skills: [weigh]
hooks:
  Stop:
    - hooks:
        - {type: command, command: echo ended}
---
You weigh.
`, 0o644)
		spawn := func(flags ...string) result {
			return u.run(append([]string{"spawn", "--type", "weigher", "--json", "--prompt", "Weigh."}, flags...)...)
		}
		r := spawn()
		require.Equal(t, 2, r.code)
		require.Contains(t, r.stderr, "skill weigh: there is none in")
		require.Contains(t, r.stderr, "hayward trust")
		require.Zero(t, u.run("trust").code)
		r = spawn()
		require.Zero(t, r.code, r.stderr)
		home := "state/subagents/" + r.object(t)["subagent_id"].(string) + "/home/"
		require.Contains(t, u.text(home+"settings.json"), `"timeout": 30`)
		require.Equal(t, "#!/bin/sh\necho 7\n", u.text(home+"skills/weigh/scales.sh"))
		prompt := u.text(home + "hayward/system-prompt.md")
		require.Contains(t, prompt, "You weigh.")
		require.Contains(t, prompt, "Use the scales.")
		require.Len(t, server.Requests(), 1)

		// What a runner cannot do is refused by name.
		codex := filepath.Join(u.home, "bin/codex")
		u.file(codex, "#!/bin/sh\n", 0o755)
		r = spawn("--", codex)
		require.Equal(t, 125, r.code)
		require.Contains(t, r.stderr, "the agent type weigher has hooks, which the runner codex does not have")
	})
}

// agentType makes a type of the user's own.
func (u *user) agentType(name, header string) {
	u.t.Helper()
	dir := filepath.Join(u.home, ".config/hayward/agents")
	require.NoError(u.t, os.MkdirAll(dir, 0o755))
	u.file(filepath.Join(dir, name+".md"), "---\nname: "+name+"\ndescription: A type.\n"+header+"---\nYou work.\n", 0o644)
}

// text is a file of the user's, by its path below the home.
func (u *user) text(name string) string {
	u.t.Helper()
	b, err := os.ReadFile(filepath.Join(u.home, name))
	require.NoError(u.t, err)
	return string(b)
}
