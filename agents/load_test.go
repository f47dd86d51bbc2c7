package agents

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// tree is a project with a sub-directory, a configuration directory and a home.
type tree struct {
	t *testing.T
	Places
}

func newTree(t *testing.T) tree {
	root := t.TempDir()
	p := Places{Dir: filepath.Join(root, "project/sub"), Project: filepath.Join(root, "project"), Config: filepath.Join(root, "config"), Home: filepath.Join(root, "home")}
	for _, dir := range []string{p.Dir, p.Config, p.Home} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	return tree{t, p}
}

func (tr tree) write(base, name, text string) string {
	path := filepath.Join(base, name)
	require.NoError(tr.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(tr.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// file is a definition that only describes itself.
func file(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n"
}

func (tr tree) find(s *Set, name string) *Definition {
	d, err := s.Find(name)
	require.Nil(tr.t, err)
	return d
}

func TestPrecedence(t *testing.T) {
	tr := newTree(t)
	tr.Trusted = true
	// From the weakest to the strongest, each hides the one before.
	require.Equal(t, ScopeBuiltIn, tr.find(Load(tr.Places), "Explore").Source.Scope)
	for _, at := range []struct{ base, name string }{
		{tr.Home, ".claude/agents/explore.md"},
		{tr.Config, "agents/explore.md"},
		{tr.Project, ".grok/agents/explore.md"},
		{tr.Project, ".claude/agents/explore.md"},
		{tr.Project, ".hayward/agents/deep/explore.md"},
	} {
		path := tr.write(at.base, at.name, file("explore", at.name))
		set := Load(tr.Places)
		require.Empty(t, set.Faults)
		require.Equal(t, path, tr.find(set, "explore").Source.Path)
	}
	set := Load(tr.Places)
	require.Len(t, set.Shadowed, 5)
	require.Equal(t, []string{"explore", "general-purpose", "plan"}, set.Names())

	// Below the top nobody looked when the project was trusted.
	tr.write(tr.Dir, ".claude/agents/explore.md", file("explore", "Further down."))
	own := tr.write(tr.Dir, ".claude/agents/own.md", file("own", "Further down."))
	set = Load(tr.Places)
	require.NotEqual(t, "Further down.", tr.find(set, "explore").Description)
	require.Equal(t, own, tr.find(set, "own").Source.Path)
	require.True(t, tr.find(set, "own").Source.Untrusted)
}

func TestUntrustedProjectAddsNamesOnly(t *testing.T) {
	tr := newTree(t)
	tr.write(tr.Project, ".hayward/agents/explore.md", file("explore", "Hijacked."))
	tr.write(tr.Project, ".hayward/agents/plan.md", "---\nname: plan\n") // broken
	tr.write(tr.Project, ".hayward/agents/own.md", `---
name: own
description: Own.
sandbox: off
permissionMode: bypassPermissions
hooks: {Stop: [{hooks: [{type: command, command: x}]}]}
mcpServers: [github, {local: {command: x}}]
env: {A: b}
runner: command
command: [make]
---
`)
	set := Load(tr.Places)
	require.Equal(t, ScopeBuiltIn, tr.find(set, "explore").Source.Scope)
	require.Equal(t, ScopeBuiltIn, tr.find(set, "plan").Source.Scope)
	own := tr.find(set, "own")
	require.True(t, own.Source.Untrusted)
	require.Nil(t, own.Hooks)
	require.Nil(t, own.Command)
	require.Nil(t, own.Env)
	require.Empty(t, own.Sandbox)
	require.Equal(t, PermissionMode("default"), own.PermissionMode)
	require.Equal(t, []MCPServer{{Name: "github"}}, own.MCPServers)
	var said []string
	for _, f := range set.Faults {
		if f.File == own.Source.Path {
			said = append(said, f.Key)
		}
	}
	require.Equal(t, []string{"hooks", "mcp_servers", "permission_mode", "sandbox", "env", "command"}, said)

	tr.Trusted = true
	set = Load(tr.Places)
	require.Equal(t, []string{"make"}, tr.find(set, "own").Command)
	_, err := set.Find("plan")
	require.NotNil(t, err, "a broken definition must not give way to the built-in one")
	require.Contains(t, err.Error(), "plan.md:1: the header has no closing line")
}

func TestNothingIsSkippedInSilence(t *testing.T) {
	tr := newTree(t)
	tr.Trusted = true
	agents := filepath.Join(tr.Project, ".claude/agents")
	tr.write(agents, "a.md", file("twin", "The first."))
	second := tr.write(agents, "b.md", file("twin", "The second."))
	readme := tr.write(agents, "docs/README.md", "# Agents\n")
	secret := tr.write(tr.Home, "secret.md", file("secret", "A file of the user."))
	require.NoError(t, os.Symlink(secret, filepath.Join(agents, "link.md")))
	require.NoError(t, unix.Mkfifo(filepath.Join(agents, "pipe.md"), 0o600))
	tr.write(agents, "notes.txt", "not a definition by its ending")

	set := Load(tr.Places)
	require.Equal(t, "The first.", tr.find(set, "twin").Description)
	_, err := set.Find("secret")
	require.NotNil(t, err)
	require.Equal(t, events.CodeUnknownType, err.Code)
	var files []string
	for _, f := range set.Faults {
		if f.Key != "name" || f.Line == 0 {
			files = append(files, f.File)
		}
	}
	require.Equal(t, []string{second, readme, filepath.Join(agents, "link.md"), filepath.Join(agents, "pipe.md")}, files)

	// The user's own directories may be full of links.
	require.NoError(t, os.MkdirAll(filepath.Join(tr.Home, "dotfiles/agents"), 0o700))
	tr.write(tr.Home, "dotfiles/agents/mine.md", file("mine", "Mine."))
	require.NoError(t, os.Symlink(filepath.Join(tr.Home, "dotfiles/agents"), filepath.Join(tr.Config, "agents")))
	require.Equal(t, "Mine.", tr.find(Load(tr.Places), "mine").Description)
}

func TestBuiltIn(t *testing.T) {
	all := BuiltIn()
	require.Len(t, all, 3)
	for _, d := range all {
		require.NotEmpty(t, d.Description)
		require.NotEmpty(t, d.Prompt)
	}
}
