package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/modelstub"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// modelKey is the key that the gateway has and no agent may see.
const modelKey = "sk-the-key-of-the-user"

// models gives the user a model API with a script, a key for it, and the agent
// that stands in for claude in PATH.
func (u *user) models(script modelstub.Script) *modelstub.Server {
	u.t.Helper()
	server, err := modelstub.Start(script, modelstub.Options{})
	require.NoError(u.t, err)
	u.t.Cleanup(func() { require.NoError(u.t, server.Close()) })
	program, err := os.ReadFile(testkit.Agent(u.t))
	require.NoError(u.t, err)
	bin := filepath.Join(u.home, "bin")
	require.NoError(u.t, os.Mkdir(bin, 0o755))
	require.NoError(u.t, os.WriteFile(filepath.Join(bin, "claude"), program, 0o755))
	key := filepath.Join(u.home, "key")
	require.NoError(u.t, os.WriteFile(key, []byte(modelKey+"\n"), 0o600))
	if u.uid != os.Getuid() {
		require.NoError(u.t, os.Chown(key, u.uid, u.uid))
	}
	u.configure("config.toml", "[gateway]\nanthropic_url = \""+server.URL()+"\"\nanthropic_key_file = \""+key+"\"\n")
	for i, kv := range u.env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			u.env[i] = "PATH=" + bin + ":" + path
		}
	}
	return server
}

// bash is a turn that calls a command.
func bash(command string) modelstub.Turn {
	input, err := json.Marshal(map[string]string{"command": command, "description": "look"})
	if err != nil {
		panic(err) // two strings
	}
	return modelstub.Turn{Text: "I look.", Tools: []modelstub.ToolCall{{Name: "Bash", Input: input}}, Usage: modelstub.Usage{Input: 10, Output: 5}}
}

func TestAgent(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		server := u.models(modelstub.Script{Scenarios: []modelstub.Scenario{{Turns: []modelstub.Turn{
			bash("echo made > made.txt; env; cat /proc/net/route /proc/net/dev; cat ~/key"),
			{Text: "All done.", Usage: modelstub.Usage{Input: 20, Output: 7}},
		}}}})
		for _, profile := range []string{"workspace", "strict"} {
			r := u.run("spawn", "--type", "general-purpose", "--sandbox", profile, "--prompt", "Make a file.", "--json")
			require.Zero(t, r.code, r.stderr)
			o := r.object(t)
			require.Equal(t, "completed", o["status"])
			require.Equal(t, "general-purpose", o["subagent_type"])
			require.FileExists(t, filepath.Join(u.work, "made.txt"))
			require.NoError(t, os.Remove(filepath.Join(u.work, "made.txt")))
			require.Equal(t, "All done.", o["output"])
			agent := o["agent"].(map[string]any)
			require.Equal(t, "end", agent["stop_reason"])
			require.Equal(t, map[string]any{"input_tokens": 30.0, "output_tokens": 12.0}, agent["usage"])
			require.NotEmpty(t, agent["session_id"])
			// What the agent saw is in its stream.
			text, err := os.ReadFile(filepath.Join(filepath.Dir(o["output_path"].(string)), "stdout.log"))
			require.NoError(t, err)
			require.Contains(t, string(text), "ANTHROPIC_BASE_URL=http://127.0.0.1:")
			require.NotContains(t, string(text), modelKey)
			if profile == "strict" {
				require.Equal(t, "loopback", o["sandbox"].(map[string]any)["network"])
				require.NotContains(t, string(text), "eth0", "there is no route out")
			}
		}
		for _, request := range server.Requests() {
			require.Equal(t, modelstub.Fingerprint(modelKey), request.Key)
		}
		require.Len(t, server.Requests(), 4)

		r := u.run("spawn", "--type", "nobody", "--prompt", "x")
		require.Equal(t, 2, r.code, r.stderr)
		require.Contains(t, r.stderr, "explore, general-purpose, plan")
		r = u.run("spawn", "--type", "general-purpose")
		require.Equal(t, 2, r.code, r.stderr)
		require.Contains(t, r.stderr, "--prompt")
		require.NoError(t, os.Remove(filepath.Join(u.home, "key")))
		r = u.run("spawn", "--type", "general-purpose", "--prompt", "x", "--json")
		require.Equal(t, 125, r.code, r.stderr)
		require.Contains(t, r.stderr, "claude has no way to its model")
		require.Contains(t, r.stderr, "--env CLAUDE_CODE_OAUTH_TOKEN")
	})
}

// An agent goes on over the death of its coordinator in the middle of an answer.
func TestAgentOutlivesCoordinator(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		answer := make(chan struct{})
		slow := bash("echo made > made.txt")
		slow.Until = answer
		server := u.models(modelstub.Script{Scenarios: []modelstub.Scenario{{Turns: []modelstub.Turn{slow, {Text: "All done."}}}}})
		coordinator := u.serve(nil)
		id := u.detach("--type", "general-purpose", "--prompt", "Make a file.")
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		_, err := server.Wait(ctx, 1)
		require.NoError(t, err)
		coordinator.crash()
		close(answer)
		require.True(t, u.eventually(func() bool { return strings.Contains(u.stderrOf(id), "503") }), "the agent is told to come back")
		u.serve(nil)
		last := u.await(id)[0]
		require.Equal(t, "completed", last["status"], last)
		require.FileExists(t, filepath.Join(u.work, "made.txt"))
	})
}

// stderrOf is what a subagent has written so far.
func (u *user) stderrOf(id string) string {
	b, err := os.ReadFile(filepath.Join(u.home, "state/subagents", id, "stderr.log"))
	require.NoError(u.t, err)
	return string(b)
}

// A type that runs a command needs no model, and none from a project that is not
// trusted.
func TestAgentOfACommand(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		dir := filepath.Join(u.work, ".hayward/agents")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "greeter.md"), []byte(`---
name: greeter
description: Greets.
sandbox: strict
runner: command
command: [sh, -c, 'read who; echo "$GREETING $who"']
env: {GREETING: hello}
max_runtime: 1m
---
`), 0o644))
		r := u.run("spawn", "--type", "greeter", "--prompt", "world")
		require.Equal(t, 125, r.code, r.stderr)
		require.Contains(t, r.stderr, "its project is not trusted")
		require.Zero(t, u.run("trust").code)
		r = u.run("spawn", "--type", "greeter", "--prompt", "world", "--json")
		require.Zero(t, r.code, r.stderr)
		o := r.object(t)
		require.Equal(t, "hello world\n", o["output"])
		require.Equal(t, "strict", o["sandbox"].(map[string]any)["profile"])
		spec := u.run("inspect", o["subagent_id"].(string), "--json").object(t)["spec"].(map[string]any)
		require.Equal(t, filepath.Join(dir, "greeter.md"), spec["agent"].(map[string]any)["definition"])
		require.Equal(t, "definition", spec["agent"].(map[string]any)["origins"].(map[string]any)["sandbox"])
		require.EqualValues(t, time.Minute.Milliseconds(), spec["request"].(map[string]any)["max_runtime_ms"])
	})
}
