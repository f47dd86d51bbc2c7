package worktree

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// smallDisk is a file system of its own.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options+",mode=0700"); errors.Is(err, unix.EPERM) {
		t.Skipf("needs the right to mount: %v", err)
	} else {
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// committed is a user's repository in a directory, with a file of so many bytes.
func committed(t *testing.T, dir string, size int) *user {
	t.Helper()
	u := &user{t, filepath.Join(dir, "project")}
	require.NoError(t, os.Mkdir(u.dir, 0o755))
	u.git("init", "-q", "-b", "main")
	u.git("config", "user.name", "A User")
	u.git("config", "user.email", "user@example.com")
	u.write("file", strings.Repeat("x", size))
	u.commit("one")
	return u
}

func TestLimits(t *testing.T) {
	u := committed(t, t.TempDir(), 100_000)
	root := newRoot(t)
	try := func(l Limits) *events.Error {
		tree, err := root.Create(t.Context(), Request{ID: events.NewID(), Dir: u.dir, Home: "/nonexistent", Limits: l})
		if err == nil {
			tree.Close()
		}
		return err
	}
	requireNo(t, try(Limits{MaxCount: 1, MaxTotal: 150_000}))
	before := gitState(t, u.dir)
	for _, c := range []struct {
		limits Limits
		names  string
	}{{Limits{MaxCount: 1}, "worktree.max_count"}, {Limits{MaxTotal: 200_000}, "worktree.max_total"}} {
		err := try(c.limits)
		require.NotNil(t, err)
		require.Equal(t, events.CodeLimit, err.Code)
		require.ErrorContains(t, err, c.names)
		require.NotEmpty(t, err.Remedy)
	}
	require.Equal(t, before, gitState(t, u.dir), "what is refused leaves nothing in the repository")
	requireNo(t, try(Limits{MaxCount: 2, MaxTotal: 400_000}))
	ids, err := root.List()
	requireNo(t, err)
	require.Len(t, ids, 2)
}

// Where the trees' disk has no room for one, none is begun.
func TestNoRoomForATree(t *testing.T) {
	disk := smallDisk(t, "size=2m")
	u := committed(t, t.TempDir(), 3<<20)
	before := gitState(t, u.dir)
	root, err := Open(filepath.Join(disk, "trees"))
	requireNo(t, err)
	_, err = root.Create(t.Context(), Request{ID: events.NewID(), Dir: u.dir, Home: "/nonexistent"})
	require.NotNil(t, err)
	require.Equal(t, events.CodeStorageFull, err.Code)
	require.Contains(t, err.Remedy, "gc")
	ids, err := root.List()
	requireNo(t, err)
	require.Empty(t, ids)
	require.Equal(t, before, gitState(t, u.dir))
}

// A repository on another file system than the trees works as any other. Where its
// disk has no room for what a subagent left, the tree stays as it is, and is saved
// once there is.
func TestRepositoryOnAnotherFileSystem(t *testing.T) {
	disk := smallDisk(t, "size=16m")
	u := committed(t, disk, 1000)
	u.write("dirty", "uncommitted")
	root := newRoot(t)

	tree := create(t, root, u.dir)
	require.Equal(t, listing(t, u.dir), listing(t, tree.Path))
	inside(t, tree).write("file", "changed")
	out := end(t, root, tree)
	require.Equal(t, 1, out.Changes.Files)
	require.Contains(t, restored(t, u, EndRef(tree.ID, RefTree))["file"], "changed")

	noise := make([]byte, 4<<20) // nothing that git could make small
	_, err := rand.Read(noise)
	require.NoError(t, err)
	tree = create(t, root, u.dir)
	inside(t, tree).write("big", string(noise))
	filler := filepath.Join(disk, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 12<<20), 0o600))
	out = end(t, root, tree)
	require.NotNil(t, out.Worktree.Problem)
	require.Equal(t, events.CodeStorageFull, out.Worktree.Problem.Code, "%v", out.Worktree.Problem)
	require.True(t, out.Worktree.Kept)
	require.FileExists(t, filepath.Join(tree.Path, "big"))

	require.NoError(t, os.Remove(filler))
	again, failure := root.Snapshot(t.Context(), tree.ID)
	requireNo(t, failure)
	require.Equal(t, 1, again.Changes.Files)
	require.Len(t, restored(t, u, EndRef(tree.ID, RefTree))["big"], len("-rw-r--r-- ")+4<<20)
}
