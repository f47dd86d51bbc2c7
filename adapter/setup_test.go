package adapter

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

var relay = Relay{URL: "http://127.0.0.1:40123", Token: "relay-token"}

// base is a request in an active sandbox.
func base(agent string, change func(*Request)) Request {
	r := Request{Agent: agent, Prompt: "Do it.", Home: "/run/home", Confined: true, UID: 0, Relay: relay}
	if change != nil {
		change(&r)
	}
	return r
}

func everything(r *Request) {
	r.SystemPrompt = "You review code.\nBe \"brief\"."
	r.Model, r.Effort, r.MaxTurns = "opus", "high", 7
	r.MCPServers = []MCPServer{
		{Name: "docs", Config: jsontext.Value(`{"command":"docs","args":["--fast"],"env":{"A B":"c"},"timeout":null}`)},
		{Name: "git hub", Config: jsontext.Value(`{"type":"http","url":"http://127.0.0.1/mcp","headers":{"X-A":"b"}}`)},
	}
}

// TestSetups compares what is made of a request with testdata/setups.
func TestSetups(t *testing.T) {
	for name, r := range map[string]Request{
		"claude-plain":      base(events.AgentClaude, nil),
		"claude-everything": base(events.AgentClaude, everything),
		"claude-resume": base(events.AgentClaude, func(r *Request) {
			r.Resume, r.TrustedProject = "00000000-0000-7000-8000-000000000001", true
		}),
		"claude-unconfined": base(events.AgentClaude, func(r *Request) { r.Confined = false }),
		"claude-bypass":     base(events.AgentClaude, func(r *Request) { r.Confined, r.UID, r.PermissionMode = false, 1000, modeBypass }),
		"claude-tools": base(events.AgentClaude, func(r *Request) {
			r.Tools, r.DisallowedTools = []string{"Read", "Grep", "Bash(git log:*)", "Bash(git diff:*)"}, []string{"WebFetch"}
		}),
		"claude-no-tools": base(events.AgentClaude, func(r *Request) { r.Tools = []string{} }),
		"claude-read-only": base(events.AgentClaude, func(r *Request) {
			r.CapabilityMode, r.ReplaceSystemPrompt, r.SystemPrompt, r.Effort = capabilityReadOnly, true, "Only look.", "12000"
		}),
		"claude-log-in": base(events.AgentClaude, func(r *Request) { r.Relay = Relay{} }),
		"claude-command": base(events.AgentClaude, func(r *Request) {
			r.Command, r.RequireNoDenials = []string{"/opt/bin/claude", "--debug"}, true
		}),
		"claude-demands": base(events.AgentClaude, func(r *Request) {
			r.OutputSchema = jsontext.Value(`{"type":"object"}`)
			r.Hooks = jsontext.Value(`{"Stop":[{"hooks":[{"type":"command","command":"true","timeout":30}]}]}`)
		}),
		"codex-demands":    base(events.AgentCodex, func(r *Request) { r.OutputSchema = jsontext.Value(`{"type":"object"}`) }),
		"codex-plain":      base(events.AgentCodex, nil),
		"codex-everything": base(events.AgentCodex, everything),
		"codex-resume":     base(events.AgentCodex, func(r *Request) { r.Resume = "00000000-0000-7000-8000-000000000001" }),
		"codex-unconfined": base(events.AgentCodex, func(r *Request) { r.Confined = false }),
		"codex-bypass":     base(events.AgentCodex, func(r *Request) { r.Confined, r.PermissionMode = false, modeBypass }),
		"codex-read-only":  base(events.AgentCodex, func(r *Request) { r.CapabilityMode, r.ReadOnlyFiles = capabilityReadOnly, true }),
		"codex-tools": base(events.AgentCodex, func(r *Request) {
			r.DisallowedTools, r.ReplaceSystemPrompt, r.SystemPrompt = []string{"Bash", "WebSearch"}, true, "Only talk."
		}),
		"codex-log-in": base(events.AgentCodex, func(r *Request) { r.Relay = Relay{} }),
	} {
		t.Run(name, func(t *testing.T) {
			s, refusal := New(r)
			require.Nil(t, refusal)
			got, err := json.Marshal(struct {
				Setup
				Files map[string]string
			}{s, texts(s)}, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.Multiline(true))
			require.NoError(t, err)
			path := filepath.Join("testdata", "setups", name+".json")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got)+"\n")
			check(t, r, s)
		})
	}
}

