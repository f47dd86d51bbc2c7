package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// configure writes a file of the user's configuration.
func (u *user) configure(name, text string) string {
	u.t.Helper()
	dir := filepath.Join(u.home, ".config", "hayward")
	require.NoError(u.t, os.MkdirAll(dir, 0o755))
	file := filepath.Join(dir, name)
	require.NoError(u.t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

// What is configured reaches the daemon and the subagents, each value with its
// origin. The environment of the client that started the daemon does not reach
// the requests of others.
func TestConfiguration(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		bad := u.configure("config.toml", "[limits]\nper_session = \"many\"\n")
		for _, args := range [][]string{{"spawn", "--", "true"}, {"ps"}} { // ps starts a daemon, which says why it cannot
			r := u.run(args...)
			require.Equal(t, 2, r.code, r.stderr)
			require.Contains(t, r.stderr, bad+":2: limits.per_session: is a string and should be a whole number")
		}

		file := u.configure("config.toml", "[limits]\nper_session = 3\n[deadlines]\ngrace = \"4s\"\nmax_runtime = \"20m\"\n[sandbox]\nprofile = \"off\"\n")
		plain := u.env
		u.env = append(u.env, "HAYWARD_MAX_RUNTIME=7m", "HAYWARD_SANDBOX=workspace")
		require.Zero(t, u.run("ps").code)
		u.env = plain

		daemon := u.doctor()
		limits, origins := daemon["limits"].(map[string]any), daemon["origins"].(map[string]any)
		require.EqualValues(t, 3, limits["per_session"])
		require.Equal(t, file+":2", origins["per_session"])
		require.EqualValues(t, 4000, limits["grace_ms"])
		require.Equal(t, file+":4", origins["grace_ms"])
		require.Equal(t, "default", origins["total"])

		o := u.run("spawn", "--json", "--", "true").object(t)
		require.Equal(t, "off", o["sandbox"].(map[string]any)["profile"])
		record := u.run("inspect", "--json", o["subagent_id"].(string)).object(t)["record"].(map[string]any)
		require.EqualValues(t, 20*60*1000, record["max_runtime_ms"], "the daemon's default, not its environment")

		pin := u.configure("requirements.toml", "[sandbox]\nprofile = \"workspace\"\n")
		r := u.run("spawn", "--json", "--sandbox", "off", "--", "true")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stderr, "--sandbox off is not used: sandbox.profile is workspace, pinned by "+pin+":2")
		require.Equal(t, "workspace", r.object(t)["sandbox"].(map[string]any)["profile"])
	})
}
