package spawner

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestUnknownTypeNamesTheKnown(t *testing.T) {
	_, err := Resolve(t.Context(), events.Spawn{SubagentType: "wizard", Command: []string{"true"}, Cwd: t.TempDir()}, nil, "")
	require.NotNil(t, err)
	require.Equal(t, events.CodeUnknownType, err.Code)
	require.Equal(t, events.LayerGate, err.Layer)
	require.Contains(t, err.Error(), "wizard")
	require.Contains(t, strings.Fields(err.Details["known"]), TypeCommand)
}
