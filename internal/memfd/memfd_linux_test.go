package memfd

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestSealedBytes(t *testing.T) {
	f, err := SealedBytes("test", []byte("content"))
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "content", string(b), "it is read from its beginning")
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorIs(t, f.Truncate(0), unix.EPERM)
	require.ErrorIs(t, f.Truncate(100), unix.EPERM)
}

func TestSealedFailsWithItsWriter(t *testing.T) {
	broken := errors.New("broken")
	_, err := Sealed("test", func(*os.File) error { return broken })
	require.ErrorIs(t, err, broken)
}
