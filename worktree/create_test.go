package worktree

import (
	"os"
	"os/exec"
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

// TestPlaces: every kind of repository that works, from every place in it.
func TestPlaces(t *testing.T) {
	plain := func(t *testing.T) *user {
		u := newUser(t)
		u.write("a", "a\n")
		u.write("sub/dir/b", "b\n")
		u.commit("one")
		return u
	}
	for name, prepare := range map[string]func(t *testing.T) (u *user, dir string){
		"top":           func(t *testing.T) (*user, string) { u := plain(t); return u, u.dir },
		"sub-directory": func(t *testing.T) (*user, string) { u := plain(t); return u, filepath.Join(u.dir, "sub/dir") },
		"ignored sub-directory": func(t *testing.T) (*user, string) {
			u := plain(t)
			u.write(".gitignore", "out/\n")
			u.write("out/x/y", "y\n")
			return u, filepath.Join(u.dir, "out/x")
		},
		"detached": func(t *testing.T) (*user, string) {
			u := plain(t)
			u.git("checkout", "-q", "--detach")
			return u, u.dir
		},
		"unborn": func(t *testing.T) (*user, string) {
			u := newUser(t)
			u.write("a", "a\n")
			u.write("b", "b\n")
			u.git("add", "a")
			return u, u.dir
		},
		"empty": func(t *testing.T) (*user, string) { u := newUser(t); return u, u.dir },
		"linked": func(t *testing.T) (*user, string) {
			u := plain(t)
			linked := &user{t, filepath.Join(t.TempDir(), "linked")}
			u.git("worktree", "add", "-q", "-b", "side", linked.dir)
			linked.write("mine", "m\n")
			return linked, linked.dir
		},
		"separate git directory": func(t *testing.T) (*user, string) {
			u := &user{t, filepath.Join(t.TempDir(), "w")}
			require.NoError(t, os.Mkdir(u.dir, 0o755))
			u.git("init", "-q", "--separate-git-dir", filepath.Join(t.TempDir(), "g"))
			u.write("a", "a\n")
			u.git("-c", "user.name=u", "-c", "user.email=e", "add", "-A")
			return u, u.dir
		},
		"linked git directory": func(t *testing.T) (*user, string) {
			u := plain(t)
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			require.NoError(t, os.Rename(filepath.Join(u.dir, ".git"), elsewhere))
			require.NoError(t, os.Symlink(elsewhere, filepath.Join(u.dir, ".git")))
			return u, u.dir
		},
		"shallow": func(t *testing.T) (*user, string) {
			from := plain(t)
			from.write("a", "2\n")
			from.commit("two")
			u := &user{t, filepath.Join(t.TempDir(), "clone")}
			from.git("clone", "-q", "--depth=1", "file://"+from.dir, u.dir)
			return u, u.dir
		},
		"borrowing": func(t *testing.T) (*user, string) {
			from := plain(t)
			u := &user{t, filepath.Join(t.TempDir(), "clone")}
			from.git("clone", "-q", "--shared", from.dir, u.dir)
			return u, u.dir
		},
		"split index": func(t *testing.T) (*user, string) {
			u := plain(t)
			u.git("update-index", "--split-index")
			u.write("c", "c\n")
			u.git("add", "c")
			return u, u.dir
		},
		"packed": func(t *testing.T) (*user, string) {
			u := plain(t)
			u.git("tag", "-a", "-m", "t", "v1")
			u.git("branch", "side")
			u.git("gc", "-q", "--prune=now")
			return u, u.dir
		},
		"odd path": func(t *testing.T) (*user, string) {
			u := plain(t)
			dir := filepath.Join(t.TempDir(), "a:b \"c\" ü")
			require.NoError(t, os.Rename(u.dir, dir))
			return &user{t, dir}, dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, dir := prepare(t)
			tree := create(t, newRoot(t), dir)
			in := inside(t, tree)
			require.DirExists(t, tree.Cwd)
			rel, err := filepath.Rel(u.dir, dir)
			require.NoError(t, err)
			require.Equal(t, filepath.Join(tree.Path, rel), tree.Cwd)
			want := listing(t, u.dir)
			for ignored := range want {
				if strings.HasPrefix(ignored, "out/") {
					delete(want, ignored)
				}
			}
			require.Equal(t, want, listing(t, tree.Path))
			require.Equal(t, u.git("status", "--porcelain", "-b"), in.git("status", "--porcelain", "-b"))
			require.Equal(t, u.git("for-each-ref", "refs/heads", "refs/tags", "refs/remotes"), in.git("for-each-ref"))
			if name != "shallow" {
				in.git("fsck")
			}
			u.git("fsck")
			in.write("inside", "x\n")
			in.git("add", "-A")
			in.git("-c", "user.name=x", "-c", "user.email=y", "commit", "-q", "-m", "inside")
			in.git("stash", "list")
		})
	}
}

