package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/cgroup"
)

// hungry keeps all it reads: there is no line in it.
const hungry = `echo begun; head -c 300M /dev/zero | tail`

// A tree that uses more memory than it may is ended and says so; where no limit
// can be set a spawn that asks for one is refused.
func TestMemoryLimit(t *testing.T) {
	if _, err := cgroup.Find("memory"); err != nil {
		t.Skipf("needs a writable memory cgroup: %v", err)
	}
	asUsers(t, func(t *testing.T, u *user) {
		for _, profile := range []string{"workspace", "off"} {
			t.Run(profile, func(t *testing.T) {
				id := events.NewID()
				r := u.run("spawn", "--json", "--id", id, "--sandbox", profile, "--max-memory", "64M", "--", "sh", "-c", hungry)
				require.NotZero(t, r.code)
				o := r.object(t)
				if u.uid != os.Getuid() { // the groups are not theirs
					require.Equal(t, "unsupported", errorCode(t, o))
					return
				}
				require.Equal(t, "failed", o["status"], r.stdout)
				require.Equal(t, "limit", o["reason"])
				require.Equal(t, "limit", errorCode(t, o))
				require.Equal(t, "begun\n", o["output"])
				require.Empty(t, cgroupsOf(t, id))

				r = u.run("spawn", "--sandbox", profile, "--max-memory", "64M", "--", "echo", "enough")
				require.Zero(t, r.code, r.stderr)
			})
		}
	})
}

// The limit of serve holds for spawns that name none, and after a restart.
func TestMemoryLimitOfTheCoordinator(t *testing.T) {
	if _, err := cgroup.Find("memory"); err != nil {
		t.Skipf("needs a writable memory cgroup: %v", err)
	}
	if os.Getuid() != 0 {
		t.Skip("needs root: the memory cgroup belongs to it")
	}
	u := newUser(t, 0)
	c := u.serve(nil, "--max-memory", "64M")
	gate := u.fifo("gate")
	id := u.detach("--", "sh", "-c", "cat gate; "+hungry)
	free := u.detach("--max-memory", "0", "--", "sh", "-c", "head -c 100M /dev/zero | tail | wc -c")
	require.True(t, u.eventually(func() bool { return u.snapshot(id)["status"] == "running" }))
	require.Equal(t, []string{"completed"}, statuses(u.await(free)))
	c.kill()
	u.serve(nil)
	feed(t, gate, "whole\n")
	snap := u.await(id)[0]
	require.Equal(t, "limit", snap["reason"], "%v", snap)
	u.requireNothingLeft(id, free)
}

// cgroupsOf finds the control groups of a subagent.
func cgroupsOf(t *testing.T, id string) []string {
	t.Helper()
	var found []string
	for _, controller := range []string{cgroup.Unified, "memory", "pids"} {
		if p, err := cgroup.Find(controller); err == nil {
			if _, err := os.Stat(filepath.Join(p.Dir, "hayward-"+id)); err == nil {
				found = append(found, p.Path("hayward-"+id))
			}
		}
	}
	return found
}

func errorCode(t *testing.T, o map[string]any) any {
	t.Helper()
	said, ok := o["error"].(map[string]any)
	require.True(t, ok, "%v", o)
	return said["code"]
}
