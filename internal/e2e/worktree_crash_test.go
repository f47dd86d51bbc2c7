package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// A coordinator may die while it makes or saves a working tree: the subagent runs
// once, in a whole tree, and all of its end is in the refs.
func TestWorktreeCrashPoints(t *testing.T) {
	asUsers(t, func(t *testing.T, outer *user) {
		for _, point := range crashpoint.Worktree {
			t.Run(string(point), func(t *testing.T) {
				u := newUser(t, outer.uid)
				u.bin = testkit.ProgramWithCrashpoints(t)
				u.repository(u.work)
				before := u.userState(u.work)
				dying := u.serve([]string{"HAYWARD_CRASHPOINT=" + string(point)})
				id := events.NewID()
				// The answer may be lost with the coordinator; what was accepted is not.
				u.run("spawn", "--detach", "--id", id, "--isolation", "worktree", "--", "sh", "-c",
					`test "$(cat tracked)" = 3 && echo run >> ran && git commit -qam inside`)
				require.True(t, u.eventually(dying.killedItself), "%s was not reached", point)
				snap := u.await(id)[0]
				require.Equal(t, "completed", snap["status"], "%v", snap)
				tree := snap["worktree"].(map[string]any)
				require.Nil(t, tree["problem"])
				require.Equal(t, true, tree["kept"])
				end := "refs/hayward/subagents/" + id
				require.Equal(t, "run", u.gitIn(u.work, "show", end+"/tree:ran"))
				require.Equal(t, "inside", u.gitIn(u.work, "log", "-1", "--format=%s", end+"/heads/main"))
				require.Equal(t, before, u.userState(u.work))
				u.gitIn(u.work, "fsck", "--strict")
				left, err := filepath.Glob(filepath.Join(u.home, "state/worktrees/*"))
				require.NoError(t, err)
				require.Equal(t, id, filepath.Base(strings.Join(left, " ")))
			})
		}
	})
}
