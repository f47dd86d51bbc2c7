package rundir

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestGates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subagents")
	r, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	gates, torn, err := r.Gates()
	require.NoError(t, err)
	require.Empty(t, gates)
	require.Empty(t, torn)
	require.NoError(t, r.RemoveGate("s", "p"), "none is no error")

	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	one := events.Gate{Schema: events.RecordSchema, Session: "s", Prompt: "p", At: at}
	whole := events.Gate{Schema: events.RecordSchema, Session: "../s", At: at}
	require.NoError(t, r.WriteGate(one))
	require.NoError(t, r.WriteGate(whole), "a session is no path")
	one.Lifted = true
	require.NoError(t, r.WriteGate(one), "it takes the place of the earlier one")

	dir := filepath.Join(path, gatesDir)
	st, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".half.json.tmp"), []byte("{"), 0o600))
	damaged := filepath.Join(dir, gateFile("s", "damaged"))
	require.NoError(t, os.WriteFile(damaged, []byte(`{"schema":1,`), 0o600))
	other := filepath.Join(dir, gateFile("s", "other"))
	require.NoError(t, os.WriteFile(other, []byte(`{"schema":1,"parent_session_id":"s","parent_prompt_id":"p","at":"2026-01-02T03:04:05Z"}`), 0o600))
	gates, torn, err = r.Gates()
	require.NoError(t, err)
	require.ElementsMatch(t, []events.Gate{one, whole}, gates)
	require.Len(t, torn, 2)
	for _, err := range torn {
		require.ErrorIs(t, err, ErrTorn)
	}
	ids, err := r.List()
	require.NoError(t, err)
	require.Empty(t, ids, "they are no subagents")

	require.NoError(t, r.RemoveGate("s", "p"))
	require.NoError(t, r.RemoveGate("s", "p"))
	gates, _, err = r.Gates()
	require.NoError(t, err)
	require.Equal(t, []events.Gate{whole}, gates)
}
