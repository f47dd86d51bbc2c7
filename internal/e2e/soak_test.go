package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/proc"
)

const (
	// soakVariable asks for that many lifecycles instead of those of every test run.
	soakVariable = "HAYWARD_SOAK"
	soakDefault  = 240
	// soakRounds is how many loads the lifecycles are split into. After soakWarm of
	// them every pool and cache has its size and retention removes what is older:
	// what grows from there on grows without end.
	soakRounds, soakWarm = 12, 4
	soakClients          = 4
	// The bounds of the growth from there to the end.
	soakThreads, soakFiles, soakGoroutines = 8, 16, 32
	soakMemoryKiB                          = 256 << 10
	// soakFeedKiB bounds what a lifecycle may leave on the disk for good, its events in
	// the feed, which is bounded by its age and number; soakDiskKiB bounds the growth of
	// all the rest: blocks of the records' stream are emptied once they are full.
	soakFeedKiB, soakDiskKiB = 4, 96 << 10
)

// soakSample is the state of a coordinator between two loads.
type soakSample struct {
	memoryKiB                    int64
	threads, files, goroutines   int
	diskKiB, recordsKiB, feedKiB int64
	runs                         int // run directories
}

// Thousands of lifecycles of all kinds in one coordinator: memory, threads, files,
// goroutines, processes and disk stay what they are.
func TestSoak(t *testing.T) {
	lifecycles := soakDefault
	if v := os.Getenv(soakVariable); v != "" {
		var err error
		lifecycles, err = strconv.Atoi(v)
		require.NoError(t, err)
	}
	each := lifecycles / soakRounds
	u := newUser(t, os.Getuid())
	// A loaded machine or disk is not what this is about. Each session keeps as many
	// ends as two rounds bring it.
	c := u.serve(nil, "--put-timeout", "1m", "--start-timeout", "2m", "--keep-finished", strconv.Itoa(2*each/soakClients))
	asked := u.dial()
	var warm, last soakSample
	began := time.Now()
	for round := range soakRounds {
		args := []string{"load", "--json", "--children", strconv.Itoa(each), "--clients", strconv.Itoa(soakClients), "--session", "soak",
			"--fail", "5", "--crash", "5", "--fork", "5", "--output", "5", "--cancel-storm", "1", "--timeout", "30m"}
		r := finish(t, u.command(t.Context(), args...))
		var o loadReport
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &o), r.stderr)
		require.Zero(t, r.code, "%q\n%s", o.Faults, r.stderr)
		require.Zero(t, o.Lost+o.Duplicated+o.Wrong+o.Left)
		require.Empty(t, u.subagentProcesses())
		last = u.soakSample(asked, c.cmd.Process.Pid)
		done := (round + 1) * each
		t.Logf("%6d lifecycles, %4.0f s, %5.1f a second: %s", done, time.Since(began).Seconds(), o.PerSecond, last)
		if round+1 == soakWarm {
			warm = last
		}
	}
	since := (soakRounds - soakWarm) * each
	t.Logf("growth over the last %d: %+d KiB of memory, %+d threads, %+d files, %+d goroutines, %+d KiB on disk",
		since, last.memoryKiB-warm.memoryKiB, last.threads-warm.threads, last.files-warm.files, last.goroutines-warm.goroutines, last.diskKiB-warm.diskKiB)
	require.LessOrEqual(t, last.threads, warm.threads+soakThreads)
	require.LessOrEqual(t, last.files, warm.files+soakFiles)
	require.LessOrEqual(t, last.goroutines, warm.goroutines+soakGoroutines)
	require.LessOrEqual(t, last.memoryKiB, warm.memoryKiB+soakMemoryKiB)
	require.LessOrEqual(t, last.runs, 2*each+soakClients)
	require.LessOrEqual(t, last.feedKiB, warm.feedKiB+int64(since)*soakFeedKiB)
	require.LessOrEqual(t, last.diskKiB-last.feedKiB, warm.diskKiB-warm.feedKiB+soakDiskKiB)
}

func (s soakSample) String() string {
	return fmt.Sprintf("%d KiB, %d threads, %d files, %d goroutines; %d run directories, disk %d KiB, of it records %d and feed %d",
		s.memoryKiB, s.threads, s.files, s.goroutines, s.runs, s.diskKiB, s.recordsKiB, s.feedKiB)
}

// soakSample waits until retention has removed what it removes, and looks.
func (u *user) soakSample(client *client.Client, pid int) soakSample {
	u.t.Helper()
	state := filepath.Join(u.home, "state")
	runs := filepath.Join(state, "subagents")
	u.eventually(func() bool {
		before := u.entries(runs)
		time.Sleep(50 * time.Millisecond) // it removes in the background, and says nothing of it
		return u.entries(runs) == before
	})
	status, err := client.Status(u.t.Context())
	require.NoError(u.t, err)
	// Syncs open files for a moment.
	files := u.entries(fmt.Sprintf("/proc/%d/fd", pid))
	for range 10 {
		time.Sleep(10 * time.Millisecond)
		files = min(files, u.entries(fmt.Sprintf("/proc/%d/fd", pid)))
	}
	memory, err := proc.PSS(pid)
	require.NoError(u.t, err)
	streams := filepath.Join(state, "jetstream/jetstream/$G/streams")
	return soakSample{
		memoryKiB: memory, goroutines: status.Goroutines, runs: u.entries(runs),
		threads: u.entries(fmt.Sprintf("/proc/%d/task", pid)), files: files,
		diskKiB: u.disk(state), recordsKiB: u.disk(filepath.Join(streams, "KV_"+events.Bucket)), feedKiB: u.disk(filepath.Join(streams, events.FeedStream)),
	}
}

// entries counts those of a directory.
func (u *user) entries(dir string) int {
	u.t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(u.t, err)
	return len(all)
}

// disk returns how many KiB a directory takes. What goes meanwhile takes nothing.
func (u *user) disk(dir string) (kib int64) {
	u.t.Helper()
	require.NoError(u.t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Lstat(path, &st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		kib += st.Blocks / 2
		return err
	}))
	return kib
}
