package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/diskspace"
)

// smallDisk mounts a file system of that many MiB.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", mib))
	if errors.Is(err, unix.EPERM) {
		t.Skipf("needs the right to mount: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}

// fill takes all but left bytes of the disk.
func (f *fixture) fill(t *testing.T, left uint64) {
	t.Helper()
	free, _, err := f.root.Free()
	require.NoError(t, err)
	require.Greater(t, free, left)
	fd, err := unix.Open(f.filler(), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(fd)) }()
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &st))
	require.NoError(t, unix.Fallocate(fd, 0, st.Size, int64(free-left)))
}

func (f *fixture) filler() string { return filepath.Join(f.dir, "filler") }

func TestReserve(t *testing.T) {
	f := open(t, smallDisk(t, 32))
	_, size, err := f.root.Free()
	require.NoError(t, err)
	reserve, rest := diskspace.Store(size)
	require.Less(t, rest, reserve)
	running := newSubagent()
	f.put(t, running)

	f.fill(t, reserve-1)
	refused := newSubagent()
	err = f.try(refused)
	require.True(t, events.HasCode(err, events.CodeStorageFull), "%v", err)
	require.NoDirExists(t, f.runFile(refused.spec.ID, ""))
	f.put(t, running.active())

	f.fill(t, rest/2)
	err = f.try(running.completed())
	require.True(t, events.HasCode(err, events.CodeStorageFull), "%v", err)
	require.NoError(t, f.bus.StoreHealth().Err(), "the server was not made to fill the disk")

	remove(t, f.filler())
	f.put(t, running)
	f.put(t, refused)
	f = f.restart(t)
	require.Equal(t, []coordinator.Stored{running.stored(), refused.stored()}, f.load(t).Records)
}

// When the server itself ran into the end of the disk, its streams refuse
// everything. The write in hand fails at once, and the first write after there
// is space again reopens them; nothing that was acknowledged is lost.
func TestServerOnAFullDisk(t *testing.T) {
	f := open(t, smallDisk(t, 32))
	running := newSubagent()
	f.put(t, running)
	f.put(t, running.active())
	f.fill(t, 0)

	// Past the check for space, as when somebody else fills the disk meanwhile.
	record := running.active().record
	record.StderrTail = string(make([]byte, events.MaxStderrTail))
	value, err := events.MarshalRecord(record)
	require.NoError(t, err)
	var revision uint64
	for range 100 { // the block in use has room for a few
		if revision, err = f.write(f.ctx, running.spec.ID, value, running.revision); err != nil {
			break
		}
		running.revision = revision
	}
	require.True(t, events.HasCode(err, events.CodeStorageFull), "%v", err)
	require.Error(t, f.bus.StoreHealth().Err())
	err = f.Publish(f.ctx, events.FeedEvent{SubagentID: running.spec.ID})
	require.True(t, events.HasCode(err, events.CodeStorageFull), "%v", err)
	err = f.try(running.completed())
	require.True(t, events.HasCode(err, events.CodeStorageFull), "%v", err)

	remove(t, f.filler())
	f.put(t, running)
	require.NoError(t, f.bus.StoreHealth().Err())
	other := newSubagent()
	f.put(t, other)
	require.NoError(t, f.Publish(f.ctx, events.FeedEvent{Seq: 1, SubagentID: other.spec.ID, State: events.StateQueued}))
	require.NotEmpty(t, f.logs.FilterMessage("reopen the store").All())
	require.NotEmpty(t, f.logs.FilterMessageSnippet("no space left").All(), "the server's own words are in the log")
	f = f.restart(t)
	l := f.load(t)
	require.Equal(t, []coordinator.Stored{running.stored(), other.stored()}, l.Records)
	require.Empty(t, l.Damaged)
}

func TestNoSpace(t *testing.T) {
	require.True(t, noSpace(errors.New("critical write error: write x: no space left on device")))
	require.False(t, noSpace(errors.New("context deadline exceeded")))
}
