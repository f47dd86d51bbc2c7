package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// boundPIDs puts a coordinator, and with it what it starts, into a cgroup with a
// limit far below that of the machine. The caller removes it.
func boundPIDs(t *testing.T, pid, limit int) (cgroup string) {
	t.Helper()
	dir, err := os.MkdirTemp("/sys/fs/cgroup/pids", "hayward-test-")
	if err != nil {
		t.Skipf("needs a writable pids cgroup: %v", err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.Itoa(limit)), 0))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	return dir
}

// A fork bomb under the default profile leaves the coordinator and its other
// children working, and all of it ends.
func TestForkBomb(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the bomb is bounded from outside as well")
	}
	asUsers(t, func(t *testing.T, u *user) {
		// After the user's own clean-up, which empties it, the cgroup goes.
		var cgroup string
		t.Cleanup(func() {
			if cgroup != "" {
				require.NoError(t, os.Remove(cgroup))
			}
		})
		u = newUser(t, u.uid)
		c := u.serve(nil)
		cgroup = boundPIDs(t, c.cmd.Process.Pid, 900)

		const limit = 300 + 512 // the first 300 pids are given once only
		r := u.run("spawn", "--", "cat", "/proc/sys/kernel/pid_max")
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, fmt.Sprintln(limit), r.stdout, "no bomb without its limit")
		gate := u.fifo("gate")
		other := u.detach("--", "sh", "-c", "echo begun; cat gate")
		// It bursts only where the limit is in force.
		bomb := u.detach("--", "sh", "-c", fmt.Sprintf(
			`[ "$(cat /proc/sys/kernel/pid_max)" = %d ] || exit 9; : > lit; b() { b 2>/dev/null | b 2>/dev/null & }; b 2>/dev/null; while :; do sleep 643; done`, limit))
		full := func() bool {
			b, err := os.ReadFile(filepath.Join(cgroup, "pids.current"))
			require.NoError(t, err)
			n, err := strconv.Atoi(strings.TrimSpace(string(b)))
			require.NoError(t, err)
			return n > 150
		}
		require.True(t, u.eventually(full), "%v", u.snapshot(bomb))

		r = u.run("spawn", "--", "echo", "alive")
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, "alive\n", r.stdout)
		feed(t, gate, "whole\n")
		snap := u.await(other)[0]
		require.Equal(t, "completed", snap["status"])
		require.Equal(t, "begun\nwhole\n", snap["output"])

		o := u.run("cancel", "--json", "--kill", bomb).object(t)
		require.Equal(t, "cancelled", list(t, o, "results")[0]["outcome"])
		require.Empty(t, u.subagentProcesses(), "processes are left when the reply arrives")
		u.requireNothingLeft(bomb, other)
	})
}

// What cannot be killed is draining, not cancelled, until it is gone.
func TestUnkillableIsDraining(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: a frozen cgroup holds a process against SIGKILL")
	}
	freezer, err := os.MkdirTemp("/sys/fs/cgroup/freezer", "hayward-test-")
	if err != nil {
		t.Skipf("needs a writable freezer cgroup: %v", err)
	}
	state := func(s string) {
		require.NoError(t, os.WriteFile(filepath.Join(freezer, "freezer.state"), []byte(s), 0))
	}
	t.Cleanup(func() {
		state("THAWED")
		require.NoError(t, os.Remove(freezer))
	})
	u := newUser(t, 0)
	u.serve(nil)
	id := u.detach("--", "sleep", "644")
	require.True(t, u.eventually(func() bool { return u.running("sleep\x00644") == 1 }))
	for _, pid := range u.matching("sleep\x00644") {
		require.NoError(t, os.WriteFile(filepath.Join(freezer, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	}
	state("FROZEN")
	require.True(t, u.eventually(func() bool {
		b, err := os.ReadFile(filepath.Join(freezer, "freezer.state"))
		require.NoError(t, err)
		return string(b) == "FROZEN\n"
	}))
	for range 2 {
		r := u.run("cancel", "--json", "--kill", "--timeout", "500ms", id)
		require.Equal(t, 124, r.code, r.stderr)
		require.Equal(t, "draining", list(t, r.object(t), "results")[0]["outcome"])
		require.NotContains(t, []any{"cancelled", "failed", "completed"}, u.snapshot(id)["status"])
		require.Equal(t, 1, u.running("sleep\x00644"))
	}
	state("THAWED")
	snap := u.await(id)[0]
	require.Equal(t, "cancelled", snap["status"])
	require.Zero(t, u.running("sleep\x00644"))
	u.requireNothingLeft(id)
}
