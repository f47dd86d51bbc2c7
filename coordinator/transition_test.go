package coordinator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// reach takes a new world through one row of the table and returns the id that
// passed it.
var reach = map[Transition]func(w *world) string{
	{"", events.StateQueued, CauseAccepted}: func(w *world) string {
		w.request("spawn", spawnOf("a", "s"))
		return idOf("a")
	},
	{events.StateQueued, events.StatePending, CauseAdmitted}: func(w *world) string {
		w.request("spawn", spawnOf("a", "s"))
		return idOf("a")
	},
	{events.StateQueued, events.StateCompleted, CauseWithdrawn}: func(w *world) string {
		w.request("first", spawnOf("a", "s"))
		w.request("second", spawnOf("b", "s"))
		w.request("cancel", events.Cancel{Target: events.CancelTarget{IDs: []string{idOf("b")}}})
		return idOf("b")
	},
	{events.StateQueued, events.StateCompleted, CauseLost}: func(w *world) string {
		w.request("first", background(spawnOf("a", "s")))
		w.request("second", background(spawnOf("b", "s")))
		w.ackAll()
		b := w.stored[idOf("b")]
		b.Spec = nil
		w.stored[idOf("b")] = b
		w.boot()
		return idOf("b")
	},
	{events.StatePending, events.StateActive, CauseStarted}: func(w *world) string {
		w.request("spawn", spawnOf("a", "s"))
		w.run(idOf("a"))
		return idOf("a")
	},
	{events.StatePending, events.StateCompleted, CauseWithdrawn}: func(w *world) string {
		w.request("spawn", spawnOf("a", "s"))
		w.request("cancel", events.Cancel{Target: events.CancelTarget{IDs: []string{idOf("a")}}})
		return idOf("a")
	},
	{events.StatePending, events.StateCompleted, CauseEnded}: func(w *world) string {
		w.request("spawn", spawnOf("a", "s"))
		w.ackAll()
		w.end(idOf("a"), events.End{Status: events.StatusFailed, Reason: events.ReasonSandbox})
		return idOf("a")
	},
	{events.StatePending, events.StateCompleted, CauseLost}: func(w *world) string {
		w.request("spawn", spawnOf("a", "s"))
		w.ackAll()
		a := w.stored[idOf("a")]
		a.Spec = nil
		w.stored[idOf("a")] = a
		w.boot()
		return idOf("a")
	},
	{events.StateActive, events.StateCompleted, CauseEnded}: func(w *world) string {
		w.request("spawn", spawnOf("a", "s"))
		w.run(idOf("a"))
		w.end(idOf("a"), completed())
		return idOf("a")
	},
}

// TestTransitionsAreReached takes every row of the table in a world of its own
// and finds both its states, in order, on the feed.
func TestTransitionsAreReached(t *testing.T) {
	require.Len(t, reach, len(Transitions))
	for _, row := range Transitions {
		t.Run(string(row.From)+" to "+string(row.To)+" by "+string(row.Cause), func(t *testing.T) {
			scenario := reach[row]
			require.NotNil(t, scenario)
			w := newWorld(t, Config{Limits: Limits{PerSession: 1}})
			id := scenario(w)
			w.ackAll()
			states := []events.State{""}
			for _, e := range w.feed[id] {
				states = append(states, e.State)
			}
			require.Contains(t, pairs(states), [2]events.State{row.From, row.To})
		})
	}
}

func pairs(states []events.State) (out [][2]events.State) {
	for i := 1; i < len(states); i++ {
		out = append(out, [2]events.State{states[i-1], states[i]})
	}
	return out
}

// TestTransitionsNotListedDoNotHappen tries every other triple.
func TestTransitionsNotListedDoNotHappen(t *testing.T) {
	states := []events.State{events.StateQueued, events.StatePending, events.StateActive, events.StateCompleted}
	causes := []Cause{CauseAccepted, CauseAdmitted, CauseStarted, CauseEnded, CauseWithdrawn, CauseLost}
	tried := 0
	for _, from := range states {
		for _, to := range states {
			for _, why := range causes {
				if legal(Transition{from, to, why}) {
					continue
				}
				s := NewState(Config{}, "t")
				e := s.enter(&Stored{Record: events.Record{ID: idOf("a"), State: from, Status: events.StatusRunning}, Spec: &events.Spec{}})
				require.False(t, s.move(e, to, events.StatusRunning, why), "%s to %s by %s", from, to, why)
				require.Equal(t, from, e.rec.State)
				tried++
			}
		}
	}
	require.Equal(t, len(states)*len(states)*len(causes)-(len(Transitions)-1), tried)
}

// TestCompletedIsSticky tells an ended subagent everything that could move it.
func TestCompletedIsSticky(t *testing.T) {
	w := newWorld(t, Config{})
	id := idOf("a")
	w.request("spawn", spawnOf("a", "s"))
	w.run(id)
	w.end(id, completed())
	w.ackAll()
	want := w.stored[id].Record

	w.fork(id)
	w.apply(Started{ID: id, Run: 1})
	w.end(id, events.End{Status: events.StatusFailed, Reason: events.ReasonCrash})
	w.apply(Ended{ID: id, Run: 2, End: completed()})
	w.apply(Ended{ID: idOf("nobody"), Run: 1, End: completed()})
	w.advance(100 * 24 * 3600 * 1e9)
	require.Empty(t, w.writing)
	require.Equal(t, want, w.stored[id].Record)
	require.EqualValues(t, 5, w.state.late)
}
