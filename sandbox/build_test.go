//go:build !linux || !cgo

package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/early"
)

// TestBuildWithoutConstructor holds for builds that have no way to confine.
func TestBuildWithoutConstructor(t *testing.T) {
	require.False(t, early.Confined())
	for _, profile := range []string{"", Workspace, Devbox, ReadOnly, Strict} {
		for _, bestEffort := range []bool{false, true} {
			p, e := Compile(Request{Profile: profile, BestEffort: bestEffort}, Probe())
			require.Nil(t, p)
			require.NotNil(t, e, profile)
			require.Equal(t, events.CodeSandboxUnavailable, e.Code)
			require.Contains(t, e.Remedy, "--sandbox off")
		}
	}
}
