package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// end ends a tree as the spawner does.
func end(t testing.TB, root Root, tree *Tree) Outcome {
	t.Helper()
	out := root.End(t.Context(), tree.ID, tree.Events())
	tree.Close()
	return out
}

// restored is what the refs of the end hold, as files in a new directory, with the
// modes that the commit's message names.
func restored(t testing.TB, u *user, ref string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	index := filepath.Join(t.TempDir(), "index")
	g := Git{Dir: filepath.Join(u.dir, ".git"), WorkTree: dir, Index: index}
	clean := filepath.Join(t.TempDir(), "clean")
	require.NoError(t, makeCleanGit(clean, u.git("rev-parse", "--show-object-format"), []string{filepath.Join(u.dir, ".git/objects")}, ""))
	oid := u.git("rev-parse", ref)
	g.Dir = clean
	requireNo(t, g.Run(t.Context(), Call{}, "read-tree", oid))
	requireNo(t, g.Run(t.Context(), Call{}, "checkout-index", "-a"))
	modes := ParseModes(u.git("log", "-1", "--format=%B", ref))
	for name, mode := range modes {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	return listing(t, dir)
}

// TestEndClean: a tree in which nothing changed goes, and takes its refs along,
// whatever the user's state was.
func TestEndClean(t *testing.T) {
	u := newUser(t)
	u.dirty()
	u.write(".worktreeinclude", "*.log\n")
	u.write("carried.log", "x\n")
	u.git("tag", "-a", "-m", "t", "v1")
	root := newRoot(t)
	tree := create(t, root, u.dir)
	inside(t, tree).git("status") // writes the index
	out := end(t, root, tree)
	require.Nil(t, out.Worktree.Problem)
	require.Equal(t, &events.Changes{}, out.Changes)
	require.False(t, out.Worktree.Kept, "%v", out.Worktree.KeptFor)
	require.NoDirExists(t, root.Dir(tree.ID))
	require.Empty(t, u.git("for-each-ref", "refs/hayward"))
	require.Equal(t, out.Worktree, root.End(t.Context(), tree.ID, tree.Events()).Worktree)
}

// A directory that somebody else deleted is no clean end: what was in it is lost, and
// the record says so.
func TestEndOfADeletedTree(t *testing.T) {
	u := newUser(t)
	u.write("file", "x\n")
	u.commit("one")
	root := newRoot(t)
	for _, snapshot := range []bool{false, true} {
		tree := create(t, root, u.dir)
		inside(t, tree).write("file", "work\n")
		if snapshot {
			_, err := root.Snapshot(t.Context(), tree.ID)
			requireNo(t, err)
		}
		require.NoError(t, os.RemoveAll(root.Dir(tree.ID)))
		out := end(t, root, tree)
		require.False(t, out.Worktree.Kept)
		require.Nil(t, out.Changes)
		require.NotNil(t, out.Worktree.Problem)
		require.ErrorContains(t, out.Worktree.Problem, "is gone")
		require.Equal(t, snapshot, strings.Contains(out.Worktree.Problem.Remedy, EndRef(tree.ID, RefTree)))
	}
	require.NoError(t, os.RemoveAll(u.dir))
	out := root.End(t.Context(), events.NewID(), &events.Worktree{Repository: u.dir})
	require.ErrorContains(t, out.Worktree.Problem, "cannot be told")
}

// work changes a tree in every way.
func work(t testing.TB, in *user) {
	in.write("tracked", "inside\n")
	in.write("staged inside", "s\n")
	in.git("add", "staged inside")
	in.write("staged inside", "and more\n")
	in.write("made/binary", "\x00\xff\x00")
	in.write("made/crlf", "a\r\nb\r\n")
	in.write("made/private", "p\n")
	require.NoError(t, os.Chmod(filepath.Join(in.dir, "made/private"), 0o600))
	in.write("made/run", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(in.dir, "made/run"), 0o750))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(in.dir, "made/link")))
	require.NoError(t, os.Remove(filepath.Join(in.dir, "both")))
	require.NoError(t, os.Chmod(filepath.Join(in.dir, "staged"), 0o600))
}

