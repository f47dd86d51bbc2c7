package agents

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shape is a form of file met in published definitions, with what it has to mean.
type shape struct {
	name string
	// head is what is between the lines of dashes, the name line left out unless
	// whole is set.
	head  string
	whole string
	want  func(t *testing.T, p Parsed)
}

func parseShape(s shape) Parsed {
	text := s.whole
	if text == "" {
		text = "---\nname: checker\n" + s.head + "\n---\nYou check.\n"
	}
	return Parse([]byte(text), Source{Scope: ScopeUser, Format: FormatClaude}, "checker.md")
}

// sound requires a definition without any fault.
func sound(t *testing.T, p Parsed) *Definition {
	t.Helper()
	require.NotNil(t, p.Definition, "%v", p.Faults)
	require.Empty(t, p.Faults)
	return p.Definition
}

// mended requires a definition and one warning at a line that holds a text.
func mended(t *testing.T, p Parsed, line int, text string) *Definition {
	t.Helper()
	require.NotNil(t, p.Definition, "%v", p.Faults)
	require.Len(t, p.Faults, 1, "%v", p.Faults)
	require.Equal(t, SeverityWarning, p.Faults[0].Severity)
	require.Equal(t, line, p.Faults[0].Line, p.Faults[0].String())
	require.Contains(t, p.Faults[0].Message, text)
	return p.Definition
}

// refused requires an error at a line that holds a text.
func refused(t *testing.T, p Parsed, line int, text string) {
	t.Helper()
	require.Nil(t, p.Definition)
	require.Equal(t, "checker", p.Name)
	f := firstError(p.Faults)
	require.NotNil(t, f)
	require.Equal(t, line, f.Line, f.String())
	require.Contains(t, f.Message, text)
}

func toolsAre(rules ...string) func(*testing.T, Parsed) {
	return func(t *testing.T, p Parsed) {
		require.Equal(t, append([]string{}, rules...), sound(t, p).Tools)
	}
}

const described = "description: Checks.\n"

