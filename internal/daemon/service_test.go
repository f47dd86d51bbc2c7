package daemon

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	logged "go.uber.org/zap/zaptest/observer"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

// A spawn that cannot be checked now is not said to be wrong.
func TestUncheckedSpawnIsBusy(t *testing.T) {
	s := newService(nil, coordinator.New(coordinator.Config{}, coordinator.Deps{}), nil, nil, nil, zap.NewNop())
	for range maxResolving {
		require.Nil(t, beginResolving(s.resolving))
	}
	err := beginResolving(s.resolving)
	require.Equal(t, events.CodeBusy, err.Code)
	require.Equal(t, events.LayerCoordinator, err.Layer)
	require.Equal(t, strconv.Itoa(maxResolving), err.Details["depth"])
	<-s.resolving
	require.Nil(t, beginResolving(s.resolving))
}

// An acknowledgement that is too late for a daemon that leaves is not worth a
// warning; one that a daemon at work does not take is.
func TestLateAcknowledgement(t *testing.T) {
	core, said := logged.New(zap.InfoLevel)
	s := &service{coord: coordinator.New(coordinator.Config{Intake: 1}, coordinator.Deps{}), log: zap.New(core)}
	s.onAck("", "taken")
	require.Zero(t, said.Len())
	s.onAck("", "the intake is full")
	require.Equal(t, zap.WarnLevel, said.All()[0].Level)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, s.coord.Run(ended, coordinator.Restore{}))
	s.onAck("", "late")
	require.Equal(t, zap.InfoLevel, said.All()[1].Level)
}
