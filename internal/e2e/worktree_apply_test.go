package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// worked runs a script in a working tree of its own and returns the subagent's id.
func (u *user) worked(name, script string) string {
	u.t.Helper()
	r := u.run(wt("--name", name, "--", "sh", "-ec", script)...)
	require.Zero(u.t, r.code, "%s\n%s", r.stdout, r.stderr)
	return r.object(u.t)["subagent_id"].(string)
}

// read is a file of the workspace.
func (u *user) read(name string) string {
	u.t.Helper()
	b, err := os.ReadFile(filepath.Join(u.work, name))
	require.NoError(u.t, err)
	return string(b)
}

// TestWorktreeApply: of two that conflict the first is applied, the second reports
// the conflict and changes nothing; index, HEAD and branches stay as they were.
func TestWorktreeApply(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.repository(u.work)
		u.worked("one", `echo one > tracked; mkdir new; printf 'x\0' > new/binary; chmod 600 new/binary; ln -s tracked link; rm gone`)
		two := u.worked("two", `echo two > tracked; echo beside > beside`)
		none := u.worked("none", `cat tracked`)
		before := u.userState(u.work)

		listed := u.run("worktree", "ls")
		require.Contains(t, listed.stdout, two[28:])
		require.NotContains(t, listed.stdout, none[28:], "what changed nothing is gone already")
		require.Equal(t, "gone\nlink\nnew/binary\ntracked\n", u.run("worktree", "diff", "--name-only", "one").stdout)
		r := u.run("worktree", "apply", "one")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, "modified  tracked\n")
		want := u.userState(u.work)
		for name := range want {
			if strings.HasPrefix(name, ".git/") || name == "refs" {
				require.Equal(t, before[name], want[name], name)
			}
		}
		require.Equal(t, "one\n", u.read("tracked"))
		require.Equal(t, "x\x00", u.read("new/binary"))
		info, err := os.Stat(filepath.Join(u.work, "new/binary"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		require.NoFileExists(t, filepath.Join(u.work, "gone"))
		require.Contains(t, u.run("worktree", "apply", "one").stderr, "applied before")

		r = u.run("worktree", "apply", "two")
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stdout, "conflict  tracked: both changed the same lines")
		require.Equal(t, want, u.userState(u.work), "nothing is applied beside a conflict")

		r = u.run("worktree", "discard", "two")
		require.Equal(t, 125, r.code)
		r = u.run("worktree", "branch", two, "twos")
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, "two", u.gitIn(u.work, "show", "twos:tracked"))
		r = u.run("worktree", "gc")
		require.Zero(t, r.code, r.stdout+r.stderr)
		require.Equal(t, `{"worktrees":[]}`+"\n", u.run("worktree", "ls", "--json").stdout)
		require.Empty(t, u.gitIn(u.work, "for-each-ref", "refs/hayward"))
		u.gitIn(u.work, "fsck", "--strict")
	})
}

// TestWorktreeApplyIsKilled: an apply that is killed between any two of its steps is
// taken back or finished by the next.
func TestWorktreeApplyIsKilled(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.repository(u.work)
		id := u.worked("one", `echo one > tracked; mkdir new; echo n > new/file; rm gone`)
		before := u.userState(u.work)
		killed := *u
		killed.bin = testkit.ProgramWithCrashpoints(t)
		for _, point := range crashpoint.Apply {
			cmd := killed.command(t.Context(), "worktree", "apply", id)
			cmd.Env = append(cmd.Env, "HAYWARD_CRASHPOINT="+string(point))
			err := cmd.Run()
			require.ErrorContains(t, err, "signal: killed", point)
			if point == crashpoint.ApplyCommitted {
				continue // what comes next finishes it
			}
			r := u.run("worktree", "apply", "--dry-run", id)
			require.Zero(t, r.code, r.stderr)
			require.Equal(t, before, u.userState(u.work), point)
		}
		r := u.run("worktree", "apply", id)
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, "one\n", u.read("tracked"))
		require.Equal(t, "n\n", u.read("new/file"))
		entries, err := os.ReadDir(u.work)
		require.NoError(t, err)
		for _, e := range entries {
			require.False(t, strings.HasPrefix(e.Name(), ".hayward"), e.Name())
		}
		require.Contains(t, r.stderr, "applied before", "it was finished")
	})
}
