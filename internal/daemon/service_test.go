package daemon

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

// A spawn that cannot be checked now is not said to be wrong.
func TestUncheckedSpawnIsBusy(t *testing.T) {
	s := newService(nil, coordinator.New(coordinator.Config{}, coordinator.Deps{}), nil, nil, nil, zap.NewNop())
	for range maxResolving {
		require.Nil(t, s.beginResolving())
	}
	err := s.beginResolving()
	require.Equal(t, events.CodeBusy, err.Code)
	require.Equal(t, events.LayerCoordinator, err.Layer)
	require.Equal(t, strconv.Itoa(maxResolving), err.Details["depth"])
	<-s.resolving
	require.Nil(t, s.beginResolving())
}
