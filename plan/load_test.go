package plan

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseResolvesEverything(t *testing.T) {
	p := parse(t, `
name = "whole"
jobs = 4

[defaults]
shell = "true"
sandbox = "strict"
sandbox_best_effort = true
max_runtime = "2m"
cwd = "work"
add_dirs = ["shared"]
deny = ["**/.env"]
env = { A = "default", B = "default" }
labels = { team = "x" }
pass_env = ["GOPROXY"]

[[subagent]]
name = "first"
description = "the first"
command = ["printf", "%s", "{item}"]
prompt = "hello"
workspace = "/abs/./dir"
add_dirs = ["/var/lib/more"]
deny = ["keys"]
env.B = "own"
sandbox = "off"
sandbox_best_effort = false
max_runtime = "1500ms"

[[subagent]]
name = "each"
for_each = ["./events", "a b"]
shell = "wc {item} | cat"
prompt = "for {item}"
cwd = "{item}"
env = { ITEM = "<{item}>" }
labels = { item = "{item}" }
description = "of {item}"
add_dirs = ["{item}/x"]

[[subagent]]
name = "last"
needs = ["first", "each"]
show = true
`)
	require.Equal(t, "whole", p.Name)
	require.Equal(t, 4, p.Jobs)
	require.Equal(t, []*Subagent{
		{
			Name: "first", Entry: "first", Line: 17, Description: "the first",
			Command: []string{"printf", "%s", "{item}"}, Prompt: "hello",
			Cwd: "/plans/work", Workspace: "/abs/dir", AddDirs: []string{"/plans/shared", "/var/lib/more"}, Deny: []string{"**/.env", "keys"},
			Sandbox: "off", MaxRuntimeMS: 1500,
			Env: map[string]string{"A": "default", "B": "own"}, Labels: map[string]string{"team": "x"},
			PassEnv: []string{"GOPROXY"},
		},
		{
			Name: "each-events", Entry: "each", Item: "./events", Line: 30, Description: "of ./events",
			Command: []string{"sh", "-c", "wc ./events | cat"}, Prompt: "for ./events",
			Cwd: "/plans/events", AddDirs: []string{"/plans/shared", "/plans/events/x"}, Deny: []string{"**/.env"},
			Sandbox: "strict", SandboxBestEffort: true, MaxRuntimeMS: 120_000,
			Env:    map[string]string{"A": "default", "B": "default", "ITEM": "<./events>"},
			Labels: map[string]string{"team": "x", "item": "./events"}, PassEnv: []string{"GOPROXY"},
		},
		{
			Name: "each-a-b", Entry: "each", Item: "a b", Line: 30, Description: "of a b",
			Command: []string{"sh", "-c", "wc 'a b' | cat"}, Prompt: "for a b",
			Cwd: "/plans/a b", AddDirs: []string{"/plans/shared", "/plans/a b/x"}, Deny: []string{"**/.env"},
			Sandbox: "strict", SandboxBestEffort: true, MaxRuntimeMS: 120_000,
			Env:    map[string]string{"A": "default", "B": "default", "ITEM": "<a b>"},
			Labels: map[string]string{"team": "x", "item": "a b"}, PassEnv: []string{"GOPROXY"},
		},
		{
			Name: "last", Entry: "last", Line: 41, Command: []string{"sh", "-c", "true"}, Cwd: "/plans/work",
			AddDirs: []string{"/plans/shared"}, Deny: []string{"**/.env"}, Sandbox: "strict", SandboxBestEffort: true, MaxRuntimeMS: 120_000,
			Env: map[string]string{"A": "default", "B": "default"}, Labels: map[string]string{"team": "x"},
			PassEnv: []string{"GOPROXY"}, Show: true,
			Needs:  []string{"first", "each-events", "each-a-b"},
			Inputs: map[string]string{"first": "first", "each_events": "each-events", "each_a_b": "each-a-b"},
		},
	}, p.Subagents)
}

func TestNamesOfForEach(t *testing.T) {
	for _, c := range []struct {
		about, name, items string
		want               []string
	}{
		{"appended", "n", `["a", "b"]`, []string{"n-a", "n-b"}},
		{"made valid", "n", `["./internal/bus", "x/y z"]`, []string{"n-internal-bus", "n-x-y-z"}},
		{"numbered when equal", "n", `["a/b", "a b"]`, []string{"n-1", "n-2"}},
		{"numbered when empty", "n", `["a", "//"]`, []string{"n-1", "n-2"}},
		{"numbered when too long", "n", `["a", "` + strings.Repeat("x", 64) + `"]`, []string{"n-1", "n-2"}},
		{"placed", "pre-{item}.post", `["a/b", "c"]`, []string{"pre-a-b.post", "pre-c.post"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			p := parse(t, "[[subagent]]\nname = \""+c.name+"\"\ncommand = [\"true\"]\nfor_each = "+c.items+"\n")
			var names []string
			for _, s := range p.Subagents {
				names = append(names, s.Name)
			}
			require.Equal(t, c.want, names)
		})
	}
}

func TestNeedOfOneInstance(t *testing.T) {
	p := parse(t, `
[[subagent]]
name = "both"
shell = "true"
for_each = ["a", "b"]
[[subagent]]
name = "one"
shell = "true"
needs = ["both-b"]
[[subagent]]
name = "all"
shell = "true"
needs = ["both-b", "both", "one"]
`)
	require.Equal(t, []string{"both-b"}, p.Subagents[2].Needs)
	require.Equal(t, []string{"both-b", "both-a", "one"}, p.Subagents[3].Needs)
}

