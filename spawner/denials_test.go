package spawner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/kernelaudit"
)

// What the kernel recorded confirms a hint, or gives one where nothing was printed.
func TestObserved(t *testing.T) {
	report := &events.SandboxReport{Active: true, Profile: "workspace", Writable: []string{"/ws"}, Denied: []string{"/ws/.env"}}
	denials := []kernelaudit.Denial{{Path: "/ws/.env"}, {Path: "/etc/x"}, {Path: "/ws/fine"}, {}}
	printed := &events.SandboxHint{Path: "/ws/.env", Operation: "read"}
	require.Equal(t, printed, observed(report, printed, nil))
	require.Nil(t, observed(report, nil, nil))
	require.Nil(t, observed(nil, nil, denials))
	got := observed(report, printed, denials)
	require.Equal(t, "/ws/.env", got.Path)
	require.True(t, got.Observed)
	got = observed(report, nil, denials)
	require.Equal(t, "/etc/x", got.Path)
	require.True(t, got.Observed)
	require.False(t, observed(report, printed, denials[1:]).Observed, "the kernel says nothing of it")
}
