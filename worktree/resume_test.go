package worktree

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// resumeTree makes the tree of a subagent that goes on from source.
func resumeTree(t testing.TB, root Root, u *user, source string) *Tree {
	t.Helper()
	tree, err := root.Resume(t.Context(), Request{ID: events.NewID(), Dir: u.dir, Home: "/nonexistent"}, source)
	requireNo(t, err)
	t.Cleanup(tree.Close)
	return tree
}

// left is a tree that ended with commits, a branch, a stash, staged and other
// changes, and an ignored file.
func left(t testing.TB, u *user, root Root) (tree *Tree, files map[string]string) {
	t.Helper()
	tree = create(t, root, u.dir)
	in := inside(t, tree)
	in.git("checkout", "-q", "-b", "topic")
	in.write("committed", "c\n")
	in.git("add", "committed")
	in.git("commit", "-q", "-m", "inside")
	in.git("tag", "-a", "-m", "t", "inside-tag")
	in.git("add", "intent")
	in.write("stashed", "x\n")
	in.git("add", "stashed")
	in.git("stash", "push", "-q", "--", "stashed")
	work(t, in)
	files = listing(t, tree.Path)
	in.write("built.log", "ignored\n")
	out := end(t, root, tree)
	require.Nil(t, out.Worktree.Problem)
	require.True(t, out.Worktree.Kept)
	return tree, files
}

// sameGit checks that git sees in a tree what it saw in the source's.
func sameGit(t testing.TB, in *user) {
	t.Helper()
	require.Equal(t, "refs/heads/topic", in.git("symbolic-ref", "HEAD"))
	require.Equal(t, "inside", in.git("log", "-1", "--format=%s"))
	require.Equal(t, "x", in.git("show", "stash@{0}:stashed"))
	require.Equal(t, "tag", in.git("cat-file", "-t", "inside-tag"))
	require.Contains(t, in.git("diff", "--cached", "--name-only"), "staged inside")
	require.Equal(t, "s", in.git("show", ":staged inside"), "staged, and more in the file")
	in.git("fsck")
}

// The first resume of a source gets its directory with all in it, the second one of
// its own from the refs; each saves what it did under its own name, and neither the
// source's end nor the other's changes.
func TestResumeTwice(t *testing.T) {
	u := newUser(t)
	u.dirty()
	root := newRoot(t)
	source, files := left(t, u, root)
	ends := u.git("for-each-ref", "refs/hayward/subagents/"+source.ID)
	mine := gitState(t, u.dir)

	first := resumeTree(t, root, u, source.ID)
	require.Equal(t, source.ID, first.TakenFrom)
	require.NoDirExists(t, source.Path)
	second := resumeTree(t, root, u, source.ID)
	require.Empty(t, second.TakenFrom)
	require.NotEqual(t, first.Path, second.Path)
	for _, tree := range []*Tree{first, second} {
		have := listing(t, tree.Path)
		if tree == first {
			require.Contains(t, have, "built.log", "what git has no place for is there as well")
			delete(have, "built.log")
		}
		require.Equal(t, files, have)
		sameGit(t, inside(t, tree))
		require.Equal(t, source.BaseCommit, tree.BaseCommit)
		require.Equal(t, u.git("rev-parse", BaseRef(source.ID, RefTree)), u.git("rev-parse", BaseRef(tree.ID, RefTree)))
	}
	inside(t, first).write("by first", "1\n")
	inside(t, second).write("by second", "2\n")
	inside(t, second).git("commit", "-q", "-am", "of second")
	for name, tree := range map[string]*Tree{"by first": first, "by second": second} {
		out := end(t, root, tree)
		require.Nil(t, out.Worktree.Problem)
		require.True(t, out.Worktree.Kept)
		want := map[string]string{}
		for file, content := range files {
			want[file] = content
		}
		got := restored(t, u, EndRef(tree.ID, RefTree))
		require.Contains(t, got, name)
		delete(got, name)
		require.Equal(t, want, got)
		require.Equal(t, "x", u.git("show", EndRef(tree.ID, "stash")+":stashed"))
	}
	require.Equal(t, "of second", u.git("log", "-1", "--format=%s", EndRef(second.ID, "heads/topic")))
	require.Equal(t, "inside", u.git("log", "-1", "--format=%s", EndRef(first.ID, "heads/topic")))
	require.Equal(t, ends, u.git("for-each-ref", "refs/hayward/subagents/"+source.ID))
	require.Equal(t, mine, gitState(t, u.dir))
	u.git("fsck", "--strict")

	// The directory is the first's: what is held for the source is its refs alone.
	items, err := root.GC(testContext(t), GCOptions{Saved: true})
	requireNo(t, err)
	for _, item := range items {
		require.Nil(t, item.Error)
		require.False(t, item.Refs, item.Why)
	}
	// Applying brings what both runs did.
	result, err := root.Apply(testContext(t), second.ID, ApplyOptions{})
	requireNo(t, err)
	require.True(t, result.Applied, "%v", result.Conflicts)
	require.FileExists(t, filepath.Join(u.dir, "by second"))
	require.FileExists(t, filepath.Join(u.dir, "made/private"))
}