var shapes = []shape{
	{name: "tools as comma string", head: described + "tools: Read, Grep, Bash", want: toolsAre("Read", "Grep", "Bash")},
	{name: "tools as block list", head: described + "tools:\n  - Read\n  - Grep", want: toolsAre("Read", "Grep")},
	{name: "tools as flow list", head: described + `tools: ["Read", "Grep"]`, want: toolsAre("Read", "Grep")},
	{name: "empty list", head: described + "tools: []", want: func(t *testing.T, p Parsed) {
		d := sound(t, p)
		require.NotNil(t, d.Tools)
		require.Empty(t, d.Tools)
	}},
	{name: "key absent", head: described, want: func(t *testing.T, p Parsed) { require.Nil(t, sound(t, p).Tools) }},
	{name: "parenthesised items", head: described + "tools: Task(a, b), Read", want: toolsAre("Task(a, b)", "Read")},
	{name: "parenthesised items in a flow list", head: described + "tools: [Task(a, b), Read]", want: toolsAre("Task(a, b)", "Read")},
	{name: "globs", head: described + "tools: Read, mcp__x__*", want: toolsAre("Read", "mcp__x__*")},
	{name: "deny list", head: described + "disallowedTools: Write, Edit", want: func(t *testing.T, p Parsed) {
		require.Equal(t, []string{"Write", "Edit"}, sound(t, p).DisallowedTools)
	}},
	{name: "deny flow list", head: described + "disallowedTools: [Write, Edit]", want: func(t *testing.T, p Parsed) {
		require.Equal(t, []string{"Write", "Edit"}, sound(t, p).DisallowedTools)
	}},
	{name: "allowedTools", head: described + "allowedTools: Read", want: toolsAre("Read")},
	{name: "allowed-tools", head: described + "allowed-tools: Read", want: toolsAre("Read")},
	{name: "tools under two names", head: described + "tools: Read\nallowed-tools: Grep", want: func(t *testing.T, p Parsed) {
		refused(t, p, 5, "given twice, first in line 4")
	}},
	{name: "mcp_servers", head: described + "mcp_servers: [github]", want: func(t *testing.T, p Parsed) {
		require.Equal(t, []MCPServer{{Name: "github"}}, sound(t, p).MCPServers)
	}},
	{name: "mcpServers inline", head: described + "mcpServers:\n  - github\n  - local:\n      command: serve\n", want: func(t *testing.T, p Parsed) {
		require.Equal(t, []MCPServer{{Name: "github"}, {Name: "local", Config: map[string]any{"command": "serve"}}}, sound(t, p).MCPServers)
	}},
	{name: "colon in plain description", head: "description: Checks things: a, b\ntools: Read", want: func(t *testing.T, p Parsed) {
		d := mended(t, p, 3, "not YAML")
		require.Equal(t, "Checks things: a, b", d.Description)
		require.Equal(t, []string{"Read"}, d.Tools)
	}},
	{name: "literal backslash-n and tags", head: `description: Use it. Examples:\n<example>\nContext: the user asks\n</example>`, want: func(t *testing.T, p Parsed) {
		require.Equal(t, `Use it. Examples:\n<example>\nContext: the user asks\n</example>`, mended(t, p, 3, "not YAML").Description)
	}},
	{name: "unindented block", head: "description: Use it so. Examples:\n\n<example>\nContext: a: b\n- user: go\n</example>\n\nDone.\nmodel: sonnet", want: func(t *testing.T, p Parsed) {
		require.NotNil(t, p.Definition)
		require.Equal(t, "Use it so. Examples:\n\n<example>\nContext: a: b\n- user: go\n</example>\n\nDone.", p.Definition.Description)
		require.Equal(t, "sonnet", p.Definition.Model)
	}},
	{name: "folded scalar with colons", head: "description: >\n  Checks: a\n  and: b", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "Checks: a and: b", sound(t, p).Description)
	}},
	{name: "literal scalar with colons", head: "description: |\n  Checks: a\n  and: b", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "Checks: a\nand: b", sound(t, p).Description)
	}},
	{name: "literal scalar in a header that is not YAML", head: "description: |\n  Checks: a\n   and: b\nmodel: a: b", want: func(t *testing.T, p Parsed) {
		d := mended(t, p, 6, "not YAML")
		require.Equal(t, "Checks: a\n and: b", d.Description)
		require.Equal(t, "a: b", d.Model)
	}},
	{name: "plain multi-line", head: "description:\n  Checks what\n  is there.", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "Checks what is there.", sound(t, p).Description)
	}},
	{name: "CRLF", whole: "---\r\nname: checker\r\ndescription: Checks.\r\ntools: Read\r\n---\r\nYou check.\r\nWell.\r\n", want: func(t *testing.T, p Parsed) {
		d := sound(t, p)
		require.Equal(t, []string{"Read"}, d.Tools)
		require.Equal(t, "You check.\nWell.", d.Prompt)
	}},
	{name: "CRLF with a colon", whole: "---\r\nname: checker\r\ndescription: Checks: a\r\n---\r\nYou check.\r\n", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "Checks: a", mended(t, p, 3, "not YAML").Description)
	}},
	{name: "BOM", whole: "\xEF\xBB\xBF---\nname: checker\ndescription: Checks.\n---\nYou check.\n", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "You check.", sound(t, p).Prompt)
	}},
	{name: "model inherit", head: described + "model: inherit", want: func(t *testing.T, p Parsed) { require.Empty(t, sound(t, p).Model) }},
	{name: "model alias", head: described + "model: opus", want: func(t *testing.T, p Parsed) { require.Equal(t, "opus", sound(t, p).Model) }},
	{name: "model id", head: described + "model: claude-sonnet-4-5-20250929", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "claude-sonnet-4-5-20250929", sound(t, p).Model)
	}},
	{name: "typed scalars", head: described + "maxTurns: 30\nbackground: true\nisolation: worktree", want: func(t *testing.T, p Parsed) {
		d := sound(t, p)
		require.Equal(t, 30, d.MaxTurns)
		require.True(t, d.Background)
		require.Equal(t, "worktree", d.Isolation)
	}},
	{name: "typed scalars in quotes", head: described + `maxTurns: "30"`, want: func(t *testing.T, p Parsed) { require.Equal(t, 30, sound(t, p).MaxTurns) }},
	{name: "no turns", head: described + "maxTurns: 0", want: func(t *testing.T, p Parsed) { refused(t, p, 4, "whole number") }},
	{name: "isolation that is none", head: described + "isolation: sandbox", want: func(t *testing.T, p Parsed) { refused(t, p, 4, "neither none nor worktree") }},
	{name: "background that is no truth", head: described + "background: yes please", want: func(t *testing.T, p Parsed) { refused(t, p, 4, "neither true nor false") }},
	{name: "null values", head: described + "mcpServers:\nhooks:", want: func(t *testing.T, p Parsed) {
		require.NotNil(t, p.Definition)
		require.Nil(t, p.Definition.MCPServers)
		require.Nil(t, p.Definition.Hooks)
		require.Len(t, p.Faults, 2)
		require.Contains(t, p.Faults[0].String(), "checker.md:4: mcpServers: has no value")
	}},
	{name: "null tools", head: described + "tools:", want: func(t *testing.T, p Parsed) {
		require.Nil(t, mended(t, p, 4, "means all tools; write [] for none").Tools)
	}},
	{name: "nested map", head: described + "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [{type: command, command: check}]", want: func(t *testing.T, p Parsed) {
		require.Equal(t, map[string]any{"PreToolUse": []any{map[string]any{
			"matcher": "Bash", "hooks": []any{map[string]any{"type": "command", "command": "check"}},
		}}}, sound(t, p).Hooks)
	}},
	{name: "comments", head: "# hooks:\n#   PreToolUse: x\n" + described + "# tools: Read", want: func(t *testing.T, p Parsed) {
		d := sound(t, p)
		require.Nil(t, d.Tools)
		require.Nil(t, d.Hooks)
	}},
	{name: "comments in a header that is not YAML", head: "description: a: b\n# tools: Read\nmodel: opus", want: func(t *testing.T, p Parsed) {
		d := mended(t, p, 3, "not YAML")
		require.Equal(t, "a: b", d.Description)
		require.Nil(t, d.Tools)
	}},
	{name: "unicode", head: "description: 代码审查。코드를 검토합니다. Kodu gözden geçirir: evet", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "代码审查。코드를 검토합니다. Kodu gözden geçirir: evet", mended(t, p, 3, "not YAML").Description)
	}},
	{name: "unicode over lines with a blank line", head: "description: 代码审查\n\n코드 검토\nmodel: opus", want: func(t *testing.T, p Parsed) {
		d := mended(t, p, 5, "not YAML")
		require.Equal(t, "代码审查\n\n코드 검토", d.Description)
		require.Equal(t, "opus", d.Model)
	}},
	{name: "no header", whole: "# Agents\n\nHow to write them.\n", want: func(t *testing.T, p Parsed) {
		require.Nil(t, p.Definition)
		require.Empty(t, p.Name)
		require.Len(t, p.Faults, 1)
		require.Equal(t, SeverityNote, p.Faults[0].Severity)
	}},
	{name: "header of something else", whole: "---\ntitle: Agents\n---\nText.\n", want: func(t *testing.T, p Parsed) {
		require.Nil(t, p.Definition)
		require.Empty(t, p.Name)
		require.Len(t, p.Faults, 1)
		require.Equal(t, SeverityNote, p.Faults[0].Severity)
	}},
	{name: "header without end", whole: "---\nname: checker\ndescription: Checks.\n", want: func(t *testing.T, p Parsed) { refused(t, p, 1, "no closing line") }},
	{name: "name missing", whole: "---\ndescription: Checks.\n---\nYou check.\n", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "checker", mended(t, p, 1, "after the file").Name)
	}},
	{name: "name differs from file", whole: "---\nname: reviewer\ndescription: Checks.\n---\n", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "reviewer", mended(t, p, 2, "the file's name is checker").Name)
	}},
	{name: "name in upper case", whole: "---\nname: Checker\ndescription: Checks.\n---\n", want: func(t *testing.T, p Parsed) {
		require.Equal(t, "checker", sound(t, p).Name)
	}},
	{name: "name that is none", whole: "---\nname: a/b\ndescription: Checks.\n---\n", want: func(t *testing.T, p Parsed) { refused(t, p, 2, `"a/b" is not`) }},
	{name: "name of the command type", whole: "---\nname: command\ndescription: Checks.\n---\n", want: func(t *testing.T, p Parsed) { refused(t, p, 2, "runs a command as it is") }},
	{name: "unknown key", head: described + "toolz: Read\ncapabillityMode: all", want: func(t *testing.T, p Parsed) {
		require.NotNil(t, p.Definition)
		require.Equal(t, map[string]any{"toolz": "Read", "capabillityMode": "all"}, p.Definition.Extra)
		require.Len(t, p.Faults, 2)
		require.Contains(t, p.Faults[0].Message, "did you mean tools?")
		require.Contains(t, p.Faults[1].Message, "did you mean capability_mode?")
	}},
	{name: "ornament", head: described + "color: blue", want: func(t *testing.T, p Parsed) {
		require.Equal(t, map[string]any{"color": "blue"}, sound(t, p).Extra)
	}},
	{name: "alias", head: described + "skills: &s [a]\ntools: *s", want: func(t *testing.T, p Parsed) { refused(t, p, 5, "aliases are not read") }},
	{name: "MCP inheritance", head: described + "mcpInheritance: {except: [github]}", want: func(t *testing.T, p Parsed) {
		require.Equal(t, MCPInheritance{Mode: "except", Names: []string{"github"}}, sound(t, p).MCP)
	}},
	{name: "command", head: described + "runner: command\ncommand: [make, test]\nenv: {CI: 1}\nmax_runtime: 2m\nmax_memory: 512M", want: func(t *testing.T, p Parsed) {
		d := sound(t, p)
		require.Equal(t, []string{"make", "test"}, d.Command)
		require.Equal(t, map[string]string{"CI": "1"}, d.Env)
		require.Equal(t, "2m0s", d.Limits.MaxRuntime.String())
		require.EqualValues(t, 512<<20, d.Limits.MaxMemory)
	}},
	{name: "command for a shell", head: described + "runner: command\ncommand: make test", want: func(t *testing.T, p Parsed) { refused(t, p, 5, "list of arguments") }},
	{name: "variable that loads code", head: described + "env: {LD_PRELOAD: x}", want: func(t *testing.T, p Parsed) { refused(t, p, 4, "LD_PRELOAD") }},
	{name: "runner without command", head: described + "runner: command", want: func(t *testing.T, p Parsed) { refused(t, p, 4, "needs the key command") }},
}

func TestShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) { s.want(t, parseShape(s)) })
	}
}

func TestNotUTF8(t *testing.T) {
	p := Parse([]byte("---\nname: checker\ndescription: \xff\n---\n"), Source{}, "checker.md")
	refused(t, p, 0, "not UTF-8")
}

func TestTooLarge(t *testing.T) {
	p := Parse([]byte("---\nname: checker\n---\n"+strings.Repeat("x", MaxFile)), Source{}, "checker.md")
	refused(t, p, 0, "the limit is")
}

func TestCodex(t *testing.T) {
	p := Parse([]byte(`name = "checker"
description = "Checks: all of it"
developer_instructions = """
You check.
"""
nickname_candidates = ["Ada"]
model = "gpt-5"
model_reasoning_effort = "high"
sandbox_mode = "workspace-write"
[mcp_servers.docs]
command = "docs"
`), Source{Format: FormatCodex}, "checker.toml")
	d := sound(t, p)
	require.Equal(t, "You check.", d.Prompt)
	require.Equal(t, "gpt-5", d.Model)
	require.Equal(t, "high", d.Effort)
	require.Equal(t, "workspace", d.Sandbox)
	require.Equal(t, []MCPServer{{Name: "docs", Config: map[string]any{"command": "docs"}}}, d.MCPServers)
	require.Equal(t, 3, d.Lines["prompt"])

	refused(t, Parse([]byte("name = \"checker\"\ndescription = 'x'\n\nmodel = [\n"), Source{}, "checker.toml"), 4, "expected value")
	refused(t, Parse([]byte("name = \"checker\"\ndescription = 'x'\nmodel_reasoning_effort = 'huge'\n"), Source{}, "checker.toml"), 3, "huge")
}

