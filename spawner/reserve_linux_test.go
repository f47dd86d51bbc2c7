package spawner

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// Reserved space is there before a byte is written, and given back at the end.
func TestReserve(t *testing.T) {
	root, err := rundir.Open(filepath.Join(t.TempDir(), "subagents"))
	require.NoError(t, err)
	defer root.Close()
	id := events.NewID()
	dir, err := root.Create(id)
	require.NoError(t, err)
	defer dir.Close()
	blocks := func(name string) (size, used int64) {
		info, err := os.Stat(filepath.Join(dir.Path(), name))
		require.NoError(t, err)
		return info.Size(), info.Sys().(*syscall.Stat_t).Blocks * 512
	}
	for name, size := range reserved {
		file, err := dir.OpenAppend(name)
		require.NoError(t, err)
		require.NoError(t, reserve(file, name))
		_, used := blocks(name)
		if used == 0 {
			t.Skip("needs a file system that reserves space")
		}
		require.GreaterOrEqual(t, used, size)
		_, err = file.WriteString("{}")
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	c := &child{dir: dir, log: zap.NewNop()}
	c.giveBack()
	for name := range reserved {
		size, used := blocks(name)
		require.EqualValues(t, 2, size)
		require.LessOrEqual(t, used, int64(4096))
	}
}
