package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func makeDirs(t *testing.T, dirs ...string) string {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, d := range dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(root, d), 0o700))
	}
	return root
}

func TestTrust(t *testing.T) {
	root := makeDirs(t, "home/repo/.git", "home/repo/sub", "home/repo/vendor/other/.git", "home/plain/sub")
	at := func(name string) string { return filepath.Join(root, name) }
	list := Open(at("state/trust.json"))
	trusts := func(dir string) bool {
		ok, err := list.Trusts(at(dir))
		require.NoError(t, err)
		return ok
	}
	require.False(t, trusts("home/repo"))

	top, added, err := list.Add(at("home/repo/sub"), at("home"), time.Now())
	require.NoError(t, err)
	require.True(t, added)
	require.Equal(t, at("home/repo"), top)
	require.True(t, trusts("home/repo"))
	require.True(t, trusts("home/repo/sub"))
	require.False(t, trusts("home/repo/vendor/other"), "a repository inside is another project")
	require.False(t, trusts("home/plain"))
	require.NoError(t, os.Symlink(at("home/repo"), at("home/link")))
	require.True(t, trusts("home/link/sub"))

	_, added, err = list.Add(at("home/link"), at("home"), time.Now())
	require.NoError(t, err)
	require.False(t, added)
	_, _, err = list.Add(at("home/plain"), at("home"), time.Now())
	require.NoError(t, err)
	require.False(t, trusts("home/plain/sub"), "without a repository a project is one directory")
	for _, dir := range []string{"/", at("home")} {
		_, _, err = list.Add(dir, at("home"), time.Now())
		require.ErrorContains(t, err, "is not a project")
	}

	require.NoError(t, os.RemoveAll(at("home/plain")))
	_, removed, err := list.Remove(at("home/plain"))
	require.NoError(t, err)
	require.True(t, removed)
	_, removed, err = list.Remove(at("home/repo/sub"))
	require.NoError(t, err)
	require.True(t, removed)
	require.False(t, trusts("home/repo"))
}

// Trust is for what was there: whatever is added, changed or removed takes it away,
// until somebody looks and trusts again.
func TestTrustIsForTheFilesThatWereThere(t *testing.T) {
	root := makeDirs(t, "repo/.git", "repo/.claude/agents", "repo/src", "outside")
	repo := filepath.Join(root, "repo")
	list := Open(filepath.Join(root, "trust.json"))
	trust := func() {
		t.Helper()
		_, added, err := list.Add(repo, root, time.Now())
		require.NoError(t, err)
		require.True(t, added)
	}
	trusts := func() bool {
		t.Helper()
		ok, err := list.Trusts(filepath.Join(repo, "src"))
		require.NoError(t, err)
		return ok
	}
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(repo, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(repo, name), []byte(text), 0o600))
	}
	trust()
	write("src/main.go", "package main\n")
	write(".claude/settings.json", "{}")
	require.True(t, trusts(), "what does not count does not matter")
	for _, change := range []func(){
		func() { write(".hayward/config.toml", "[sandbox]\nprofile = \"off\"\n") },
		func() { write(".hayward/config.toml", "[sandbox]\nprofile = \"strict\"\n") },
		func() { write(".claude/agents/explore.md", "---\nname: explore\n---\n") },
		func() { require.NoError(t, os.Remove(filepath.Join(repo, ".claude/agents/explore.md"))) },
		func() { require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(repo, ".hayward/link"))) },
		func() { require.NoError(t, os.Rename(filepath.Join(repo, ".hayward"), filepath.Join(repo, ".grok"))) },
	} {
		change()
		require.False(t, trusts())
		trust()
		require.True(t, trusts())
	}
}

func TestDamagedListTrustsNothing(t *testing.T) {
	root := makeDirs(t, "repo/.git")
	path := filepath.Join(root, "trust.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	ok, err := Open(path).Trusts(filepath.Join(root, "repo"))
	require.ErrorContains(t, err, path)
	require.False(t, ok)
	_, _, err = Open(path).Add(filepath.Join(root, "repo"), root, time.Now())
	require.Error(t, err, "what is there must not be written over")
}

func TestChangesFollowOneAnother(t *testing.T) {
	root := makeDirs(t)
	list := Open(filepath.Join(root, "trust.json"))
	var wg sync.WaitGroup
	for i := range 16 {
		dir := filepath.Join(root, fmt.Sprint(i))
		require.NoError(t, os.Mkdir(dir, 0o700))
		wg.Go(func() {
			_, _, err := list.Add(dir, "/nonexistent", time.Now())
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, err := list.Projects()
	require.NoError(t, err)
	require.Len(t, all, 16)
}
