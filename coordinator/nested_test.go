package coordinator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// What is given out has the form that is asked for, and little else has.
func TestValidToken(t *testing.T) {
	s := NewState(Config{}, events.NewID())
	for range 40 {
		require.True(t, ValidToken(s.mintToken()))
	}
	id := events.NewID()
	for _, bad := range []string{"", "-", "1", id, id + "-", id + "-+1", id + "--1", id + "-1.1", id + "-zzzzzzzzzzzzzzzz", "x-1", id[1:] + "-1"} {
		require.False(t, ValidToken(bad), bad)
	}
}

// The refusal names the spawn, if that has an id, and what its spawner may.
func TestCheckSpawns(t *testing.T) {
	req := events.Spawn{ID: events.NewID(), SubagentType: "Worker"}
	require.Nil(t, CheckSpawns(events.SpawnsOf([]string{"worker"}), "p", req))
	require.Nil(t, CheckSpawns(events.SpawnsOf([]string{"command"}), "p", events.Spawn{}))
	err := CheckSpawns(events.SpawnsOf([]string{"lead"}), "p", req)
	require.Equal(t, events.CodeSpawnNotAllowed, err.Code)
	require.Equal(t, "lead", err.Details["may_spawn"])
	require.Equal(t, "spawn "+req.ID+": subagent p may not spawn type Worker", err.Message)
	err = CheckSpawns(nil, "p", events.Spawn{})
	require.Equal(t, "spawn: subagent p may not spawn type command", err.Message)
}
