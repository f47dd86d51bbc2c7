package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/modelstub"
)

// gates of agents refuse by name.
func TestResumeAgent(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		server := u.models(modelstub.Script{Scenarios: []modelstub.Scenario{{Turns: []modelstub.Turn{
			bash("echo made > made.txt; cat made.txt"),
			{Text: "It is made."},
			{Text: "I made it before.", Repeat: true},
		}}}})
		config, err := os.ReadFile(filepath.Join(u.home, ".config/hayward/config.toml"))
		require.NoError(t, err)
		u.configure("config.toml", string(config)+"\n[resume.windows]\n\"stub*\" = 1000\nstub-tiny = 10\n")
		require.NoError(t, os.MkdirAll(filepath.Join(u.home, ".config/hayward/personas"), 0o755))
		persona := u.configure("personas/terse.toml", "instructions = \"Be terse.\"\n")
		spawn := func(model string, more ...string) string {
			r := u.run(append([]string{"spawn", "--type", "general-purpose", "--persona", "terse", "--model", model, "--prompt", "Make a file.", "--json"}, more...)...)
			require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
			return r.object(t)["subagent_id"].(string)
		}
		id := spawn("stub-one")
		r := u.run("resume", id, "--prompt", "What did you make?", "--model", "opus", "--json")
		require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
		require.Contains(t, r.stderr, "model_pinned: opus is ignored")
		o := r.object(t)
		require.Equal(t, "I made it before.", o["output"])
		require.Equal(t, map[string]any{"type": "general-purpose", "persona": "terse", "model": "stub-one", "pinned": true}, at(t, o, "boundaries", "identity"))
		require.EqualValues(t, 1000, at(t, o, "boundaries", "resume_source", "session", "window"))
		requests := server.Requests()
		last := requests[len(requests)-1].Body
		for _, said := range []string{"Make a file.", "Be terse.", "It is made.", "echo made", "What did you make?", `"model":"stub-one"`} {
			require.Contains(t, last, said)
		}
		require.Equal(t, 1, strings.Count(last, "Be terse."))
		var kinds []string
		for _, item := range u.transcript(o["subagent_id"].(string)) {
			if item.From == "" && item.Kind != events.ItemEvent {
				kinds = append(kinds, string(item.Kind))
			}
		}
		require.Equal(t, []string{"prompt", "command", "session", "message", "result", "exit"}, kinds)
		for _, name := range []string{"tool_state", "plan_state", "plan_mode", "signals"} {
			require.FileExists(t, filepath.Join(u.runDir(id), "session", name+".json"))
		}
		again := u.run("resume", o["subagent_id"].(string), "--prompt", "And now?", "--json")
		require.Zero(t, again.code, again.stderr)
		requests = server.Requests()
		require.Contains(t, requests[len(requests)-1].Body, "What did you make?", "a resume of a resume knows both")

		require.Equal(t, events.CodeResumePersona, refused(t, u.run("resume", id, "--persona", "kind", "--json")))
		require.Equal(t, events.CodeResumeTooLong, refused(t, u.run("resume", spawn("stub-tiny"), "--json")))
		require.Equal(t, events.CodeResumeModelGone, refused(t, u.run("resume", spawn("elsewhere"), "--json")))
		require.NoError(t, os.Remove(persona))
		require.Equal(t, events.CodeResumePersonaGone, refused(t, u.run("resume", id, "--json")))
		require.NoError(t, os.WriteFile(persona, []byte("instructions = \"Be terse.\"\n"), 0o644))
		require.NoError(t, os.RemoveAll(filepath.Join(u.runDir(id), "home/projects")))
		require.Equal(t, events.CodeResumeSessionGone, refused(t, u.run("resume", id, "--json")))
	})
}