// What was deleted by hand, record and all, is rebuilt from the refs alone, whatever
// the user has done meanwhile.
func TestResumeRebuilds(t *testing.T) {
	u := newUser(t, "--object-format=sha256")
	u.dirty()
	root := newRoot(t)
	source, files := left(t, u, root)
	require.NoError(t, os.RemoveAll(root.Dir(source.ID)))
	u.write("later", "l\n")
	u.commit("later")
	u.git("gc", "-q", "--prune=now")
	requireNo(t, root.Resumable(t.Context(), source.ID, u.dir))
	tree := resumeTree(t, root, u, source.ID)
	require.Equal(t, files, listing(t, tree.Path))
	sameGit(t, inside(t, tree))
	// The source's refs may go while it works.
	requireNo(t, deleteAllRefs(t.Context(), tree.CommonDir, source.ID))
	u.git("gc", "-q", "--prune=now")
	inside(t, tree).write("more", "m\n")
	out := end(t, root, tree)
	require.Nil(t, out.Worktree.Problem)
	files["more"] = listing(t, tree.Path)["more"]
	require.Equal(t, files, restored(t, u, EndRef(tree.ID, RefTree)))
	sameGit(t, inside(t, tree))
}

func TestResumeRefuses(t *testing.T) {
	u := newUser(t)
	u.dirty()
	root := newRoot(t)
	clean := create(t, root, u.dir)
	end(t, root, clean)
	for name, source := range map[string]string{"nothing changed": clean.ID, "unknown": events.NewID()} {
		err := root.Resumable(t.Context(), source, u.dir)
		require.NotNil(t, err, name)
		require.Equal(t, events.CodeResumeWorktreeGone, err.Code)
		_, err = root.Resume(t.Context(), Request{ID: events.NewID(), Dir: u.dir, Home: "/nonexistent"}, source)
		require.NotNil(t, err, name)
		require.Equal(t, events.CodeResumeWorktreeGone, err.Code)
	}
	// Refs that do not hold everything are no snapshot.
	source, _ := left(t, u, root)
	rec, err := root.Read(source.ID)
	requireNo(t, err)
	rec.Problem = events.Errorf(events.CodeWorktreeFailed, events.LayerWorkspace, "cut off")
	requireNo(t, root.Write(rec))
	lease, err := root.TryLease(source.ID)
	requireNo(t, err)
	_, err = root.Resume(t.Context(), Request{ID: events.NewID(), Dir: u.dir, Home: "/nonexistent"}, source.ID)
	require.NotNil(t, err)
	require.Equal(t, events.CodeResumeWorktreeGone, err.Code)
	require.Contains(t, err.Message, "not saved completely")
	lease.Unlock()
	require.Equal(t, source.ID, resumeTree(t, root, u, source.ID).TakenFrom, "the directory has everything")
	list, err := root.List()
	requireNo(t, err)
	require.Len(t, list, 2, "refusals leave nothing")
}

// Whatever step fails, nothing is left of the new tree, and the source's directory is
// where it was.
func TestResumeUndone(t *testing.T) {
	u := newUser(t)
	u.dirty()
	root := newRoot(t)
	source, files := left(t, u, root)
	refs := u.git("for-each-ref")
	t.Cleanup(func() { fault = nil })
	for busy, at := range map[bool][]string{
		false: {"taken over", "resumed record"},
		true:  {"rebuilt refs", "rebuilt git directory", "rebuilt files", "rebuilt baseline", "resumed record"},
	} {
		for _, at := range at {
			fault = func(step string) error {
				if step == at {
					return os.ErrDeadlineExceeded
				}
				return nil
			}
			var lease *Lock
			if busy {
				var err *events.Error
				lease, err = root.TryLease(source.ID)
				requireNo(t, err)
			}
			id := events.NewID()
			_, err := root.Resume(context.Background(), Request{ID: id, Dir: u.dir, Home: "/nonexistent"}, source.ID)
			lease.Unlock()
			require.NotNil(t, err, at)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, at)
			require.NoDirExists(t, root.Dir(id))
			have := listing(t, source.Path)
			delete(have, "built.log")
			require.Equal(t, files, have, at)
			require.Equal(t, refs, u.git("for-each-ref"), at)
		}
	}
	fault = nil
	tree := resumeTree(t, root, u, source.ID)
	require.NotEmpty(t, tree.TakenFrom)
	tree.Close()
	requireNo(t, root.Undo(t.Context(), tree.ID)) // nothing ran in it
	require.DirExists(t, source.Path)
}
