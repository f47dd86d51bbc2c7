package plan

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// entries writes a plan: "name", or "name: need need".
func entries(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		name, needs, _ := strings.Cut(l, ":")
		fmt.Fprintf(&b, "[[subagent]]\nname = %q\ncommand = [\"true\"]\n", name)
		if list := strings.Fields(needs); len(list) > 0 {
			fmt.Fprintf(&b, "needs = [\"%s\"]\n", strings.Join(list, `", "`))
		}
	}
	return b.String()
}

func statuses(s Summary) map[string]string {
	m := make(map[string]string)
	for _, r := range s.Subagents {
		m[r.Name] = outcomeText(r.Status, string(r.Reason))
	}
	return m
}

func TestSpawnRequest(t *testing.T) {
	p := parse(t, `
name = "the plan"
[[subagent]]
name = "a.b"
command = ["make", "x"]
prompt = "text"
description = "d"
cwd = "c"
workspace = "/w"
add_dirs = ["/x"]
sandbox = "strict"
max_runtime = "3s"
env = { A = "plan", C = "plan" }
pass_env = ["B", "C", "ABSENT"]
labels = { k = "v" }
[[subagent]]
name = "z"
shell = "cat"
needs = ["a.b"]
`)
	synctest.Test(t, func(t *testing.T) {
		f := newFake(nil)
		outside := map[string]string{"B": "outside", "C": "outside"}
		s, err := p.Run(t.Context(), f, Options{
			RunID: "run-1", Env: map[string]string{"PATH": "/bin", "A": "base"},
			LookupEnv: func(k string) (string, bool) { v, ok := outside[k]; return v, ok },
		})
		require.NoError(t, err)
		require.True(t, s.Success)
		first := f.child("a.b").spawn
		ms := int64(3000)
		require.Equal(t, events.Spawn{
			ParentSessionID: "run-1", ParentPromptID: "run-1", ID: first.ID, Name: "a.b",
			Prompt: "text", Description: "d", Command: []string{"make", "x"}, Cwd: "/plans/c",
			Workspace: "/w", AddDirs: []string{"/x"}, Sandbox: "strict", RunInBackground: true, MaxRuntimeMS: &ms,
			Env:    map[string]string{"PATH": "/bin", "A": "plan", "B": "outside", "C": "plan"},
			Labels: map[string]string{"run": "run-1", "plan": "the plan", "k": "v"},
		}, first)
		last := f.child("z").spawn
		require.Equal(t, map[string]string{"a_b": first.ID}, last.Inputs)
		require.Equal(t, map[string]string{"PATH": "/bin", "A": "base"}, last.Env)
		require.True(t, events.ValidID(first.ID))
		for _, q := range f.queries {
			require.True(t, q.MarkRead)
			require.Nil(t, q.Validate())
		}
		require.Equal(t, "run-1", s.RunID)
		require.Equal(t, Counts{Total: 2, Completed: 2}, s.Counts)
	})
}

func TestNoEdgeMeansParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {lasts: time.Minute}, "b": {lasts: time.Minute}, "c": {lasts: time.Minute}})
		start := time.Now()
		s, err := parse(t, entries("a", "b", "c: a")).Run(t.Context(), f, Options{})
		require.NoError(t, err)
		require.True(t, s.Success)
		require.Equal(t, 2*time.Minute, time.Since(start))
		require.Equal(t, 2, f.most)
		require.EqualValues(t, 60_000, s.Subagents[0].DurationMS)
		require.EqualValues(t, 120_000, s.DurationMS)
	})
}

func TestJobsBoundsWhatIsInFlight(t *testing.T) {
	for _, c := range []struct{ plan, option, want int }{{0, 2, 2}, {3, 0, 3}, {3, 1, 1}, {0, 0, 6}} {
		synctest.Test(t, func(t *testing.T) {
			b := make(map[string]behavior)
			for _, n := range []string{"a", "b", "c", "d", "e", "f"} {
				b[n] = behavior{lasts: time.Second}
			}
			f := newFake(b)
			text := entries("a", "b", "c", "d", "e", "f")
			if c.plan > 0 {
				text = fmt.Sprintf("jobs = %d\n", c.plan) + text
			}
			s, err := parse(t, text).Run(t.Context(), f, Options{Jobs: c.option})
			require.NoError(t, err)
			require.True(t, s.Success)
			require.Equal(t, c.want, f.most)
			if c.want == 1 {
				require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, f.order)
			}
		})
	}
}

func TestFailedNeedSkipsWhatDependsOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"bad": {exit: 3, lasts: time.Second}, "slow": {lasts: time.Hour}})
		s, err := parse(t, entries("bad", "child: bad", "grandchild: child slow", "slow", "after: slow")).Run(t.Context(), f, Options{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{
			"bad": "failed", "child": "skipped(dependency)", "grandchild": "skipped(dependency)",
			"slow": "completed", "after": "completed",
		}, statuses(s))
		require.Equal(t, "bad", s.Subagents[1].BlockedBy)
		require.Equal(t, "child", s.Subagents[2].BlockedBy)
		require.Empty(t, s.Subagents[1].SubagentID)
		require.Equal(t, 3, *s.Subagents[0].ExitCode)
		require.Nil(t, s.Subagents[1].ExitCode)
		require.Equal(t, Counts{Total: 5, Completed: 2, Failed: 1, Skipped: 2}, s.Counts)
		require.False(t, s.Success)
		require.Equal(t, ExitFailed, s.exitCode(err))
		require.Nil(t, f.child("child"))
	})
}

func TestRefusals(t *testing.T) {
	refuse := func(c events.Code, l events.ErrorLayer) behavior {
		return behavior{refusals: []error{events.Errorf(c, l, "no")}}
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{
			"start":   refuse(events.CodeCommandNotFound, events.LayerGate),
			"sandbox": refuse(events.CodeSandboxUnavailable, events.LayerSandbox),
			"depth":   refuse(events.CodeDepthExceeded, events.LayerGate),
			"gone":    refuse(events.CodePromptCancelled, events.LayerGate),
		})
		s, err := parse(t, entries("start", "sandbox", "depth", "gone", "fine")).Run(t.Context(), f, Options{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{
			"start": "failed(start)", "sandbox": "failed(sandbox)", "depth": "failed(limit)",
			"gone": "cancelled(prompt)", "fine": "completed",
		}, statuses(s))
		for _, r := range s.Subagents[:4] {
			require.Empty(t, r.SubagentID)
			require.Equal(t, "no", r.Error.Message)
			require.Equal(t, 1, f.requests[r.Name])
		}
	})
}

// TestLostReplies: whatever reply is lost, a subagent is made once and its end
// is learnt.
func TestLostReplies(t *testing.T) {
	busy := events.Errorf(events.CodeBusy, events.LayerCoordinator, "busy")
	full := events.Errorf(events.CodeLimit, events.LayerCoordinator, "queue full")
	for about, c := range map[string]struct {
		refusals, queries []error
		requests          int
	}{
		"before":          {refusals: []error{errLostBefore, errLostBefore}, requests: 3},
		"after":           {refusals: []error{errLostAfter}, requests: 2},
		"before and full": {refusals: []error{errLostBefore, full, busy}, requests: 4},
		"restart":         {refusals: []error{events.Errorf(events.CodeShuttingDown, events.LayerCoordinator, "bye")}, requests: 2},
		"query":           {queries: []error{errLostBefore, events.Errorf(events.CodeTimeout, events.LayerCoordinator, "late"), busy}, requests: 1},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(map[string]behavior{"a": {lasts: 5 * time.Minute, refusals: c.refusals}})
				f.queryErrors = c.queries
				s, err := parse(t, entries("a", "b: a")).Run(t.Context(), f, Options{})
				require.NoError(t, err)
				require.True(t, s.Success, statuses(s))
				require.Equal(t, c.requests, f.requests["a"])
				require.Equal(t, []string{"a", "b"}, f.order)
			})
		})
	}
}

// TestRefusedAfterALostReply: a refusal that follows a lost reply does not tell
// whether the first request was taken, so the coordinator is asked.
func TestRefusedAfterALostReply(t *testing.T) {
	no := events.Errorf(events.CodeStorageFull, events.LayerCoordinator, "no")
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {refusals: []error{errLostBefore, no}}})
		s, err := parse(t, entries("a")).Run(t.Context(), f, Options{})
		require.NoError(t, err)
		require.Equal(t, "failed(start)", statuses(s)["a"])
		require.Empty(t, s.Subagents[0].SubagentID)
		require.NotEmpty(t, f.queries)
	})
}

func TestCoordinatorGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {never: true}})
		time.AfterFunc(time.Minute, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.dead = true
		})
		start := time.Now()
		s, err := parse(t, entries("a", "b: a", "c")).Run(t.Context(), f, Options{Jobs: 1})
		require.ErrorIs(t, err, ErrLost)
		require.ErrorIs(t, err, errDead)
		require.ErrorContains(t, err, s.Subagents[0].SubagentID)
		require.Less(t, time.Since(start), 10*time.Minute)
		require.Equal(t, map[string]string{"a": "failed", "b": "skipped(dependency)", "c": "skipped"}, statuses(s))
		require.Equal(t, events.CodeUnreachable, s.Subagents[2].Error.Code)
		require.Equal(t, ExitOwnError, s.exitCode(err))
	})
}

func TestCoordinatorForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {never: true}})
		f.forgets = true
		s, err := parse(t, entries("a")).Run(t.Context(), f, Options{})
		require.ErrorIs(t, err, ErrLost)
		require.Equal(t, StateFailed, s.Subagents[0].Status)
		require.Equal(t, events.CodeUnknownID, s.Subagents[0].Error.Code)
		require.NotEmpty(t, s.Subagents[0].SubagentID)
	})
}

// TestCancelledFromOutside: somebody cancels one subagent; what needs it is
// skipped and the rest goes on.
func TestCancelledFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {never: true}})
		time.AfterFunc(time.Minute, func() {
			c := f.child("a")
			f.mu.Lock()
			defer f.mu.Unlock()
			f.endIn(c, 0, events.StatusCancelled, events.ReasonParent)
		})
		s, err := parse(t, entries("a", "b: a", "c")).Run(t.Context(), f, Options{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": "cancelled(parent)", "b": "skipped(dependency)", "c": "completed"}, statuses(s))
		require.Equal(t, ExitFailed, s.exitCode(err))
	})
}

// recorder keeps what an observer is told.
type recorder struct {
	rows  []Row
	steps []string
	said  []string
}

func (r *recorder) Begin(_ string, rows []Row) { r.rows = rows }

func (r *recorder) Changed(i int, row Row) {
	if row.State != r.rows[i].State {
		r.steps = append(r.steps, row.Name+" "+string(row.State))
	}
	r.rows[i] = row
}

func (r *recorder) Interrupted(left int, kill bool) {
	r.said = append(r.said, interruptLine(left, kill))
}

func (r *recorder) FailedFast(name string, left int) {
	r.said = append(r.said, failFastLine(name, left))
}

func (r *recorder) HookFailed(name string, h HookResult) {
	r.said = append(r.said, hookLines(name, h)...)
}

func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {lasts: time.Second}, "b": {lasts: time.Second, exit: 1}})
		r := &recorder{}
		_, err := parse(t, entries("a", "b: a", "c: b")).Run(t.Context(), f, Options{Observer: r})
		require.NoError(t, err)
		require.Equal(t, []string{
			"a queued", "a running", "a completed", "b queued", "b running", "b failed", "c skipped",
		}, r.steps)
		require.Equal(t, "line of a", r.rows[0].LastLine)
		require.Equal(t, time.Second, r.rows[0].Duration)
		require.Equal(t, "needs b", r.rows[2].why())
		require.Equal(t, "exit 1", r.rows[1].why())
	})
}

// TestManyInFlight: polls are paged, and one plan does not hand over everything.
func TestManyInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := make([]string, maxInFlight+50)
		b := make(map[string]behavior)
		for i := range lines {
			lines[i] = fmt.Sprintf("n%d", i)
			b[lines[i]] = behavior{lasts: 10 * time.Second}
		}
		f := newFake(b)
		s, err := parse(t, entries(lines...)).Run(t.Context(), f, Options{Observer: &recorder{}})
		require.NoError(t, err)
		require.True(t, s.Success)
		require.Equal(t, maxInFlight, f.most)
		for _, q := range f.queries {
			require.Nil(t, q.Validate())
		}
	})
}
