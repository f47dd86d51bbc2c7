package tempdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMakeRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	for range 2 { // it is there already the second time
		made, err := MakeRoot(dir)
		require.NoError(t, err)
		require.Equal(t, dir, made)
		require.Equal(t, os.FileMode(0o700), mode(t, dir))
		require.NoError(t, os.Chmod(dir, 0o777))
	}
	root, err := Root()
	require.NoError(t, err)
	require.Equal(t, "/tmp", filepath.Dir(root))
	_, err = MakeRoot(filepath.Join(dir, "missing", "root"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What another user put in the way is left alone and blocks nothing.
func TestMakeRootBesideWhatIsInTheWay(t *testing.T) {
	for name, obstruct := range map[string]func(t *testing.T, dir string){
		"link": func(t *testing.T, dir string) { require.NoError(t, os.Symlink(t.TempDir(), dir)) },
		"file": func(t *testing.T, dir string) { require.NoError(t, os.WriteFile(dir, nil, 0o600)) },
		"foreign directory": func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("needs root to make a directory of another user")
			}
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Chown(dir, 1, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "root")
			obstruct(t, dir)
			before, err := os.Lstat(dir)
			require.NoError(t, err)
			made, err := MakeRoot(dir)
			require.NoError(t, err)
			require.Equal(t, filepath.Dir(dir), filepath.Dir(made))
			require.Regexp(t, `^root-\d+$`, filepath.Base(made))
			require.True(t, Own(made))
			require.Equal(t, os.FileMode(0o700), mode(t, made))
			after, err := os.Lstat(dir)
			require.NoError(t, err)
			require.Equal(t, before, after)
			again, err := MakeRoot(made)
			require.NoError(t, err)
			require.Equal(t, made, again)
			require.Equal(t, []string{dir, made}, Roots(dir))
		})
	}
}

func mode(t *testing.T, dir string) os.FileMode {
	t.Helper()
	st, err := os.Stat(dir)
	require.NoError(t, err)
	return st.Mode().Perm()
}
