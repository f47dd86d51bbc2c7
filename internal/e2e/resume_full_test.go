package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// A conversation for which the disk has no room is refused with its own code and
// nothing of it stays; the source can be resumed once there is room.
func TestResumeOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	u := newUser(t, 0)
	state := filepath.Join(u.home, "state")
	require.NoError(t, os.Mkdir(state, 0o700))
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=48m,mode=0700"); errors.Is(err, unix.EPERM) {
		t.Skipf("needs the right to mount: %v", err)
	} else {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		require.Zero(t, u.run("shutdown", "--kill").code)
		// A process that is ending is no longer seen before its files are closed.
		require.True(t, u.eventually(func() bool { return unix.Unmount(state, 0) == nil }))
	})
	const size = 10 << 20
	long := filepath.Join(u.work, "long.md")
	require.NoError(t, os.WriteFile(long, []byte(strings.Repeat("words ", size/6)), 0o644))
	r := u.run("spawn", "--json", "--prompt", "@"+long, "--", "sh", "-c", "wc -c")
	require.Zero(t, r.code, r.stderr)
	source := r.object(t)["subagent_id"].(string)

	// Of what is free, leave less than the conversation takes.
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(state, &st))
	filler := filepath.Join(state, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, int64(st.Bavail)*st.Bsize-size*6/10), 0o600))
	r = u.run("resume", source, "--json", "--prompt", "more")
	failed := r.object(t)
	require.Equal(t, string(events.CodeResumeCopyFailed), at(t, failed, "error", "code"), r.stdout+r.stderr)
	require.Contains(t, at(t, failed, "error", "message"), "no space left")
	dir, err := os.ReadDir(u.runDir(failed["subagent_id"].(string)))
	require.NoError(t, err)
	for _, e := range dir {
		info, err := e.Info()
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(1<<20), e.Name())
	}

	require.NoError(t, os.Remove(filler))
	r = u.run("resume", source, "--json", "--prompt", "more")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "4\n", r.object(t)["output"])
}
