package worktree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a tree as spawns get it holds at the end arrives in the user's files, and
// the directory is removed because nothing is lost with it.
func TestApplyAfterARealEnd(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		u := newUser(t, "--object-format="+format)
		u.dirty()
		u.git("status")
		sacred := u.sacred()
		root := newRoot(t)
		tree := create(t, root, u.dir)
		in := inside(t, tree)
		in.git("checkout", "-q", "-b", "topic")
		in.write("committed", "c\n")
		in.git("add", "committed")
		in.git("commit", "-q", "-m", "inside")
		work(t, in)
		want := listing(t, tree.Path)
		out := end(t, root, tree)
		require.Nil(t, out.Worktree.Problem)

		r, err := root.Apply(testContext(t), tree.ID, ApplyOptions{})
		requireNo(t, err)
		require.Empty(t, r.Conflicts)
		got := listing(t, u.dir)
		for name, is := range want {
			require.Equal(t, is, got[name], name)
		}
		require.Equal(t, sacred, u.sacred())
		require.True(t, r.Removed, r.Kept)
		require.NoDirExists(t, tree.Path)

		got2 := collected(t, root, GCOptions{})[tree.ID]
		require.Equal(t, GCApplied, got2.Class)
		require.False(t, got2.Refs, "its commit is on no branch of the user's")
		require.Contains(t, got2.Why, "1 commit of its own")
		_, err = root.Branch(testContext(t), tree.ID, "kept")
		requireNo(t, err)
		require.True(t, collected(t, root, GCOptions{})[tree.ID].Refs)
		require.Empty(t, u.git("for-each-ref", "refs/hayward"))
		require.NoDirExists(t, root.Dir(tree.ID))
		require.Equal(t, "inside", u.git("log", "-1", "--format=%s", "kept~1"))
		u.git("fsck", "--strict")
	}
}

// An end that differs in nothing writes no refs; what keeps its directory is seen
// all the same.
func TestRealEndsThatChangedNothing(t *testing.T) {
	u := newUser(t)
	u.dirty()
	u.write(".gitignore", "*.o\n")
	root := newRoot(t)

	ignored := create(t, root, u.dir)
	inside(t, ignored).write("x.o", "built\n")
	require.True(t, end(t, root, ignored).Worktree.Kept)
	staged := create(t, root, u.dir)
	inside(t, staged).git("add", "-A")
	require.True(t, end(t, root, staged).Worktree.Kept)
	dropped := create(t, root, u.dir)
	inside(t, dropped).git("commit", "-q", "-m", "dropped")
	inside(t, dropped).git("reset", "-q", "--soft", "HEAD~1")
	end(t, root, dropped)

	got := collected(t, root, GCOptions{})
	require.Contains(t, got[ignored.ID].Why, "1 file that only its directory holds, such as x.o")
	require.False(t, got[ignored.ID].Directory)
	require.Equal(t, GCChanges, got[staged.ID].Class)
	require.Contains(t, got[dropped.ID].Why, "1 commit that only its directory holds")
	files, err := root.DiffFiles(testContext(t), ignored.ID)
	requireNo(t, err)
	require.Empty(t, files)
	require.True(t, collected(t, root, GCOptions{Ignored: true})[ignored.ID].Directory)
	require.NoDirExists(t, root.Dir(ignored.ID))
}

func TestCutOffMakingIsCollected(t *testing.T) {
	u := newUser(t)
	u.write("file", "f\n")
	u.commit("begin")
	root := newRoot(t)
	tree := create(t, root, u.dir)
	rec, err := root.Read(tree.ID)
	requireNo(t, err)
	rec.State = StateMaking
	requireNo(t, root.Write(rec))
	for _, dry := range []bool{true, false} {
		got := collected(t, root, GCOptions{DryRun: dry})[tree.ID]
		require.Equal(t, GCLive, got.Class, "its maker holds the lease")
	}
	tree.Close()
	require.Equal(t, GCIncomplete, collected(t, root, GCOptions{})[tree.ID].Class)
	require.NoDirExists(t, root.Dir(tree.ID))
	require.Empty(t, u.git("for-each-ref", "refs/hayward"))
}

// A snapshot of a tree that lives is what a diff shows.
func TestDiffWhileItRuns(t *testing.T) {
	u := newUser(t)
	u.write("file", "f\n")
	u.commit("begin")
	root := newRoot(t)
	tree := create(t, root, u.dir)
	defer tree.Close()
	in := inside(t, tree)
	in.write("new", "n\n")
	_, err := root.Snapshot(testContext(t), tree.ID)
	requireNo(t, err)
	files, err := root.DiffFiles(testContext(t), tree.ID)
	requireNo(t, err)
	require.Len(t, files, 1)
	require.Equal(t, "new", files[0].Path)

	// What was undone since is not in the next one.
	require.NoError(t, os.Remove(filepath.Join(in.dir, "new")))
	_, err = root.Snapshot(testContext(t), tree.ID)
	requireNo(t, err)
	files, err = root.DiffFiles(testContext(t), tree.ID)
	requireNo(t, err)
	require.Empty(t, files)
}