// TestEnd: everything that was left is in the refs, byte by byte and mode by mode;
// the user's own state is as it was.
func TestEnd(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			u := newUser(t, "--object-format="+format)
			u.dirty()
			u.git("status")
			before, mine := gitState(t, u.dir), listing(t, u.dir)
			root := newRoot(t)
			tree := create(t, root, u.dir)
			in := inside(t, tree)
			in.git("checkout", "-q", "-b", "topic")
			in.write("committed", "c\n")
			in.git("add", "committed")
			in.git("commit", "-q", "-m", "inside")
			topic := in.git("rev-parse", "HEAD")
			in.git("add", "intent") // git cannot stash what is only meant to be added
			in.write("stashed", "x\n")
			in.git("add", "stashed")
			in.git("stash", "push", "-q", "--", "stashed")
			stash := in.git("rev-parse", "refs/stash")
			in.git("branch", "-f", "main", "topic")
			in.git("tag", "inside-tag")
			work(t, in)
			want, staged := listing(t, tree.Path), in.git("write-tree")

			out := end(t, root, tree)
			if out.Worktree.Problem != nil {
				require.NoError(t, out.Worktree.Problem)
			}
			require.True(t, out.Worktree.Kept)
			require.DirExists(t, tree.Path)
			id := tree.ID
			require.Equal(t, want, restored(t, u, EndRef(id, RefTree)))
			for name, oid := range map[string]string{RefHead: topic, "heads/topic": topic, "heads/main": topic, "tags/inside-tag": topic, "stash": stash, RefIndex + "^{tree}": staged} {
				require.Equal(t, oid, u.git("rev-parse", EndRef(id, name)), name)
			}
			require.Equal(t, before, gitState(t, u.dir))
			require.Equal(t, mine, listing(t, u.dir))
			u.git("fsck", "--strict")
			u.git("gc", "-q", "--prune=now")
			require.NoError(t, os.RemoveAll(root.Dir(id)))
			u.git("fsck", "--strict")
			require.Equal(t, want, restored(t, u, EndRef(id, RefTree)))
			require.Equal(t, out.Changes.Files, 1+1+4+1+1+1+1, "%+v", out.Changes)
		})
	}
}

// TestEndWithoutGit: a subagent that destroys its git directory loses its commits,
// not its files; the user's repository does not notice.
func TestEndWithoutGit(t *testing.T) {
	u := newUser(t)
	u.write("a", "a\n")
	head := u.commit("one")
	root := newRoot(t)
	tree := create(t, root, u.dir)
	in := inside(t, tree)
	in.write("b", "b\n")
	require.NoError(t, os.RemoveAll(filepath.Join(tree.Path, in.git("rev-parse", "--git-common-dir"))))
	out := end(t, root, tree)
	require.Nil(t, out.Worktree.Problem)
	require.Equal(t, &events.Changes{Files: 1, Insertions: 1}, out.Changes)
	require.Equal(t, map[string]string{"a": "-rw-r--r-- a\n", "b": "-rw-r--r-- b\n"}, restored(t, u, EndRef(tree.ID, RefTree)))
	require.Equal(t, head, u.git("rev-parse", EndRef(tree.ID, RefHead)))
	u.git("fsck")
}