func TestSpawns(t *testing.T) {
	for _, c := range []struct {
		tools, denied []string
		want          SpawnsOf
	}{
		{nil, nil, SpawnsOf{Any: true}},
		{[]string{}, nil, SpawnsOf{Blocked: true}},
		{[]string{"Read"}, nil, SpawnsOf{Blocked: true}},
		{[]string{"Agent"}, nil, SpawnsOf{Any: true}},
		{[]string{"Agent(Explore, plan)", "Task(plan, x)"}, nil, SpawnsOf{Types: []string{"explore", "plan", "x"}}},
		{[]string{"Agent(explore)", "Agent"}, nil, SpawnsOf{Any: true}},
		{nil, []string{"Agent"}, SpawnsOf{Blocked: true}},
		{nil, []string{"Agent(X)"}, SpawnsOf{Any: true, Except: []string{"x"}}},
		{[]string{"Agent(a, b)"}, []string{"Agent(B)"}, SpawnsOf{Types: []string{"a"}}},
		{[]string{"Agent(a)"}, []string{"Agent(a)"}, SpawnsOf{Blocked: true}},
	} {
		d := Definition{Tools: c.tools, DisallowedTools: c.denied}
		got := d.Spawns()
		require.Equal(t, c.want, got, "%v without %v", c.tools, c.denied)
		require.Equal(t, c.want.Any, got.Allows("other"))
		require.False(t, got.Allows("X") && len(c.denied) > 0)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range shapes {
		text := s.whole
		if text == "" {
			text = "---\nname: checker\n" + s.head + "\n---\nYou check.\n"
		}
		f.Add(text, false)
	}
	f.Add("name = 'x'\n[mcp_servers.docs]\ncommand = 'docs'\n", true)
	f.Fuzz(func(t *testing.T, text string, codex bool) {
		label := "checker.md"
		if codex {
			label = "checker.toml"
		}
		p := Parse([]byte(text), Source{}, label)
		if (p.Definition == nil) == (firstError(p.Faults) == nil) && p.Name != "" {
			t.Fatalf("%q: a name, and neither a definition nor an error: %v", text, p.Faults)
		}
		if p.Definition != nil && p.Definition.Name != p.Name {
			t.Fatalf("%q is %s and says %s", text, p.Definition.Name, p.Name)
		}
		if p.Name == "" && len(p.Faults) == 0 {
			t.Fatalf("%q was skipped in silence", text)
		}
	})
}
