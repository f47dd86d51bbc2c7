package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

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
