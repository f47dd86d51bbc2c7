//go:build unix

package plan

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestRunHook(t *testing.T) {
	dir := t.TempDir()
	zero, three := 0, 3
	for _, c := range []struct {
		about string
		argv  []string
		want  HookResult
		says  string
	}{
		{about: "well", argv: []string{"sh", "-c", "echo $X; pwd"}, want: HookResult{ExitCode: &zero, Output: "from outside\n" + dir}, says: "exit 0"},
		{about: "exit", argv: []string{"sh", "-c", "echo no >&2; exit 3"}, want: HookResult{ExitCode: &three, Output: "no"}, says: "exit 3"},
		{about: "signal", argv: []string{"sh", "-c", "kill -9 $$"}, want: HookResult{Signal: "SIGKILL"}, says: "SIGKILL"},
		{
			about: "no program", argv: []string{dir + "/absent"},
			want: HookResult{Error: "fork/exec " + dir + "/absent: no such file or directory"}, says: "fork/exec " + dir + "/absent: no such file or directory",
		},
	} {
		t.Run(c.about, func(t *testing.T) {
			got := runHook(t.Context(), time.Minute, c.argv, dir, []string{"X=from outside", "PATH=" + os.Getenv("PATH")})
			got.DurationMS = 0
			c.want.Command = c.argv
			require.Equal(t, c.want, got)
			require.Equal(t, c.says, got.String())
			require.Equal(t, c.about != "well", got.Failed())
		})
	}
	long := runHook(t.Context(), time.Minute, []string{"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo end"}, dir, os.Environ())
	require.Len(t, long.Output, hookOutput-1)
	require.True(t, strings.HasSuffix(long.Output, "xend"))
}

// TestHookIsKilled at its deadline and at the end of the run's patience, with
// everything it started.
func TestHookIsKilled(t *testing.T) {
	dir := t.TempDir()
	argv := []string{"sh", "-c", "sleep 617 & echo $! > pid; wait"}
	h := runHook(t.Context(), 200*time.Millisecond, argv, dir, os.Environ())
	require.Equal(t, "killed: it took longer than 200ms", h.Error)
	require.Equal(t, "SIGKILL", h.Signal)
	require.True(t, h.Failed())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, "killed: the run was interrupted", runHook(ctx, time.Minute, argv, dir, os.Environ()).Error)
}

func TestHooksOfARun(t *testing.T) {
	dir := t.TempDir()
	text := `
name = "hooked"
on_done = 'echo "plan $HAYWARD_STATUS $HAYWARD_COMPLETED $HAYWARD_FAILED $HAYWARD_CANCELLED $HAYWARD_SKIPPED $(test -s "$HAYWARD_SUMMARY" && echo kept)" >> said'
[defaults]
on_done = 'echo "$HAYWARD_NAME $HAYWARD_ATTEMPT $HAYWARD_STATUS $HAYWARD_REASON $HAYWARD_EXIT_CODE $HAYWARD_OUTPUT $HAYWARD_PLAN" >> said-$HAYWARD_NAME; echo $HAYWARD_ID $HAYWARD_RUN > ids-$HAYWARD_NAME'
command = ["true"]
[[subagent]]
name = "good"
[[subagent]]
name = "bad"
[[subagent]]
name = "skipped"
needs = ["bad"]
[[subagent]]
name = "angry"
on_done = ["sh", "-c", "echo reason >&2; exit 4"]
`
	p, err := Parse("hooked.toml", dir, text)
	require.NoError(t, err)
	runs := Runs{Dir: filepath.Join(dir, "runs")}
	f := newFake(map[string]behavior{"bad": {exit: 2}})
	code, _, errs := commanded(t, Flags{Plan: p, Runs: runs}, f)
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "on_done of angry failed: exit 4\n    reason\n")
	said := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(b)
	}
	require.Equal(t, "plan failed 2 1 0 1 kept\n", said("said"))
	require.Equal(t, "good 1 completed  0 /state/good/stdout.log hooked\n", said("said-good"))
	require.Equal(t, "bad 1 failed exit 2 /state/bad/stdout.log hooked\n", said("said-bad"))
	require.NoFileExists(t, filepath.Join(dir, "said-skipped"))
	rec, err := runs.Last()
	require.NoError(t, err)
	require.Equal(t, f.child("good").spawn.ID+" "+rec.ID+"\n", said("ids-good"))
	s, finished, err := rec.Finished()
	require.NoError(t, err)
	require.True(t, finished)
	require.Equal(t, 0, *s.OnDone.ExitCode)
	require.Equal(t, 4, *s.Subagents[3].OnDone.ExitCode)

	// What completed has had its hook; the next attempt of what did not has its own.
	f.behaviors["bad"] = behavior{}
	code, _, errs = continuing(t, runs, f)
	require.Equal(t, ExitCompleted, code, errs)
	require.Equal(t, 1, strings.Count(said("said-good"), "\n"))
	require.Equal(t, "bad 1 failed exit 2 /state/bad/stdout.log hooked\nbad 2 completed  0 /state/bad/stdout.log hooked\n", said("said-bad"))
	require.Equal(t, "skipped 1 completed  0 /state/skipped/stdout.log hooked\n", said("said-skipped"))
	require.Contains(t, said("said"), "plan completed 4 0 0 0 kept\n")
}

