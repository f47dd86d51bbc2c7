package spawner

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

func TestHostReserve(t *testing.T) {
	for name, c := range map[string]struct {
		room  room
		limit string
	}{
		"empty":                {room{pids: 100, maxPIDs: 32768, files: 20, maxFiles: 1024}, ""},
		"no bound":             {room{pids: 1 << 20, files: 1 << 20}, ""},
		"the last pid to give": {room{pids: 32768 - reservePIDs - pidsPerChild, maxPIDs: 32768}, ""},
		"one pid too many":     {room{pids: 32768 - reservePIDs - pidsPerChild + 1, maxPIDs: 32768}, "host_pids"},
		"fewer than reserved":  {room{pids: 1, maxPIDs: 500}, "host_pids"},
		"the last descriptor":  {room{files: 1024 - reserveFiles - filesPerChild, maxFiles: 1024}, ""},
		"one descriptor more":  {room{files: 1024 - reserveFiles - filesPerChild + 1, maxFiles: 1024}, "host_files"},
		"both":                 {room{pids: 900, maxPIDs: 1000, files: 900, maxFiles: 1000}, "host_pids"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.room.refusal("x")
			if c.limit == "" {
				require.Nil(t, err)
				return
			}
			require.Equal(t, events.CodeLimit, err.Code)
			require.Equal(t, c.limit, err.Details["limit"])
			require.NotEmpty(t, err.Remedy)
		})
	}
}

// What is read of the host follows what happens on it.
func TestHostRoom(t *testing.T) {
	before, err := hostRoom()
	require.NoError(t, err)
	require.Positive(t, before.pids)
	require.Positive(t, before.maxPIDs)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	if before.maxFiles != 0 {
		require.EqualValues(t, limit.Cur, before.maxFiles)
	}
	for range 20 {
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer f.Close()
	}
	after, err := hostRoom()
	require.NoError(t, err)
	require.GreaterOrEqual(t, after.files, before.files+20)
}

func TestTasks(t *testing.T) {
	n, err := tasks("7.20 7.15 10.61 3/428 3751\n")
	require.NoError(t, err)
	require.Equal(t, 428, n)
	for _, bad := range []string{"", "1 2 3 4 5", "1 2 3 4/x 5", "1 2 3/4"} {
		_, err := tasks(bad)
		require.Error(t, err, bad)
	}
}
