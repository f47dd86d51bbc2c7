package tempdir

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A claimed directory stays, also for a second claim; one whose owner is gone goes
// with the next claim of its prefix, and nothing else does.
func TestClaim(t *testing.T) {
	root := t.TempDir()
	other := filepath.Join(root, "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, os.Symlink(other, filepath.Join(root, "exec-link")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "exec-file"), nil, 0o600))

	first, err := Claim(root, "exec-")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(first.Path(), "file"), nil, 0o600))
	second, err := Claim(root, "exec-")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(first.Path(), "file"))

	// What the end of a process does to its claim.
	require.NoError(t, syscall.Flock(int(first.lock.Fd()), syscall.LOCK_UN))
	third, err := Claim(root, "exec-")
	require.NoError(t, err)
	require.NoDirExists(t, first.Path())
	require.NoError(t, first.lock.Close())
	require.DirExists(t, second.Path())
	require.NoError(t, second.Remove())
	require.NoError(t, third.Remove())
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Len(t, left, 3)
	require.DirExists(t, other)
	_, err = Claim(filepath.Join(root, "missing"), "exec-")
	require.ErrorIs(t, err, os.ErrNotExist)
}
