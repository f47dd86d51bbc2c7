//go:build unix

package diskspace

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReserves(t *testing.T) {
	for _, c := range []struct{ size, output, reserve, rest uint64 }{
		{1 << 40, 64 << 20, 64 << 20, 1 << 20},
		{2000 << 20, 64 << 20, 40 << 20, 1 << 20},
		{100 << 20, 4 << 20, 2 << 20, 1 << 20},
		{10_000, 400, 200, 100},
		{0, 0, 0, 0},
	} {
		reserve, rest := Store(c.size)
		require.InDelta(t, c.reserve, reserve, float64(c.reserve)/50)
		require.Equal(t, min(c.rest, reserve/2), rest)
		require.InDelta(t, c.output, Output(c.size), float64(c.output)/50)
	}
}

func TestFree(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	free, size, err := Free(int(dir.Fd()))
	require.NoError(t, err)
	require.Positive(t, size)
	require.LessOrEqual(t, free, size)
	_, _, err = Free(-1)
	require.Error(t, err)
}
