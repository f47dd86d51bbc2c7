package plan

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		about  string
		first  behavior
		twice  bool
		takes  time.Duration
		status string
		lost   bool
		kills  bool
	}{
		{about: "graceful", first: behavior{never: true, grace: 3 * time.Second}, takes: 3 * time.Second, status: "cancelled(user)"},
		{about: "second kills", first: behavior{never: true, stubborn: true}, twice: true, takes: time.Second, status: "cancelled(user)", kills: true},
		{about: "kills by itself at last", first: behavior{never: true, stubborn: true}, takes: gracePatience, status: "cancelled(user)", kills: true},
		{about: "gives up", first: behavior{never: true, immortal: true}, takes: gracePatience + killPatience, status: "failed", lost: true, kills: true},
	} {
		t.Run(c.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(map[string]behavior{"a": c.first, "quick": {}})
				interrupts := make(chan struct{}, 2)
				time.AfterFunc(time.Minute, func() { interrupts <- struct{}{} })
				if c.twice {
					time.AfterFunc(time.Minute+time.Second, func() { interrupts <- struct{}{} })
				}
				start := time.Now()
				seen := &recorder{}
				s, err := parse(t, entries("a", "quick", "b: a", "late: b")).Run(t.Context(), f, Options{Interrupt: interrupts, Observer: seen})
				require.Equal(t, c.takes, time.Since(start)-time.Minute)
				require.Equal(t, map[string]string{
					"a": c.status, "quick": "completed", "b": "cancelled(user)", "late": "cancelled(user)",
				}, statuses(s))
				require.True(t, s.Interrupted)
				require.Equal(t, c.lost, errors.Is(err, ErrLost))
				if c.lost {
					require.Equal(t, ExitOwnError, s.exitCode(err))
				} else {
					require.NoError(t, err)
					require.Equal(t, ExitInterrupted, s.exitCode(err))
				}
				require.Equal(t, c.kills, f.cancels[len(f.cancels)-1].Kill)
				for _, cancel := range f.cancels {
					require.Nil(t, cancel.Validate())
				}
				require.Equal(t, []string{"a", "quick"}, sorted(f.order))
				require.Equal(t, c.kills, slices.Contains(seen.said, "killing 1 subagent"))
				require.Contains(t, seen.said, "interrupted: ending 1 subagent; interrupt again to kill")
			})
		})
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// TestInterruptWhileSpawning: a spawn whose reply was lost before the interrupt
// is either refused by the gate or ended; one that was held back is never made.
func TestInterruptWhileSpawning(t *testing.T) {
	busy := events.Errorf(events.CodeBusy, events.LayerCoordinator, "busy")
	for about, c := range map[string]struct {
		refusals []error
		made     bool
	}{
		"lost before": {slices.Repeat([]error{errLostBefore}, 6), false},
		"lost after":  {[]error{errLostAfter}, true},
		"held":        {slices.Repeat([]error{error(busy)}, 50), false},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(map[string]behavior{"a": {never: true, refusals: c.refusals}})
				interrupts := make(chan struct{}, 1)
				time.AfterFunc(20*time.Millisecond, func() { interrupts <- struct{}{} })
				s, err := parse(t, entries("a")).Run(t.Context(), f, Options{Interrupt: interrupts})
				require.NoError(t, err)
				require.Equal(t, StateCancelled, s.Subagents[0].Status)
				require.Equal(t, c.made, f.child("a") != nil)
				require.Equal(t, c.made, s.Subagents[0].SubagentID != "")
			})
		})
	}
}

func TestInterruptWithNothingInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		interrupts := make(chan struct{}, 1)
		f := newFake(map[string]behavior{"a": {lasts: time.Second}})
		interrupts <- struct{}{}
		s, err := parse(t, entries("a", "b")).Run(t.Context(), f, Options{Interrupt: interrupts})
		require.NoError(t, err)
		require.True(t, s.Interrupted)
		require.Zero(t, s.Counts.Skipped)
	})
}

func TestEndOfContextIsAnInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {never: true, grace: time.Second}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := parse(t, entries("a")).Run(ctx, f, Options{})
		require.NoError(t, err)
		require.Equal(t, "cancelled(user)", statuses(s)["a"])
		require.False(t, f.cancels[0].Kill)
	})
}

// TestInterruptBeforeAnythingStarted is not swallowed by a connection that came
// about all the same.
func TestInterruptBeforeAnythingStarted(t *testing.T) {
	f := newFake(nil)
	sig := newSignals()
	defer sig.stop()
	var errs strings.Builder
	code := command(t.Context(), Flags{Plan: parse(t, entries("a")), LookupEnv: noVariable}, func(ctx context.Context) (Runner, error) {
		sig.interrupt()
		<-ctx.Done()
		return f, nil
	}, Stdio{&errs, &errs}, sig)
	require.Equal(t, ExitInterrupted, code)
	require.Equal(t, "interrupted before anything was started\n", errs.String())
	require.Empty(t, f.order)
}

// TestInterruptIsKept: one that comes when f is over is for what comes next.
func TestInterruptIsKept(t *testing.T) {
	sig := newSignals()
	defer sig.stop()
	for range 100 {
		ended := make(chan struct{})
		interrupted := sig.during(t.Context(), func(context.Context) {
			go func() {
				defer close(ended)
				sig.interrupt()
			}()
		})
		<-ended
		if interrupted {
			continue
		}
		select {
		case <-sig.interrupts:
		case <-time.After(deadline):
			require.Fail(t, "an interrupt is lost")
		}
	}
}
