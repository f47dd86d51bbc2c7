package tempdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMakeRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	require.NoError(t, MakeRoot(dir))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.NoError(t, MakeRoot(dir), "it is there already")
	st, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	require.ErrorContains(t, MakeRoot(link), "is not a directory of this user")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 1, 1))
		require.ErrorContains(t, MakeRoot(dir), "is not a directory of this user")
	}
	root, err := Root()
	require.NoError(t, err)
	require.Equal(t, "/tmp", filepath.Dir(root))
}
