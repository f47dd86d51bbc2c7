package spawner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestInstalledIn(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(root, name) }
	program := func(name string) string {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		require.NoError(t, os.WriteFile(at(name), nil, 0o700))
		return at(name)
	}
	require.NoError(t, os.MkdirAll(at("home/bin"), 0o700))
	for name, target := range map[string]string{
		"npm":    program("lib/node_modules/@x/cli/bin/cli.js"),
		"single": program("share/single/1.0/single"),
		"homely": program("home/homely"),
		"gone":   at("nowhere"),
	} {
		require.NoError(t, os.Symlink(target, at("home/bin/"+name)))
	}
	program("home/bin/plain")
	for name, want := range map[string]string{
		"npm": at("lib/node_modules"), "single": at("share/single/1.0"),
		"homely": "", "gone": "", "plain": "", "missing": "", at("home/bin/npm"): "",
	} {
		req := events.Spawn{Command: []string{name}, Env: map[string]string{"PATH": "relative:" + at("home/bin"), "HOME": at("home")}}
		require.Equal(t, want, installedIn(req), name)
	}
	require.Empty(t, installedIn(events.Spawn{}))
}
