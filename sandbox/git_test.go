package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a configuration leads to is found, also through what it includes, and a
// circle of includes has an end.
func TestConfigurationOfARepository(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", "/home/u")
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	write(".git/config", `[core]
	bare = false
	hooksPath = tools/hooks ; ours
[user] name = n
[Include]
	path = ../shared
	path = "/abs/with space"
[includeIf "gitdir:~/job/"] path = ~/git/job # at home
[includes]
	path = not-an-include
`)
	write("shared", "[include]\n\tpath = .git/config\n\tpath = deeper\n")
	write("deeper", "[core]\nhookspath=/opt/hooks\n")
	r, err := findRepository(dir)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, path := range r.closed {
		seen[path] = true
	}
	require.Equal(t, map[string]bool{
		filepath.Join(dir, "tools/hooks"): true, filepath.Join(dir, "shared"): true, filepath.Join(dir, "deeper"): true,
		filepath.Join(dir, ".git/config"): true, "/abs/with space": true, "/home/u/git/job": true, "/opt/hooks": true,
	}, seen)
}

func TestQuarantine(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"hooks", "real"} {
		require.NoError(t, os.Mkdir(path(name), 0o700))
	}
	require.NoError(t, os.WriteFile(path("commondir"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(path("real/kept"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink("real", path("link")))
	require.NoError(t, os.WriteFile(path("taken"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(path("taken.hayward-id"), []byte("older"), 0o600))

	moved, err := Quarantine([]string{path("hooks"), path("commondir"), path("none"), path("gone/none"), path("link/kept"), path("taken")}, "id")
	require.Equal(t, []string{path("hooks.hayward-id"), path("commondir.hayward-id")}, moved)
	require.ErrorContains(t, err, "link/kept")
	require.ErrorContains(t, err, "taken")
	require.FileExists(t, path("real/kept"), "nothing is moved through a link")
	older, err := os.ReadFile(path("taken.hayward-id"))
	require.NoError(t, err)
	require.Equal(t, "older", string(older))
}

// Repositories below the top of a workspace are found, with what submodules and
// linked work trees point to, up to a limit that is reported.
func TestNestedRepositories(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{".git/modules/sub", "a/b/.git", "c/.git", "empty/.git", "sub", "linked"} {
		require.NoError(t, os.MkdirAll(path(d), 0o700))
	}
	for file, text := range map[string]string{
		".git/HEAD": "", "a/b/.git/HEAD": "", "c/.git/HEAD": "",
		"sub/.git": "gitdir: ../.git/modules/sub\n", "linked/.git": "gitdir: /elsewhere/.git/worktrees/linked\n",
	} {
		require.NoError(t, os.WriteFile(path(file), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink(path("c"), path("link")))
	dirs, files, all := nestedRepositories(dir, maxNestedEntries)
	require.True(t, all)
	require.Equal(t, []string{path("c/.git"), path(".git/modules/sub"), path("a/b/.git")}, dirs)
	require.Equal(t, []string{path("linked/.git"), path("sub/.git")}, files)
	dirs, _, all = nestedRepositories(dir, 9)
	require.False(t, all)
	require.Equal(t, []string{path("c/.git")}, dirs)
}

// The directory of hooks is made in a repository only, and never through a link.
func TestMakeHooks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, d := range []string{"real/.git", "none/.git"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "real/.git/HEAD"), nil, 0o600))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	require.False(t, makeHooks(filepath.Join(dir, "link/.git/hooks")))
	require.NoDirExists(t, filepath.Join(dir, "real/.git/hooks"))
	require.False(t, makeHooks(filepath.Join(dir, "none/.git/hooks")))
	require.NoDirExists(t, filepath.Join(dir, "none/.git/hooks"))
	for range 2 {
		require.True(t, makeHooks(filepath.Join(dir, "real/.git/hooks")))
		require.DirExists(t, filepath.Join(dir, "real/.git/hooks"))
	}
}
