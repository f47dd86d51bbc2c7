package durable

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, content := range []string{"one", "two, longer", ""} {
		require.NoError(t, WriteFile(path, []byte(content)))
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(b))
	}
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())

	// What cannot be put in place leaves nothing behind.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "d", "full"), 0o700))
	require.Error(t, WriteFile(filepath.Join(dir, "d"), []byte("x")))
	require.Error(t, WriteFile(filepath.Join(dir, "missing", "f"), []byte("x")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}