// TestEndHostile: whatever a subagent makes of its git directory, nothing of it is
// run or believed, its files are saved, and the user's repository stays sound.
func TestEndHostile(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, in *user, other *user, mark string) (problem bool){
		"programs in its configuration": func(t *testing.T, in, other *user, mark string) bool {
			run := filepath.Join(t.TempDir(), "run")
			require.NoError(t, os.WriteFile(run, []byte("#!/bin/sh\ntouch "+mark+"\ncat\n"), 0o755))
			in.git("config", "core.fsmonitor", run)
			in.git("config", "filter.x.clean", run)
			in.git("config", "filter.x.required", "true")
			in.git("config", "core.hooksPath", filepath.Dir(run))
			in.git("config", "diff.external", run)
			in.git("config", "include.path", "/proc/self/environ")
			in.write(".gitattributes", "* filter=x diff=x text eol=crlf\n")
			return false
		},
		"alternates of another repository": func(t *testing.T, in, other *user, mark string) bool {
			require.NoError(t, os.WriteFile(filepath.Join(in.dir, ".git/objects/info/alternates"), []byte(other.dir+"/.git/objects\n"), 0o644))
			secret := other.git("rev-parse", "HEAD")
			require.NoError(t, os.WriteFile(filepath.Join(in.dir, ".git/refs/heads/stolen"), []byte(secret+"\n"), 0o644))
			return true
		},
		"objects that are links": func(t *testing.T, in, other *user, mark string) bool {
			secret := other.git("rev-parse", "HEAD")
			dir := filepath.Join(in.dir, ".git/objects", secret[:2])
			require.NoError(t, os.MkdirAll(dir, 0o755))
			require.NoError(t, os.Symlink(filepath.Join(other.dir, ".git/objects", secret[:2], secret[2:]), filepath.Join(dir, secret[2:])))
			require.NoError(t, os.WriteFile(filepath.Join(in.dir, ".git/HEAD"), []byte(secret+"\n"), 0o644))
			return true
		},
		"objects elsewhere": func(t *testing.T, in, other *user, mark string) bool {
			require.NoError(t, os.RemoveAll(filepath.Join(in.dir, ".git/objects")))
			require.NoError(t, os.Symlink(filepath.Join(other.dir, ".git/objects"), filepath.Join(in.dir, ".git/objects")))
			require.NoError(t, os.WriteFile(filepath.Join(in.dir, ".git/HEAD"), []byte(other.git("rev-parse", "HEAD")+"\n"), 0o644))
			return true
		},
		"a lie about an object": func(t *testing.T, in, other *user, mark string) bool {
			in.write("x", "x\n")
			in.git("add", "x")
			in.git("commit", "-q", "-m", "x")
			head := in.git("rev-parse", "HEAD")
			blob := in.git("hash-object", "-w", "x")
			path := func(oid string) string { return filepath.Join(in.dir, ".git/objects", oid[:2], oid[2:]) }
			b, err := os.ReadFile(path(blob))
			require.NoError(t, err)
			require.NoError(t, os.Remove(path(head)))
			require.NoError(t, os.WriteFile(path(head), b, 0o444))
			return true
		},
		"malformed refs": func(t *testing.T, in, other *user, mark string) bool {
			for name, body := range map[string]string{
				"HEAD": "ref: refs/heads/../../../etc", "refs/heads/a..b": in.git("rev-parse", "HEAD"), "refs/heads/-x": in.git("rev-parse", "HEAD"),
				"refs/heads/short": "abc", "packed-refs": "nonsense\n\x00\n" + in.git("rev-parse", "HEAD") + " ../x\n",
			} {
				require.NoError(t, os.WriteFile(filepath.Join(in.dir, ".git", name), []byte(body), 0o644))
			}
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(in.dir, ".git/refs/heads/link")))
			return false
		},
		"a broken index": func(t *testing.T, in, other *user, mark string) bool {
			require.NoError(t, os.WriteFile(filepath.Join(in.dir, ".git/index"), []byte("DIRC nonsense"), 0o644))
			return false
		},
		"a file for a git directory": func(t *testing.T, in, other *user, mark string) bool {
			require.NoError(t, os.RemoveAll(filepath.Join(in.dir, ".git")))
			require.NoError(t, os.WriteFile(filepath.Join(in.dir, ".git"), []byte("gitdir: "+other.dir+"/.git\n"), 0o644))
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, other := newUser(t), newUser(t)
			u.write("a", "a\n")
			u.commit("one")
			other.write("secret", "of another repository\n")
			secret := other.commit("secret")
			root := newRoot(t)
			tree := create(t, root, u.dir)
			in := inside(t, tree)
			in.git("config", "user.name", "x")
			in.write("left", "1\r\n2\n")
			mark := filepath.Join(t.TempDir(), "ran")
			problem := spoil(t, in, other, mark)
			require.NoError(t, os.RemoveAll(mark)) // git inside may run what it likes
			want := listing(t, tree.Path)

			out := end(t, root, tree)
			require.NoFileExists(t, mark)
			require.True(t, out.Worktree.Kept)
			require.DirExists(t, tree.Path)
			if problem {
				require.NotNil(t, out.Worktree.Problem)
				require.NotEmpty(t, out.Worktree.Problem.Remedy)
			} else if out.Worktree.Problem != nil {
				require.NoError(t, out.Worktree.Problem)
			}
			require.Equal(t, want, restored(t, u, EndRef(tree.ID, RefTree)))
			_, err := u.try("cat-file", "-e", secret)
			require.Error(t, err, "an object of another repository came in")
			u.git("fsck", "--strict")
		})
	}
}

