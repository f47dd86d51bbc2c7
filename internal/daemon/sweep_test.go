package daemon

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

func TestExecuting(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	own, err := os.Stat(exe)
	require.NoError(t, err)
	other, err := os.Stat("/bin/sh")
	require.NoError(t, err)
	record := func(state events.State, pid int) []coordinator.Stored {
		return []coordinator.Stored{{Record: events.Record{State: state, Process: &events.Process{PID: pid}}}}
	}
	live := executing(record(events.StateActive, os.Getpid()))
	require.True(t, live(own))
	require.False(t, live(other))
	require.False(t, executing(record(events.StateCompleted, os.Getpid()))(own), "it has ended")
	require.False(t, executing(record(events.StateActive, 1<<22+1))(own), "it is gone")
	require.False(t, executing(nil)(own))
}
