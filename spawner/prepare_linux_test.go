package spawner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestOpenBelowFollowsNoLink(t *testing.T) {
	dir, victim := t.TempDir(), t.TempDir()
	below, err := openBelow(dir, "inputs")
	require.NoError(t, err)
	require.NoError(t, below.Close())

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(victim, link))
	_, err = openBelow(link, "inputs")
	require.Error(t, err, "the directory is a link")
	require.NoError(t, os.Symlink(victim, filepath.Join(dir, "other")))
	_, err = openBelow(dir, "other")
	require.ErrorIs(t, err, os.ErrExist)
	entries, err := os.ReadDir(victim)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// A directory that was swapped for a link after the spawn was accepted is not
// what was accepted.
func TestUnmoved(t *testing.T) {
	dir, victim := t.TempDir(), t.TempDir()
	work := filepath.Join(dir, "work")
	require.NoError(t, os.Mkdir(work, 0o700))
	s, err := Resolve(t.Context(), events.Spawn{Command: []string{"true"}, Cwd: work, Workspace: work}, nil, "")
	require.Nil(t, err)
	c := newChild(New(Config{}), events.Spec{ID: "x", Request: s})
	require.Nil(t, c.unmoved())
	require.NoError(t, os.Remove(work))
	require.NoError(t, os.Symlink(victim, work))
	err = c.unmoved()
	require.NotNil(t, err)
	require.Equal(t, events.CodeWorkspaceRefused, err.Code)

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(victim, link))
	s, err = Resolve(t.Context(), events.Spawn{Command: []string{"true"}, Cwd: link}, nil, "")
	require.Nil(t, err)
	require.Equal(t, victim, s.Cwd, "a link that was there is resolved at once")
}