// TestEndKeeps: what the refs cannot hold keeps the directory.
func TestEndKeeps(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, in *user){
		"ignored files": func(t *testing.T, in *user) { in.write("x.log", "x\n") },
		"git objects": func(t *testing.T, in *user) {
			in.git("-c", "user.name=x", "-c", "user.email=y", "commit", "-q", "--allow-empty", "-m", "x")
			in.git("reset", "-q", "--hard", "HEAD~1")
		},
		"embedded repository nested/": func(t *testing.T, in *user) { in.git("init", "-q", "nested"); in.write("nested/x", "x\n") },
		"not saved: git~1":            func(t *testing.T, in *user) { in.write("git~1", "x\n") },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			u.write(".gitignore", "*.log\n")
			u.commit("one")
			root := newRoot(t)
			tree := create(t, root, u.dir)
			do(t, inside(t, tree))
			out := end(t, root, tree)
			require.Nil(t, out.Worktree.Problem)
			require.True(t, out.Worktree.Kept)
			require.Contains(t, strings.Join(out.Worktree.KeptFor, "\n"), name)
			require.DirExists(t, tree.Path)
		})
	}
}

// TestSnapshotFails: a failure at any step keeps the directory, says so, and the
// next try saves everything.
func TestSnapshotFails(t *testing.T) {
	u := newUser(t)
	u.dirty()
	t.Cleanup(func() { fault = nil })
	for _, at := range []string{"tree", "end refs"} {
		root := newRoot(t)
		tree := create(t, root, u.dir)
		work(t, inside(t, tree))
		want := listing(t, tree.Path)
		fault = func(step string) error {
			if step == at {
				return os.ErrDeadlineExceeded
			}
			return nil
		}
		out := end(t, root, tree)
		require.NotNil(t, out.Worktree.Problem, at)
		require.ErrorIs(t, out.Worktree.Problem, os.ErrDeadlineExceeded)
		require.True(t, out.Worktree.Kept)
		require.Contains(t, out.Worktree.KeptFor, "not saved")
		rec, err := root.Read(tree.ID)
		requireNo(t, err)
		require.Equal(t, StateEnded, rec.State)
		require.NotNil(t, rec.Problem)

		fault = nil
		_, err = root.Snapshot(t.Context(), tree.ID)
		requireNo(t, err)
		require.Equal(t, want, restored(t, u, EndRef(tree.ID, RefTree)))
		rec, err = root.Read(tree.ID)
		requireNo(t, err)
		require.Nil(t, rec.Problem)
		require.Equal(t, StateEnded, rec.State)
	}
}

// TestCollected: git gc of the user's takes nothing away that a live tree borrows.
func TestCollected(t *testing.T) {
	u := newUser(t)
	u.dirty()
	doomed := u.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "doomed")
	u.git("branch", "doomed", doomed)
	u.git("tag", "-a", "-m", "t", "doomed-tag", doomed)
	root := newRoot(t)
	tree := create(t, root, u.dir)
	u.git("branch", "-D", "doomed")
	u.git("tag", "-d", "doomed-tag")
	u.git("reset", "-q", "--hard")
	u.git("clean", "-fdqx")
	u.git("reflog", "expire", "--expire=now", "--all")
	u.git("gc", "-q", "--prune=now")
	in := inside(t, tree)
	in.git("fsck", "--strict")
	in.git("log", "--oneline", "doomed", "doomed-tag")
	in.git("diff", "--cached")
	work(t, in)
	in.git("commit", "-q", "-m", "inside")
	want := listing(t, tree.Path)
	out := end(t, root, tree)
	require.Nil(t, out.Worktree.Problem)
	require.Equal(t, want, restored(t, u, EndRef(tree.ID, RefTree)))
	u.git("fsck", "--strict")
}
