package plan

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

// dag draws a plan without cycles and how its subagents act.
func dag(t *rapid.T) (lines []string, b map[string]behavior) {
	n := rapid.IntRange(1, 25).Draw(t, "subagents")
	b = make(map[string]behavior)
	// The order in the file is not the order of the needs.
	order := rapid.Permutation(indexes(n)).Draw(t, "order")
	lines = make([]string, n)
	for i, place := range order {
		name := fmt.Sprintf("s%d", i)
		line := name + ":"
		for d := range i {
			if rapid.IntRange(0, 4).Draw(t, "edge") == 0 {
				line += fmt.Sprintf(" s%d", d)
			}
		}
		lines[place] = line
		act := behavior{lasts: time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			act.exit = 1
		case 1:
			act.refusals = []error{errLostBefore}
		case 2:
			act.refusals = []error{errLostAfter}
		case 3:
			act.refusals = []error{events.Errorf(events.CodeBusy, events.LayerCoordinator, "busy")}
		case 4:
			act.refusals = []error{events.Errorf(events.CodeCommandNotFound, events.LayerGate, "no")}
		}
		b[name] = act
	}
	return lines, b
}

func indexes(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// TestRandomGraphs: needs come before what needs them, no more than the limit
// is in flight, every subagent ends once, and with wait_all it was made if and
// only if all its needs completed. With fail_fast nothing starts after the first
// failure, and what it cut off says so.
func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lines, b := dag(rt)
		jobs := rapid.IntRange(1, 6).Draw(rt, "jobs")
		refused := make(map[string]bool)
		for name, act := range b {
			refused[name] = len(act.refusals) > 0 && events.HasCode(act.refusals[0], events.CodeCommandNotFound)
		}
		p, err := Parse("random.toml", "/plans", entries(lines...))
		require.NoError(rt, err)
		f := newFake(b)
		p.FailFast = rapid.Bool().Draw(rt, "fail_fast")
		ends := &endCounter{ends: make(map[string]int)}
		var s Summary
		synctest.Test(t, func(t *testing.T) {
			s, err = p.Run(t.Context(), f, Options{Jobs: jobs, Observer: ends})
		})
		require.NoError(rt, err)
		require.LessOrEqual(rt, f.most, jobs)
		status := make(map[string]State)
		for _, r := range s.Subagents {
			status[r.Name] = r.Status
			require.Equal(rt, 1, ends.ends[r.Name], r.Name)
		}
		for i, sub := range p.Subagents {
			ready := true
			require.LessOrEqual(rt, len(f.attempts(sub.Name)), 1, sub.Name)
			c := f.child(sub.Name)
			for _, need := range sub.Needs {
				ready = ready && status[need] == StateCompleted
				if c != nil {
					require.False(rt, f.child(need).ended.After(c.started), "%s before %s", sub.Name, need)
				}
			}
			if c != nil {
				require.True(rt, c.status.Terminal(), sub.Name)
			}
			cut := s.Subagents[i].Reason == events.ReasonFailFast
			if ends.firstFailure.IsZero() || !p.FailFast {
				require.False(rt, cut)
				require.Equal(rt, ready && !refused[sub.Name], c != nil, sub.Name)
				require.Equal(rt, !ready, status[sub.Name] == StateSkipped, sub.Name)
				continue
			}
			require.False(rt, c != nil && c.started.After(ends.firstFailure), "%s started after the first failure", sub.Name)
			if c == nil && !refused[sub.Name] {
				require.True(rt, cut || s.Subagents[i].Reason == events.ReasonDependency, sub.Name)
				require.Equal(rt, StateSkipped, status[sub.Name])
			}
		}
		require.Equal(rt, len(p.Subagents), s.Counts.Total)
		require.Equal(rt, s.Counts.Total, s.Counts.Completed+s.Counts.Failed+s.Counts.Cancelled+s.Counts.Skipped)
		require.Equal(rt, !ends.firstFailure.IsZero(), s.exitCode(err) == ExitFailed)
	})
}

type endCounter struct {
	ends         map[string]int
	firstFailure time.Time
}

func (e *endCounter) Begin(string, []Row) {}

func (e *endCounter) Changed(_ int, row Row) {
	if row.State.Ended() {
		e.ends[row.Name]++
		if row.State == StateFailed && e.firstFailure.IsZero() {
			e.firstFailure = time.Now()
		}
	}
}

func (e *endCounter) Interrupted(int, bool) {}

func (e *endCounter) FailedFast(string, int) {}

func (e *endCounter) HookFailed(string, HookResult) {}

// TestRandomCycles: a graph with an edge back is refused with a cycle in it that
// is one.
func TestRandomCycles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "length")
		lines := make([]string, n)
		for i := range n {
			lines[i] = fmt.Sprintf("s%d: s%d", i, (i+1)%n)
		}
		_, err := Parse("cycle.toml", "/plans", entries(lines...))
		var bad *Error
		require.ErrorAs(rt, err, &bad)
		require.Len(rt, bad.Faults, 1)
		want := "the needs form a cycle: "
		for i := range n {
			want += fmt.Sprintf("s%d -> ", i)
		}
		require.Equal(rt, want+"s0", bad.Faults[0].Message)
	})
}
