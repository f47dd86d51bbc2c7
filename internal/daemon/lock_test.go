package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// A lock that a living process holds is refused at once; one whose holder is
// gone and that a descriptor still keeps is waited for.
func TestLockOutlivesItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lockState(t.Context(), path)
	require.NoError(t, err)
	_, err = lockState(t.Context(), path)
	require.True(t, events.HasCode(err, events.CodeStoreConflict), "%v", err)
	require.ErrorContains(t, err, strconv.Itoa(os.Getpid()))

	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	require.ErrorIs(t, unix.Kill(gone.Process.Pid, 0), unix.ESRCH)
	require.NoError(t, first.Truncate(0))
	_, err = first.WriteAt([]byte(strconv.Itoa(gone.Process.Pid)+"\n"), 0)
	require.NoError(t, err)
	type result struct {
		f   *os.File
		err error
	}
	second := make(chan result, 1)
	go func() {
		f, err := lockState(t.Context(), path)
		second <- result{f, err}
	}()
	require.NoError(t, first.Close())
	r := <-second
	require.NoError(t, r.err)
	require.NoError(t, r.f.Close())
}
