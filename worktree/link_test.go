package worktree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// swap puts a link in the place of a directory with tracked files.
func swap(t *testing.T, dir string) {
	require.NoError(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "sub2")))
	require.NoError(t, os.Symlink("sub2", filepath.Join(dir, "sub")))
}

func deepUser(t *testing.T) *user {
	u := newUser(t)
	u.write("sub/deep/d", "d\n")
	u.write("sub/e", "e\n")
	u.commit("begin")
	return u
}

// A directory that a subagent replaced by a link is saved and brought back as that.
func TestDirectoryBecomesALink(t *testing.T) {
	u := deepUser(t)
	root := newRoot(t)
	tree := create(t, root, u.dir)
	swap(t, tree.Path)
	want := listing(t, tree.Path)
	out := end(t, root, tree)
	require.Nil(t, out.Worktree.Problem)
	require.True(t, out.Worktree.Kept)
	_, err := root.Apply(testContext(t), tree.ID, ApplyOptions{})
	requireNo(t, err)
	require.Equal(t, want, listing(t, u.dir))
}

// One that the user replaced is carried.
func TestLinkInPlaceOfADirectoryIsCarried(t *testing.T) {
	u := deepUser(t)
	swap(t, u.dir)
	root := newRoot(t)
	tree := create(t, root, u.dir)
	require.Equal(t, listing(t, u.dir), listing(t, tree.Path))
	out := end(t, root, tree)
	require.Nil(t, out.Worktree.Problem)
	require.False(t, out.Worktree.Kept, "%v", out.Worktree.KeptFor)
}
