package worktree

import (
	"context"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// newRoot is a root of trees; what is made in it is let go of at the end.
func newRoot(t testing.TB) Root {
	root, err := Open(filepath.Join(t.TempDir(), "trees"))
	requireNo(t, err)
	return root
}

// create makes a tree from a directory of the user's.
func create(t testing.TB, root Root, dir string) *Tree {
	t.Helper()
	tree, err := root.Create(t.Context(), Request{ID: events.NewID(), Dir: dir, Home: "/nonexistent"})
	requireNo(t, err)
	t.Cleanup(tree.Close)
	return tree
}

// inside is git as the subagent runs it.
func inside(t testing.TB, tree *Tree) *user { return &user{t, tree.Path} }

// listing is every file below a directory but .git: mode, and content or target.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		if d.Name() == ".git" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		st, err := d.Info()
		require.NoError(t, err)
		switch {
		case d.IsDir():
		case st.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			out[rel] = "-> " + target
		default:
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			out[rel] = st.Mode().String() + " " + string(b)
		}
		return nil
	}))
	return out
}

// gitState is every file of a git directory but objects, and hayward's own.
func gitState(t testing.TB, dir string) map[string]string {
	all := listing(t, filepath.Join(dir, ".git"))
	for name := range all {
		if strings.HasPrefix(name, "objects/") || strings.HasPrefix(name, "refs/hayward/") || name == repositoryLock {
			delete(all, name)
		}
	}
	return all
}

// dirty gives a repository every kind of uncommitted state.
func (u *user) dirty() {
	u.write("tracked", "one\n")
	u.write("dir/crlf", "a\r\nb\r\n")
	u.write("dir/deep/binary", "\x00\x01\xff\xfe")
	u.write("staged", "before\n")
	u.write("both", "1\n")
	u.write("gone", "here\n")
	u.write("gone-staged", "here\n")
	u.write("tool", "#!/bin/sh\n")
	u.write("turns/link", "file\n")
	u.write("becomes", "file\n")
	u.write(".gitignore", "*.log\nbuild/\n")
	require.NoError(u.t, os.Symlink("tracked", filepath.Join(u.dir, "link")))
	u.commit("one")
	u.write("tracked", "one\ntwo\n")
	u.write("staged", "after\n")
	u.git("add", "staged")
	u.write("both", "2\n")
	u.git("add", "both")
	u.write("both", "3\n")
	require.NoError(u.t, os.Remove(filepath.Join(u.dir, "gone")))
	u.git("rm", "-q", "gone-staged")
	require.NoError(u.t, os.Chmod(filepath.Join(u.dir, "tool"), 0o755))
	require.NoError(u.t, os.Remove(filepath.Join(u.dir, "turns/link")))
	require.NoError(u.t, os.Symlink("../tracked", filepath.Join(u.dir, "turns/link")))
	require.NoError(u.t, os.Remove(filepath.Join(u.dir, "becomes")))
	u.write("becomes/a-directory", "x\n")
	u.write("new", "untracked\n")
	u.write("new dir/ü/\"q\"", "untracked\n")
	u.write("secret", "s\n")
	require.NoError(u.t, os.Chmod(filepath.Join(u.dir, "secret"), 0o600))
	u.write("intent", "later\n")
	u.git("add", "-N", "intent")
}

