package childbin

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	current, err := unpack(dir, []byte("current"))
	require.NoError(t, err)
	old, err := unpack(dir, []byte("old"))
	require.NoError(t, err)
	used, err := unpack(dir, []byte("used"))
	require.NoError(t, err)
	half := filepath.Join(dir, "."+Name+"-123")
	foreign := filepath.Join(dir, "notes")
	for _, path := range []string{half, foreign} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, strings.Repeat("ab", 32)), 0o700))

	running, err := os.Stat(used)
	require.NoError(t, err)
	inUse := func(info fs.FileInfo) bool { return os.SameFile(info, running) }
	removed, err := Sweep(dir, current, inUse)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{old, half}, removed)
	require.FileExists(t, current)
	require.FileExists(t, used)
	require.FileExists(t, foreign)

	removed, err = Sweep(dir, current, inUse)
	require.NoError(t, err)
	require.Empty(t, removed)
	_, err = Sweep(filepath.Join(dir, "none"), current, inUse)
	require.Error(t, err)
}