func TestInputVariable(t *testing.T) {
	for name, want := range map[string]string{
		"plain": "plain", "with-dash.dot_x": "with_dash_dot_x", "1st": "_1st", "A9": "A9",
	} {
		require.Equal(t, want, InputVariable(name))
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a/b-c.go": "a/b-c.go", "": "''", "a b": "'a b'", "$(rm)": "'$(rm)'", "it's": `'it'\''s'`, "~": "'~'", "*": "'*'",
	} {
		require.Equal(t, want, shellQuote(in))
	}
}

// TestFaults runs every file of testdata/bad against the messages beside it.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	require.NoError(t, err)
	require.Greater(t, len(files), 10)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".toml"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			p, err := Parse(filepath.Base(path), "/plans", string(text))
			require.Nil(t, p)
			var bad *Error
			require.ErrorAs(t, err, &bad)
			golden(t, "bad/"+strings.TrimSuffix(filepath.Base(path), ".toml")+".golden", err.Error()+"\n")
		})
	}
}

func TestLoadFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "absent.toml"))
	require.EqualError(t, err, filepath.Join(dir, "absent.toml")+": open the plan: no such file or directory")

	_, err = Load(dir)
	require.ErrorContains(t, err, "read the plan: ")

	big := filepath.Join(dir, "big.toml")
	require.NoError(t, os.WriteFile(big, []byte(strings.Repeat("#", MaxFile+1)), 0o600))
	_, err = Load(big)
	require.EqualError(t, err, big+": the plan is over 1048576 bytes")

	binary := filepath.Join(dir, "binary.toml")
	require.NoError(t, os.WriteFile(binary, []byte("name = \"\xff\""), 0o600))
	_, err = Load(binary)
	require.EqualError(t, err, binary+": is not UTF-8")

	good := filepath.Join(dir, "good.toml")
	require.NoError(t, os.WriteFile(good, []byte("[[subagent]]\nname = \"a\"\nshell = \"true\"\n"), 0o600))
	p, err := Load(good)
	require.NoError(t, err)
	require.Equal(t, "good", p.Name)
	require.Equal(t, dir, p.Subagents[0].Cwd)
}

// TestDeepNesting: the decoder recurses, and must not run out of stack, which
// would end the process. The greatest file passes too, in seconds.
func TestDeepNesting(t *testing.T) {
	const depth = MaxFile / 16
	var bad *Error
	_, err := Parse("deep.toml", "/", "a = "+strings.Repeat("[", depth)+strings.Repeat("]", depth))
	require.ErrorAs(t, err, &bad)
}

func TestLimits(t *testing.T) {
	var b strings.Builder
	b.WriteString("[[subagent]]\nname = \"a\"\nshell = \"true\"\nfor_each = [")
	for range MaxSubagents + 1 {
		b.WriteString(`"x",`)
	}
	b.WriteString("]\n")
	_, err := Parse("many.toml", "/", b.String())
	require.EqualError(t, err, "many.toml: stands for 10001 subagents, the limit is 10000")

	b.Reset()
	b.WriteString("[[subagent]]\nname = \"a\"\nshell = \"true\"\nfor_each = [")
	for range 65 {
		b.WriteString(`"x",`)
	}
	b.WriteString("]\n[[subagent]]\nname = \"b\"\nshell = \"true\"\nneeds = [\"a\"]\n")
	_, err = Parse("many.toml", "/", b.String())
	require.EqualError(t, err, "many.toml:8: subagent[1].needs: stands for 65 subagents, the limit is 64")
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	require.NoError(f, err)
	for _, path := range append(files, filepath.Join("..", "plans", "audit.toml")) {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("fuzz.toml", "/plans", text)
		if err != nil {
			var bad *Error
			require.True(t, errors.As(err, &bad))
			require.NotEmpty(t, bad.Faults)
			lines := strings.Count(text, "\n") + 1
			for _, fault := range bad.Faults {
				require.LessOrEqual(t, fault.Line, lines)
			}
			return
		}
		requireSound(t, p)
	})
}

// requireSound checks what every accepted plan promises to a run.
func requireSound(t *testing.T, p *Plan) {
	t.Helper()
	require.NotEmpty(t, p.Subagents)
	at := make(map[string]int)
	for i, s := range p.Subagents {
		require.NotContains(t, at, s.Name)
		at[s.Name] = i
		require.True(t, len(s.Command) > 0 || (s.Type != "" && s.Type != typeCommand))
		require.True(t, filepath.IsAbs(s.Cwd))
		spawn := s.spawn()
		spawn.ParentSessionID = "run"
		require.Nil(t, spawn.Validate())
	}
	// Taking away what needs nothing, again and again, leaves nothing.
	left := make(map[string]int)
	for _, s := range p.Subagents {
		left[s.Name] = len(s.Needs)
		require.Len(t, s.Inputs, len(s.Needs))
		for _, need := range s.Needs {
			require.Contains(t, at, need)
		}
	}
	for len(left) > 0 {
		var free []string
		for name, n := range left {
			if n == 0 {
				free = append(free, name)
			}
		}
		require.NotEmpty(t, free, "a cycle was accepted")
		for _, name := range free {
			delete(left, name)
			for _, s := range p.Subagents {
				for _, need := range s.Needs {
					if need == name {
						left[s.Name]--
					}
				}
			}
		}
	}
}
