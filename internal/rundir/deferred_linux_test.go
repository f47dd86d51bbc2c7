package rundir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

func TestDeferredSync(t *testing.T) {
	strict := openRoot(t)
	require.NoError(t, strict.Sync(), "there is nothing to sync where nothing is deferred")

	r := strict.Deferred()
	require.NoError(t, r.Sync(), "nothing was written")
	d := create(t, r)
	require.Equal(t, map[string][]string{d.ID(): nil}, r.late.files, "a directory alone is synced as well")
	require.NoError(t, d.WriteSpec(events.Spec{Schema: 1, ID: d.ID(), Run: 1}))
	require.NoError(t, d.WriteRecord(events.Record{ID: d.ID(), Process: &events.Process{}}))
	require.NoError(t, d.WriteResult(events.Record{ID: d.ID()}))
	require.Equal(t, map[string][]string{d.ID(): {SpecFile, ResultFile}}, r.late.files)
	_, err := d.ReadSpec()
	require.NoError(t, err, "everybody sees it before it is synced")

	gone := create(t, r)
	require.NoError(t, r.Remove(gone.ID()))
	var more []*Dir
	for range 2*syncBatch + 1 { // more than one batch
		more = append(more, create(t, r))
	}
	require.NoError(t, more[0].WriteSpec(events.Spec{Schema: 1, ID: more[0].ID(), Run: 1}))
	require.NoError(t, os.Remove(filepath.Join(more[0].Path(), SpecFile)))
	require.NoError(t, r.Sync(), "what is gone needs nothing")
	require.Empty(t, r.late.files)

	// What cannot be opened is named, and is tried again.
	require.NoError(t, d.WriteSpec(events.Spec{Schema: 1, ID: d.ID(), Run: 1}))
	path := filepath.Join(d.Path(), SpecFile)
	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o600))
	require.ErrorContains(t, r.Sync(), SpecFile)
	require.Equal(t, map[string][]string{d.ID(): {SpecFile}}, r.late.files)
	require.NoError(t, os.Remove(path))
	require.NoError(t, d.WriteSpec(events.Spec{Schema: 1, ID: d.ID(), Run: 1}))
	require.NoError(t, r.Sync())
	require.Empty(t, r.late.files)
}
