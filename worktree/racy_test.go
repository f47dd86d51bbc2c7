package worktree

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A file that is changed within the second in which the tree was made, and keeps
// its size, is saved, although git compares times by the second and takes an index
// that is younger than the file for the truth.
func TestChangeWithinTheSecond(t *testing.T) {
	seconds := func(path string) int64 {
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(path, &st))
		return st.Ctim.Sec
	}
	for range 10 {
		u := newUser(t)
		u.write("version", "1\n")
		u.commit("one")
		root := newRoot(t)
		tree := create(t, root, u.dir)
		path := filepath.Join(tree.Path, "version")
		made := seconds(path)
		st, err := os.Stat(path)
		require.NoError(t, err)
		inside(t, tree).write("version", "2\n")
		require.NoError(t, os.Chtimes(path, time.Time{}, st.ModTime()))
		if seconds(path) != made {
			continue // the second was over: another try
		}
		// The index that git is given has to be of a later one.
		time.Sleep(time.Until(time.Unix(made+1, int64(50*time.Millisecond))))
		out := end(t, root, tree)
		require.Equal(t, 1, out.Changes.Files)
		require.Contains(t, restored(t, u, EndRef(tree.ID, RefTree))["version"], "2\n")
		return
	}
	t.Fatal("the machine was too slow for a change within a second, ten times")
}