// TestRefused: what a tree cannot hold is refused by name, with a way on, and
// leaves nothing behind.
func TestRefused(t *testing.T) {
	committed := func(t *testing.T) *user {
		u := newUser(t)
		u.write("a", "a\n")
		u.commit("one")
		return u
	}
	for name, prepare := range map[string]func(t *testing.T) (dir, reason string){
		"no repository": func(t *testing.T) (string, string) { return t.TempDir(), "" },
		"bare": func(t *testing.T) (string, string) {
			u := newUser(t)
			u.git("init", "-q", "--bare", "b.git")
			return filepath.Join(u.dir, "b.git"), "bare"
		},
		"configured bare": func(t *testing.T) (string, string) {
			u := committed(t)
			u.git("config", "core.bare", "true")
			return u.dir, "bare"
		},
		"submodule": func(t *testing.T) (string, string) {
			u, other := committed(t), committed(t)
			u.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, "sub")
			return u.dir, "submodules"
		},
		"in a submodule": func(t *testing.T) (string, string) {
			u, other := committed(t), committed(t)
			u.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, "sub")
			return filepath.Join(u.dir, "sub"), "submodules"
		},
		"LFS": func(t *testing.T) (string, string) {
			u := committed(t)
			u.write("x/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
			u.commit("two")
			return u.dir, "LFS"
		},
		"filter": func(t *testing.T) (string, string) {
			u := committed(t)
			u.write(".gitattributes", "secrets/* filter=crypt\n")
			u.commit("two")
			u.git("config", "filter.crypt.clean", "cat")
			return u.dir, "filter"
		},
		"sparse": func(t *testing.T) (string, string) {
			u := committed(t)
			u.git("sparse-checkout", "set", "x")
			return u.dir, "sparse checkout"
		},
		"partial clone": func(t *testing.T) (string, string) {
			u := committed(t)
			u.git("config", "remote.origin.promisor", "true")
			return u.dir, "partial clone"
		},
		"merge": func(t *testing.T) (string, string) {
			u := committed(t)
			u.git("checkout", "-q", "-b", "side")
			u.write("a", "side\n")
			u.commit("side")
			u.git("checkout", "-q", "main")
			u.write("a", "main\n")
			u.commit("main")
			_, err := u.try("merge", "side")
			require.Error(t, err)
			return u.dir, "in progress"
		},
		"embedded": func(t *testing.T) (string, string) {
			u := committed(t)
			u.git("init", "-q", "nested")
			u.write("nested/x", "x\n")
			return u.dir, "embedded repository"
		},
		"forged to no repository": func(t *testing.T) (string, string) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+t.TempDir()+"\n"), 0o644))
			return dir, "forged"
		},
		"forged to another repository": func(t *testing.T) (string, string) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+committed(t).dir+"/.git\n"), 0o644))
			return dir, "forged"
		},
		"forged to another linked tree": func(t *testing.T) (string, string) {
			u, dir := committed(t), t.TempDir()
			u.git("worktree", "add", "-q", filepath.Join(t.TempDir(), "l"))
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+u.dir+"/.git/worktrees/l\n"), 0o644))
			return dir, "forged"
		},
		"objects elsewhere": func(t *testing.T) (string, string) {
			u, other := committed(t), committed(t)
			require.NoError(t, os.RemoveAll(filepath.Join(u.dir, ".git/objects")))
			require.NoError(t, os.Symlink(filepath.Join(other.dir, ".git/objects"), filepath.Join(u.dir, ".git/objects")))
			return u.dir, "forged"
		},
		"pointer through a link": func(t *testing.T) (string, string) {
			dir := t.TempDir()
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, ".git")))
			return dir, "forged"
		},
		"core.worktree elsewhere": func(t *testing.T) (string, string) {
			u := committed(t)
			u.git("config", "core.worktree", t.TempDir())
			return u.dir, "forged"
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, reason := prepare(t)
			root := newRoot(t)
			_, err := root.Create(testContext(t), Request{ID: events.NewID(), Dir: dir, Home: "/nonexistent"})
			require.NotNil(t, err)
			if reason == "" {
				require.Equal(t, events.CodeNotRepository, err.Code)
			} else {
				require.Equal(t, events.CodeRepositoryRefused, err.Code, "%v", err)
				require.Equal(t, reason, err.Details["reason"], "%v", err)
			}
			if reason != "forged" {
				require.NotEmpty(t, err.Remedy)
			}
			ids, err := root.List()
			requireNo(t, err)
			require.Empty(t, ids)
		})
	}
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
	u.git("for-each-ref", "--format=delete %(refname)", "refs/hayward")
	require.NotEmpty(t, steps)
	have, err := root.List()
	requireNo(t, err)
	for _, at := range append(steps[:len(steps):len(steps)], "cancelled") {
		ctx := testContext(t)
		id := events.NewID()
		fault = func(step string) error {
			if step == at {
				return os.ErrDeadlineExceeded
			}
			return nil
		}
		_, err := root.Create(ctx, Request{ID: id, Dir: u.dir, Home: "/nonexistent"})
		if at == "cancelled" {
			requireNo(t, err)
			continue
		}
		require.NotNil(t, err, at)
		require.Equal(t, events.CodeWorktreeFailed, err.Code)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoDirExists(t, root.Dir(id))
		left, err := ListRefs(ctx, filepath.Join(u.dir, ".git"), id)
		requireNo(t, err)
		require.Empty(t, left)
		now, err := root.List()
		requireNo(t, err)
		require.Equal(t, have, now)
	}
	require.Equal(t, before, gitState(t, u.dir))
	require.Contains(t, u.git("for-each-ref"), refs)
	require.Empty(t, exec.Command("find", u.dir, "-name", "*.lock", "-not", "-name", repositoryLock).Stderr)
}
