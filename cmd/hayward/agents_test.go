package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// project makes a git repository with files and works in it.
func (b *bench) project(files map[string]string) string {
	b.t.Helper()
	dir, err := filepath.EvalSymlinks(b.t.TempDir())
	require.NoError(b.t, err)
	require.NoError(b.t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(b.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(b.t, os.WriteFile(path, []byte(text), 0o600))
	}
	b.t.Chdir(dir)
	return dir
}

const reviewer = `---
name: reviewer
description: Reviews: all of it.
tools: Read, Grep
hooks: {Stop: [{hooks: [{type: command, command: x}]}]}
---
You review.
`

func TestAgents(t *testing.T) {
	b := newBench(t)
	dir := b.project(map[string]string{
		".claude/agents/reviewer.md": reviewer,
		".claude/agents/README.md":   "# How\n",
		".hayward/config.toml":       "session = \"project\"\n",
	})
	file := filepath.Join(dir, ".claude/agents/reviewer.md")

	r := b.run("agents")
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `(?m)^reviewer +project \(not trusted\) .*Reviews: all of it\.$`, r.stdout)
	require.Regexp(t, `(?m)^explore +built-in `, r.stdout)
	require.Contains(t, r.stderr, "0 errors and 2 warnings")

	r = b.run("agents", "show", "Reviewer", "--origin")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "Read, Grep  ("+file+":4)")
	require.Contains(t, r.stdout, "\nYou review.\n")
	require.NotContains(t, r.stdout, "hooks")
	require.Contains(t, r.stdout, "hayward trust")

	r = b.run("agents", "check")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "warning: "+file+":3: the header is not YAML")
	require.Contains(t, r.stdout, "warning: "+file+":5: hooks: not used: this project is not trusted (hayward trust)")
	require.Contains(t, r.stdout, "note: "+filepath.Join(dir, ".claude/agents/README.md"))

	require.Contains(t, b.run("config", "show", "session").stdout, `session = "default"`)
	r = b.run("trust")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, dir+": trusted\n", r.stdout)
	require.Equal(t, dir+": trusted, as before\n", b.run("trust", dir).stdout)
	require.Contains(t, b.run("trust", "--list").stdout, dir)
	require.Contains(t, b.run("agents", "show", "reviewer").stdout, "hooks")
	require.Contains(t, b.run("config", "show", "session").stdout, `session = "project"`)

	require.NoError(t, os.WriteFile(filepath.Join(dir, ".claude/agents/reviewer.md"), []byte("---\nname: reviewer\nisolation: cage\n---\n"), 0o600))
	r = b.run("agents", "check", "--json")
	require.Equal(t, exitUsage, r.code)
	var checked struct {
		OK     bool
		Faults []struct{ Severity, File, Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &checked))
	require.False(t, checked.OK)
	r = b.run("agents", "show", "reviewer")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.stderr, file+`:3: isolation: "cage" is neither none nor worktree`)

	// What changed since is not trusted.
	require.Contains(t, b.run("config", "show", "session").stdout, `session = "default"`)
	require.Contains(t, b.run("trust", "--list").stdout, "changed since")
	require.Equal(t, dir+": trusted\n", b.run("trust").stdout)
	require.Contains(t, b.run("config", "show", "session").stdout, `session = "project"`)
	require.Equal(t, dir+": not trusted\n", b.run("trust", "--revoke").stdout)
	require.Contains(t, b.run("config", "show", "session").stdout, `session = "default"`)
	for _, args := range [][]string{{"trust", "/"}, {"trust", file}, {"trust", "missing"}, {"trust", "--list", dir}} {
		require.Equal(t, exitUsage, b.run(args...).code, "%v", args)
	}
	r = b.run("agents", "show", "nobody")
	require.Equal(t, exitUsage, r.code, r.stderr)
	require.Contains(t, r.stderr, "explore")
}
