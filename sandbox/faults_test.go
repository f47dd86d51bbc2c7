package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// The faults of a file are the same here and when a coordinator tells them.
func TestFaultsOverTheWire(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sandbox.toml")
	require.NoError(t, os.WriteFile(file, []byte("[profiles.x]\n\nread-write = []\nextends = \"off\"\n"), 0o600))
	_, e := LoadProfiles(file, "")
	require.NotNil(t, e)
	here := Faults(e)
	require.Len(t, here, 2)
	require.Equal(t, 3, here[0].Line)
	told := events.Errorf(e.Code, e.Layer, "spawn: %s", e.Message)
	require.Equal(t, here, Faults(told))
	require.Equal(t, here, Faults(errors.Join(told)))
	require.Empty(t, Faults(errors.New("another")))
	require.Empty(t, Faults(events.Errorf(e.Code, e.Layer, "read the sandbox profiles: open x: no")))
}
