package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/deadlines"
)

func TestGatesAreBounded(t *testing.T) {
	s := NewState(Config{}, "t")
	for i := range maxGates + 10 {
		s.setGate(promptKey{"s", fmt.Sprint(i)}, false)
	}
	s.setGate(promptKey{"s", "20"}, false)
	require.Len(t, s.gates.byKey, maxGates)
	require.Len(t, s.gates.order, maxGates)
	require.False(t, s.gated("s", "9"), "the oldest went")
	require.Contains(t, s.out, ForgetGate{"s", "9"})
	require.True(t, s.gated("s", "10"))
	require.True(t, s.gated("s", fmt.Sprint(maxGates+9)))
	require.False(t, s.gated("s", ""))
}

func TestZeroIsTheDefaultAndNegativeIsOne(t *testing.T) {
	c := Config{Limits: Limits{PerSession: -1, Total: 7}}.withDefaults()
	require.Equal(t, Limits{PerSession: 1, Total: 7, QueueLength: defaultQueueLength, Depth: defaultDepth, AtLimit: QueueAtLimit}, c.Limits)
	require.Equal(t, deadlines.Default().Run, c.MaxRuntime)
	require.Equal(t, c.Limits, New(c, Deps{}).Limits())
	require.NotNil(t, c.Now)
}

// TestLowerLimitsAfterRestart restores more than the limits let run: nothing is
// ended for that, and nothing admitted before there is room.
func TestLowerLimitsAfterRestart(t *testing.T) {
	w := newWorld(t, Config{Limits: Limits{PerSession: 3, Total: 3}})
	for _, name := range []string{"a", "b", "c", "d"} {
		w.request(name, background(spawnOf(name, "s")))
	}
	for _, name := range []string{"a", "b", "c"} {
		w.run(idOf(name))
	}
	s := NewState(Config{Limits: Limits{PerSession: 2, Total: 2}}, "lower")
	var stored []Stored
	for _, st := range w.stored {
		stored = append(stored, st)
	}
	adopted, started := 0, 0
	count := func(effects []Effect) {
		for _, e := range effects {
			switch e := e.(type) {
			case AdoptChild:
				adopted++
			case StartChild:
				started++
			case Persist:
				defer func() { s.Apply(Persisted{Record: e.Record}, w.now) }()
			}
		}
	}
	count(s.Apply(Restore{Stored: stored}, w.now))
	require.Equal(t, 3, adopted)
	count(s.Apply(Ended{ID: idOf("a"), Run: 1, End: completed()}, w.now))
	require.Zero(t, started)
	require.Equal(t, events.StateQueued, s.byID[idOf("d")].rec.State)
	require.Len(t, s.slots, 2)
}

func TestCommandLine(t *testing.T) {
	require.Equal(t, "", commandLine(nil))
	require.Equal(t, "ls -l", commandLine([]string{"ls", "-l"}))
	require.Equal(t, `sh -c "echo hi; exit 7" ""`, commandLine([]string{"sh", "-c", "echo hi; exit 7", ""}))
	long := commandLine([]string{"x", string(make([]byte, 1<<20)), "y"})
	require.LessOrEqual(t, len(long), events.MaxCommandLine)
	umlauts := commandLine([]string{"x", fmt.Sprintf("%0300d", 0), "ü"})
	require.Len(t, umlauts, events.MaxCommandLine)
	var wide []string
	for range 200 {
		wide = append(wide, "ü")
	}
	require.True(t, len(commandLine(wide)) <= events.MaxCommandLine)
	require.NotContains(t, commandLine(wide), "\uFFFD")
	require.Contains(t, commandLine([]string{"\xff"}), "\uFFFD")
}

func TestSnapshot(t *testing.T) {
	started, ended := epochStart.Add(2*time.Second), epochStart.Add(5*time.Second)
	code := 7
	r := events.Record{
		ID: "a", State: events.StateActive, Status: events.StatusRunning, Reason: events.ReasonUser, Actor: "me", ExplicitKill: true,
		CreatedAt: epochStart, StartedAt: &started,
	}
	live := Snapshot(&r, &events.Progress{LastLine: "l"}, epochStart.Add(3*time.Second))
	require.Nil(t, live.Success)
	require.Empty(t, live.Reason, "a stop under way is no reason of an end")
	require.Empty(t, live.Actor)
	require.EqualValues(t, 3000, live.ElapsedMS)
	require.EqualValues(t, 1000, live.DurationMS)
	require.Equal(t, "l", live.Progress.LastLine)
	require.Equal(t, "new", live.ContextSource)

	r.State, r.Status, r.EndedAt, r.ResumedFrom = events.StateCompleted, events.StatusFailed, &ended, "b"
	r.Exit = &events.Exit{Code: &code}
	end := Snapshot(&r, &events.Progress{}, epochStart.Add(100*time.Second))
	require.False(t, *end.Success)
	require.Equal(t, 7, *end.ExitCode)
	require.EqualValues(t, 5000, end.ElapsedMS)
	require.EqualValues(t, 3000, end.DurationMS)
	require.Nil(t, end.Progress)
	require.Equal(t, events.ReasonUser, end.Reason)
	require.Equal(t, "resumed", end.ContextSource)
}