// TestCarry: the tree begins with exactly what the user has, staged and not, and
// nothing of the user's changes.
func TestCarry(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			u := newUser(t, "--object-format="+format)
			u.dirty()
			u.git("status") // refreshes the index
			want, before, status := listing(t, u.dir), gitState(t, u.dir), u.git("status", "--porcelain=v1", "-z")
			u.write("a.log", "ignored\n")
			u.write("build/out", "ignored\n")

			root := newRoot(t)
			tree := create(t, root, u.dir)
			require.Equal(t, want, listing(t, tree.Path))
			require.Equal(t, before, gitState(t, u.dir))
			require.Equal(t, status, inside(t, tree).git("status", "--porcelain=v1", "-z"))
			require.Equal(t, u.git("diff", "--cached", "--raw"), inside(t, tree).git("diff", "--cached", "--raw"))
			require.Equal(t, u.git("log", "--oneline"), inside(t, tree).git("log", "--oneline"))
			require.Equal(t, "main", inside(t, tree).git("branch", "--show-current"))
			inside(t, tree).git("fsck", "--strict")

			// The baseline holds the bytes, the index what is staged.
			paths := strings.Split(u.git("ls-tree", "-r", "-z", "--name-only", BaseRef(tree.ID, RefTree)), "\x00")
			var wanted []string
			for name := range want {
				wanted = append(wanted, name)
			}
			sort.Strings(wanted)
			require.Equal(t, append(wanted, ""), paths)
			require.Equal(t, "a\r", strings.Split(u.git("cat-file", "-p", BaseRef(tree.ID, RefTree)+":dir/crlf"), "\n")[0])
			require.Equal(t, u.git("write-tree"), u.git("rev-parse", BaseRef(tree.ID, RefIndex)+"^{tree}"))
			require.Equal(t, os.FileMode(0o600), ParseModes(u.git("log", "-1", "--format=%B", BaseRef(tree.ID, RefTree))).Mode("secret", false))
			u.git("fsck", "--strict")
		})
	}
}

// TestInclude: ignored files come along where .worktreeinclude says so, and only
// as files: none enters the object store.
func TestInclude(t *testing.T) {
	u := newUser(t)
	u.write(".gitignore", ".env\nnode_modules/\n*.log\n")
	u.write(".worktreeinclude", "# what a subagent needs\n.env\nnode_modules/keep/\n")
	u.write("a", "a\n")
	u.commit("one")
	u.write(".env", "TOKEN=never-in-git\n")
	u.write("sub/.env", "x\n")
	u.write("node_modules/keep/x", "x\n")
	u.write("node_modules/drop/x", "x\n")
	u.write("b.log", "x\n")
	tree := create(t, newRoot(t), u.dir)
	got := listing(t, tree.Path)
	for _, name := range []string{".env", "sub/.env", "node_modules/keep/x", "a"} {
		require.Contains(t, got, name)
	}
	require.NotContains(t, got, "node_modules/drop/x")
	require.NotContains(t, got, "b.log")
	require.NotContains(t, u.git("ls-tree", "-r", "--name-only", BaseRef(tree.ID, RefTree)), ".env")
}

// TestCreateUndone: a failure at any step leaves no directory, ref or lock.
func TestCreateUndone(t *testing.T) {
	u := newUser(t)
	u.dirty()
	before, refs := gitState(t, u.dir), u.git("for-each-ref")
	root := newRoot(t)
	var steps []string
	fault = func(step string) error { steps = append(steps, step); return nil }
	t.Cleanup(func() { fault = nil })
	create(t, root, u.dir)
	require.NotEmpty(t, steps)
	have, err := root.List()
	requireNo(t, err)
	for _, at := range append(steps, "cancelled") {
		ctx, cancel := context.WithCancelCause(testContext(t))
		id := events.NewID()
		fault = func(step string) error {
			switch {
			case at == "cancelled" && step == "baseline":
				cancel(os.ErrDeadlineExceeded)
			case step == at:
				return os.ErrDeadlineExceeded
			}
			return nil
		}
		_, err := root.Create(ctx, Request{ID: id, Dir: u.dir, Home: "/nonexistent"})
		require.NotNil(t, err, at)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoDirExists(t, root.Dir(id))
		left, err := ListRefs(testContext(t), filepath.Join(u.dir, ".git"), id)
		requireNo(t, err)
		require.Empty(t, left)
		now, err := root.List()
		requireNo(t, err)
		require.Equal(t, have, now)
	}
	require.Equal(t, before, gitState(t, u.dir))
	require.Contains(t, u.git("for-each-ref"), refs)
}