// it are those of the new tree.
func TestResumeAgentInWorktree(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		server := u.models(modelstub.Script{Scenarios: []modelstub.Scenario{{Turns: []modelstub.Turn{
			bash("pwd; echo made > made.txt"), {Text: "It is made."}, bash("pwd; cat made.txt"), {Text: "Still there."},
		}}}})
		config, err := os.ReadFile(filepath.Join(u.home, ".config/hayward/config.toml"))
		require.NoError(t, err)
		u.configure("config.toml", string(config)+"\n[resume.windows]\nstub = 1000\n")
		u.repository(u.work)
		r := u.run("spawn", "--type", "general-purpose", "--isolation", "worktree", "--prompt", "Make a file.", "--json")
		require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
		source := r.object(t)
		r = u.run("resume", source["subagent_id"].(string), "--prompt", "Look again.", "--json")
		require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
		o := r.object(t)
		require.Equal(t, "Still there.", o["output"])
		was, now := at(t, source, "worktree", "path").(string), at(t, o, "worktree", "path").(string)
		require.NotEqual(t, was, now)
		requests := server.Requests()
		last := requests[len(requests)-1].Body
		require.NotContains(t, last, was)
		require.Equal(t, 2, strings.Count(last, now), "what it said before is of the new place as well")
	})
}

// well: the model is sent it again.
func TestResumeRealAgents(t *testing.T) {
	dir := os.Getenv(agentCLIs)
	if dir == "" {
		t.Skip("needs the agent CLIs of HAYWARD_AGENT_CLIS")
	}
	asUsers(t, func(t *testing.T, u *user) {
		shell := map[string]modelstub.ToolCall{
			events.AgentClaude: {Name: "Bash", Input: json.RawMessage(`{"command":"echo made > made.txt; pwd","description":"make it"}`)},
			events.AgentCodex:  {Name: "exec_command", Input: json.RawMessage(`{"cmd":"echo made > made.txt; pwd"}`)},
		}
		for agent, call := range shell {
			t.Run(agent, func(t *testing.T) {
				u := newUser(t, u.uid)
				server, err := modelstub.Start(modelstub.Script{Scenarios: []modelstub.Scenario{{Match: "Make a file, please.", Turns: []modelstub.Turn{
					{Text: "I make it.", Tools: []modelstub.ToolCall{call}}, {Text: "It is made."}, {Text: "I made it before.", Repeat: true},
				}}, {Turns: []modelstub.Turn{{Text: "ok", Repeat: true}}}}}, modelstub.Options{})
				require.NoError(t, err)
				defer func() { require.NoError(t, server.Close()) }()
				key := filepath.Join(u.home, "key")
				u.file(key, modelKey+"\n", 0o600)
				u.configure("config.toml", "[gateway]\nanthropic_url = \""+server.URL()+"\"\nanthropic_key_file = \""+key+"\"\nopenai_url = \""+server.URL()+"\"\nopenai_key_file = \""+key+"\"\n")
				u.repository(u.work)
				r := u.run("spawn", "--type", "general-purpose", "--isolation", "worktree", "--prompt", "Make a file, please.", "--json", "--max-runtime", "60s", "--",
					filepath.Join(dir, "node_modules", ".bin", agent))
				require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
				source := r.object(t)
				began := time.Now()
				r = u.run("resume", source["subagent_id"].(string), "--prompt", "What did you make?", "--json")
				require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
				o := r.object(t)
				require.Equal(t, "I made it before.", o["output"])
				require.Equal(t, at(t, source, "agent", "session_id"), at(t, o, "agent", "session_id"))
				require.NotEqual(t, at(t, source, "worktree", "path"), at(t, o, "worktree", "path"))
				var last string
				for _, request := range server.Requests() {
					if request.At.After(began) && strings.Contains(request.Body, "What did you make?") {
						last = request.Body
					}
				}
				for _, said := range []string{"Make a file, please.", "echo made", "It is made.", "What did you make?"} {
					require.Contains(t, last, said)
				}
				require.NotContains(t, last, at(t, source, "worktree", "path"))
				require.Contains(t, last, at(t, o, "worktree", "path"))
			})
		}
	})
}