func texts(s Setup) map[string]string {
	m := map[string]string{}
	for _, f := range s.Files {
		m[f.Path] = string(f.Data)
	}
	return m
}

// check holds for every setup.
func check(t require.TestingT, r Request, s Setup) {
	require.Equal(t, r.Prompt, s.Stdin)
	argv := strings.Join(s.Argv, "\x00")
	for _, f := range s.Files {
		require.True(t, filepath.IsLocal(f.Path), f.Path)
		require.NotContains(t, string(f.Data), relay.Token, "a file has the token")
		require.NotContains(t, string(f.Data), relay.URL, "a file has the address")
		if strings.HasSuffix(f.Path, ".toml") {
			_, err := toml.NewDecoder(bytes.NewReader(f.Data)).Decode(new(map[string]any))
			require.NoError(t, err, "%s", f.Data)
		}
		if strings.HasSuffix(f.Path, ".json") {
			require.True(t, jsontext.Value(f.Data).IsValid(), "%s", f.Data)
		}
	}
	require.NotContains(t, argv, relay.Token, "argv has the token")
	require.NotContains(t, argv, r.Prompt, "argv has the prompt")
	if !r.Confined && r.PermissionMode != modeBypass {
		for _, open := range []string{modeBypass, codexFullAccess, "--dangerously"} {
			require.NotContains(t, argv, open, "its own guards are off outside of a sandbox")
		}
		require.NotContains(t, s.Env, "IS_SANDBOX")
	}
}

func TestRefusals(t *testing.T) {
	for name, r := range map[string]Request{
		"no such agent":               base("gemini", nil),
		"claude as root, unprompted":  base(events.AgentClaude, func(r *Request) { r.Confined, r.PermissionMode = false, modeBypass }),
		"codex, files but no command": base(events.AgentCodex, func(r *Request) { r.CapabilityMode = capabilityReadWrite }),
		"codex, read-only in vain":    base(events.AgentCodex, func(r *Request) { r.CapabilityMode = capabilityReadOnly }),
		"codex, denials unseen":       base(events.AgentCodex, func(r *Request) { r.Confined, r.RequireNoDenials = false, true }),
		"codex, hooks":                base(events.AgentCodex, func(r *Request) { r.Hooks = jsontext.Value(`{}`) }),
		"hooks that are no JSON":      base(events.AgentClaude, func(r *Request) { r.Hooks = jsontext.Value(`{`) }),
		"a server that is no object":  base(events.AgentCodex, func(r *Request) { r.MCPServers = []MCPServer{{Name: "x", Config: jsontext.Value(`[]`)}} }),
		"a server that is no JSON":    base(events.AgentClaude, func(r *Request) { r.MCPServers = []MCPServer{{Name: "x", Config: jsontext.Value(`{`)}} }),
	} {
		_, refusal := New(r)
		require.NotNil(t, refusal, name)
	}
}

// Any text comes through codex's configuration as it is.
func TestTOMLStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := base(events.AgentCodex, nil)
		r.SystemPrompt = rapid.StringN(1, 40, 200).Draw(t, "system prompt")
		name := rapid.StringN(1, 20, 60).Draw(t, "server")
		value := rapid.String().Draw(t, "value")
		config, err := json.Marshal(map[string]any{"env": map[string]any{value: value}, "args": []any{value, 1.5, true, nil}})
		require.NoError(t, err)
		r.MCPServers = []MCPServer{{Name: name, Config: config}}
		s, refusal := New(r)
		require.Nil(t, refusal)
		var got struct {
			Instructions string `toml:"developer_instructions"`
			Servers      map[string]struct {
				Env  map[string]string `toml:"env"`
				Args []any             `toml:"args"`
			} `toml:"mcp_servers"`
		}
		_, tomlErr := toml.Decode(texts(s)[fileCodexConfig], &got)
		require.NoError(t, tomlErr)
		require.Equal(t, r.SystemPrompt, got.Instructions)
		require.Equal(t, map[string]string{value: value}, got.Servers[name].Env)
		require.Equal(t, []any{value, 1.5, true}, got.Servers[name].Args)
	})
}

func TestOf(t *testing.T) {
	require.Equal(t, events.AgentClaude, Of([]string{"/usr/local/bin/claude", "-p"}))
	require.Equal(t, events.AgentCodex, Of([]string{"codex"}))
	require.Empty(t, Of([]string{"sh", "claude"}))
	require.Empty(t, Of(nil))
}
