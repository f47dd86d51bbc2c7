package spawner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/deadlines"
)

// A root that another user made first stops no spawn: one other root is used to
// the end, and the log says so once.
func TestForeignTempRoot(t *testing.T) {
	for name, obstruct := range map[string]func(t *testing.T, dir string){
		"link": func(t *testing.T, dir string) { require.NoError(t, os.Symlink(t.TempDir(), dir)) },
		"foreign directory": func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("needs root to make a directory of another user")
			}
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Chown(dir, 1, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			configured := filepath.Join(t.TempDir(), "root")
			obstruct(t, configured)
			core, logged := observer.New(zap.WarnLevel)
			s := New(Config{TempRoot: configured, Deadlines: deadlines.Default(), Log: zap.New(core)})
			a, b := newChild(s, events.Spec{ID: "a"}), newChild(s, events.Spec{ID: "b"})
			require.Nil(t, a.makeTempDir())
			require.NoError(t, os.Remove(configured))
			require.Nil(t, b.makeTempDir())
			root := filepath.Dir(a.tempDir)
			require.NotEqual(t, configured, root)
			require.Equal(t, filepath.Dir(configured), filepath.Dir(root))
			require.Equal(t, filepath.Join(root, "b"), b.tempDir, "it is used to the end")
			require.DirExists(t, b.tempDir)
			require.Equal(t, 1, logged.Len())
			require.Equal(t, map[string]any{"dir": configured, "used": root}, logged.All()[0].ContextMap())

			require.NoError(t, os.Remove(a.tempDir))
			s.Close()
			require.DirExists(t, b.tempDir, "its child goes on")
			require.NoError(t, os.Remove(b.tempDir))
			s.leaveTempRoot()
			require.NoDirExists(t, root)
		})
	}
}