// TestAHookThatFailsFailsTheRun, even if every subagent completed.
func TestAHookThatFailsFailsTheRun(t *testing.T) {
	for about, text := range map[string]string{
		"entry": entries("a") + "on_done = \"exit 5\"\n",
		"plan":  "on_done = \"exit 5\"\n" + entries("a"),
	} {
		p, err := Parse("p.toml", t.TempDir(), text)
		require.NoError(t, err)
		code, out, errs := commanded(t, Flags{Plan: p, JSON: true}, newFake(nil))
		require.Equal(t, ExitFailed, code, about)
		require.Contains(t, errs, "failed: exit 5\n")
		var s Summary
		require.NoError(t, events.DecodeRecord([]byte(out), &s))
		require.False(t, s.Success)
		require.Equal(t, 1, s.Counts.Completed)
	}
}

// TestOwedHooks: an end whose hook the last process did not live to see has it
// run by the next, whether that process knew the end or not.
func TestOwedHooks(t *testing.T) {
	dir := t.TempDir()
	p, err := Parse("p.toml", dir, "[defaults]\non_done = 'echo $HAYWARD_NAME $HAYWARD_STATUS >> said'\n"+entries("known", "unknown"))
	require.NoError(t, err)
	runs := Runs{Dir: filepath.Join(dir, "runs")}
	rec, err := runs.Create(p)
	require.NoError(t, err)
	f := newFake(nil)
	for _, name := range []string{"known", "unknown"} {
		_, err := f.Spawn(t.Context(), events.Spawn{ParentSessionID: rec.ID, ID: subagentID(rec.ID, name, 1), Name: name, Command: []string{"true"}})
		require.NoError(t, err)
		<-f.child(name).done
	}
	require.NoError(t, rec.Keep(Result{Name: "known", Entry: "known", Attempt: 1, Status: StateCompleted, SubagentID: subagentID(rec.ID, "known", 1)}))
	require.NoError(t, rec.Close())
	code, _, errs := continuing(t, runs, f)
	require.Equal(t, ExitCompleted, code, errs)
	b, err := os.ReadFile(filepath.Join(dir, "said"))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"known completed", "unknown completed"}, strings.Split(strings.TrimSpace(string(b)), "\n"))
	require.Len(t, f.order, 2)
	code, _, _ = continuing(t, runs, f)
	require.Equal(t, ExitCompleted, code)
	again, err := os.ReadFile(filepath.Join(dir, "said"))
	require.NoError(t, err)
	require.Equal(t, b, again)
}
