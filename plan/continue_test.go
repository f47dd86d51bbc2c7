package plan

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

// mortal is a coordinator as a process knows it that dies at one of its effects:
// a request that it makes or an end that it keeps. That one may still happen, and
// nothing of the process does afterwards.
type mortal struct {
	*fakeRunner
	record *Record
	died   chan struct{}

	mu    sync.Mutex
	left  int  // guarded by mu: effects until death; negative: none
	takes bool // whether the last one happens
}

// effect makes the next effect happen, unless the process is dead, and reports
// whether the process lives on to learn of it.
func (m *mortal) effect(happen func()) (lives bool) {
	m.mu.Lock()
	last := m.left == 1
	dead := m.left == 0
	if !dead {
		m.left--
	}
	m.mu.Unlock()
	switch {
	case dead:
		return false
	case !last:
		happen()
		return true
	case m.takes:
		happen()
	}
	close(m.died)
	return false
}

func (m *mortal) Spawn(ctx context.Context, s events.Spawn) (reply events.SpawnReply, err error) {
	if !m.effect(func() { reply, err = m.fakeRunner.Spawn(ctx, s) }) {
		return events.SpawnReply{}, errDead
	}
	return reply, err
}

func (m *mortal) Query(ctx context.Context, q events.Query) (events.QueryReply, error) {
	m.mu.Lock()
	dead := m.left == 0
	m.mu.Unlock()
	if dead {
		return events.QueryReply{}, errDead
	}
	return m.fakeRunner.Query(ctx, q)
}

func (m *mortal) Cancel(ctx context.Context, c events.Cancel) (reply events.CancelReply, err error) {
	if !m.effect(func() { reply, err = m.fakeRunner.Cancel(ctx, c) }) {
		return events.CancelReply{}, errDead
	}
	return reply, err
}

// keep is one effect that nothing else of the process happens beside, its death
// included: the record is closed right after that.
func (m *mortal) keep(res Result) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.left == 1
	switch {
	case m.left == 0:
		return nil
	case last:
		m.left = 0
		defer close(m.died)
		if !m.takes {
			return nil
		}
	default:
		m.left--
	}
	return m.record.Keep(res)
}

// kept is a test that fails later.
type kept struct{ said []string }

func (k *kept) Errorf(format string, args ...any) {
	k.said = append(k.said, fmt.Sprintf(format, args...))
}

func (k *kept) FailNow() { panic(k) }

// stop ends what failed, and notes it in t. It is deferred.
func (k *kept) stop(t *rapid.T) {
	if r := recover(); r != nil && r != any(k) {
		panic(r)
	}
	for _, s := range k.said {
		t.Errorf("%s", s)
	}
}

// TestRunsGoOnAfterDeath: whatever effect of a run's process is its last, the
// next process goes on: no attempt is made twice, none beside another of the
// same subagent, nothing that completed again, nothing before its needs, and in
// the end all that can complete has.
func TestRunsGoOnAfterDeath(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		lines, b := dag(rt)
		p, err := Parse("random.toml", "/plans", entries(lines...))
		require.NoError(rt, err)
		p.Jobs = rapid.IntRange(1, 6).Draw(rt, "jobs")
		deaths := rapid.SliceOfN(rapid.IntRange(1, 2*len(lines)+2), 1, 4).Draw(rt, "deaths")
		takes := rapid.Bool().Draw(rt, "takes")
		interrupted := rapid.Bool().Draw(rt, "interrupted")
		outside := rt
		synctest.Test(t, func(t *testing.T) {
			// A bubble is left by its end alone.
			rt := &kept{}
			defer rt.stop(outside)
			f := newFake(b)
			rec, err := (Runs{Dir: dir}).Create(p)
			require.NoError(rt, err)
			defer func() { require.NoError(rt, os.RemoveAll(rec.dir)) }()
			var ghosts sync.WaitGroup
			defer ghosts.Wait()
			o := Options{RunID: rec.ID}
			for _, effects := range append(deaths, -1) {
				m := &mortal{fakeRunner: f, record: rec, died: make(chan struct{}), left: effects, takes: takes}
				o.Keep = m.keep
				ended := make(chan Summary, 1)
				interrupts := make(chan struct{}, 1)
				if interrupted && effects == deaths[0] {
					time.AfterFunc(time.Second, func() { interrupts <- struct{}{} })
				}
				o.Interrupt = interrupts
				own := o
				ghosts.Go(func() {
					s, _ := p.Run(t.Context(), m, own)
					ended <- s
				})
				select {
				case <-m.died:
				case s := <-ended:
					require.NoError(rt, rec.Close())
					checkAttempts(rt, p, f)
					if effects < 0 {
						requireDone(rt, p, f, s, interrupted)
						return
					}
				}
				require.NoError(rt, rec.Close())
				if rec, err = (Runs{Dir: dir}).Find(rec.ID); err == nil {
					err = rec.Take()
				}
				require.NoError(rt, err)
				survey, err := rec.Survey(t.Context(), f)
				require.NoError(rt, err)
				for _, end := range survey.Fresh {
					require.NoError(rt, rec.Keep(end))
				}
				o = Options{RunID: rec.ID, Prompt: events.NewID(), Earlier: survey.Found}
			}
		})
	})
}

// checkAttempts holds what the coordinator was asked for against the promise.
func checkAttempts(rt require.TestingT, p *Plan, f *fakeRunner) {
	for _, sub := range p.Subagents {
		attempts := f.attempts(sub.Name)
		for i, c := range attempts {
			if i > 0 {
				before := attempts[i-1]
				require.True(rt, before.status.Terminal() && !before.ended.After(c.started), "two attempts of %s at once", sub.Name)
				require.NotEqual(rt, events.StatusCompleted, before.status, "%s again although it had completed", sub.Name)
			}
			for _, need := range sub.Needs {
				completed := false
				for _, n := range f.attempts(need) {
					completed = completed || n.status == events.StatusCompleted && !n.ended.After(c.started)
				}
				require.True(rt, completed, "%s before %s", sub.Name, need)
			}
		}
	}
}

// requireDone: the summary says what the coordinator knows, and what did not
// complete could not. The cancel of an execution that died may have come through.
func requireDone(rt require.TestingT, p *Plan, f *fakeRunner, s Summary, interrupted bool) {
	status := make(map[string]State)
	for i, sub := range p.Subagents {
		res := s.Subagents[i]
		status[sub.Name] = res.Status
		switch attempts := f.attempts(sub.Name); res.Status {
		case StateCompleted:
			require.Equal(rt, events.StatusCompleted, attempts[len(attempts)-1].status)
			require.Equal(rt, attempts[len(attempts)-1].spawn.ID, res.SubagentID)
		case StateFailed:
			act := f.behaviors[sub.Name]
			require.True(rt, act.exit != 0 || len(attempts) == 0 || attempts[len(attempts)-1].status == events.StatusFailed, sub.Name)
		case StateSkipped:
			require.Equal(rt, events.ReasonDependency, res.Reason)
		default:
			require.True(rt, interrupted && res.Status == StateCancelled, "%s is %s", sub.Name, res.Status)
		}
	}
}

// continuing runs rec's plan again, as the verb does.
func continuing(t *testing.T, runs Runs, f *fakeRunner) (code int, out, errs string) {
	t.Helper()
	rec, err := runs.Last()
	require.NoError(t, err)
	return commanded(t, Flags{Continue: rec}, f)
}

func commanded(t *testing.T, flags Flags, f *fakeRunner) (code int, out, errs string) {
	t.Helper()
	flags.LookupEnv = noVariable
	var o, e strings.Builder
	sig := newSignals()
	defer sig.stop()
	code = command(t.Context(), flags, connectTo(f), Stdio{&o, &e}, sig)
	return code, o.String(), e.String()
}

func TestContinue(t *testing.T) {
	path := write(t, entries("a", "b", "c: a b", "d: a"))
	runs := Runs{Dir: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"b": {exit: 3}})
		code, _, errs := commanded(t, Flags{Path: path, Runs: runs}, f)
		require.Equal(t, ExitFailed, code)
		rec, err := runs.Last()
		require.NoError(t, err)
		require.Contains(t, errs, "run what did not complete again: hayward run --continue "+rec.ID[28:]+"\n")
		first := f.child("a").spawn.ID

		// The plan as it was goes on, and the change is said.
		require.NoError(t, os.WriteFile(path, []byte(entries("other")), 0o600))
		f.behaviors["b"] = behavior{}
		code, out, errs := continuing(t, runs, f)
		require.Equal(t, ExitCompleted, code, errs)
		require.Contains(t, errs, path+" has changed since run "+rec.ID+" began; the plan goes on as it was then\n")
		require.Contains(t, errs, "of 4 subagents, 2 completed before\n")
		require.Contains(t, out, "c     completed")
		require.Len(t, f.attempts("a"), 1)
		require.Len(t, f.attempts("b"), 2)
		require.Len(t, f.attempts("d"), 1)
		require.Equal(t, map[string]string{"a": first, "b": f.attempts("b")[1].spawn.ID}, f.child("c").spawn.Inputs)

		code, out, errs = continuing(t, runs, f)
		require.Equal(t, ExitCompleted, code)
		require.Contains(t, errs, "nothing to run again, 4 subagents completed")
		require.Contains(t, out, "c     completed")
		require.Len(t, f.order, 5)
	})
}

// TestContinueAfterAnInterrupt: the prompt of the interrupted execution takes no
// more spawns, so the next one has its own.
func TestContinueAfterAnInterrupt(t *testing.T) {
	path := write(t, entries("a", "b: a"))
	runs := Runs{Dir: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {never: true}})
		var o, e strings.Builder
		sig := newSignals()
		time.AfterFunc(time.Second, sig.interrupt)
		code := command(t.Context(), Flags{Path: path, Runs: runs, LookupEnv: noVariable}, connectTo(f), Stdio{&o, &e}, sig)
		sig.stop()
		require.Equal(t, ExitInterrupted, code, e.String())
		f.behaviors["a"] = behavior{}
		code, _, errs := continuing(t, runs, f)
		require.Equal(t, ExitCompleted, code, errs)
	})
}

// TestInterruptEndsWhatWasJoined: it runs under the prompt of another execution.
func TestInterruptEndsWhatWasJoined(t *testing.T) {
	p := parse(t, entries("a", "b"))
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"a": {never: true}, "b": {never: true}})
		id := subagentID("run-1", "a", 1)
		_, err := f.Spawn(t.Context(), events.Spawn{ParentSessionID: "run-1", ParentPromptID: "old", ID: id, Name: "a", Command: []string{"x"}})
		require.NoError(t, err)
		interrupts := make(chan struct{}, 1)
		time.AfterFunc(time.Minute, func() { interrupts <- struct{}{} })
		s, err := p.Run(t.Context(), f, Options{
			RunID: "run-1", Prompt: "new", Interrupt: interrupts, Jobs: 1,
			Earlier: map[string]Earlier{"a": {Attempt: 1, Live: true}},
		})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": "cancelled(user)", "b": "cancelled(user)"}, statuses(s))
		require.Equal(t, id, s.Subagents[0].SubagentID)
		require.Len(t, f.attempts("a"), 1)
		require.Empty(t, f.attempts("b"), "the joined one takes the only place")
	})
}

// TestForgottenInputs: what completed and is needed runs again if the coordinator
// has forgotten it, and what nobody needs does not.
func TestForgottenInputs(t *testing.T) {
	path := write(t, entries("a", "b: a", "c: b", "lone"))
	runs := Runs{Dir: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]behavior{"c": {exit: 1}})
		code, _, _ := commanded(t, Flags{Path: path, Runs: runs}, f)
		require.Equal(t, ExitFailed, code)
		again := newFake(nil)
		code, _, errs := continuing(t, runs, again)
		require.Equal(t, ExitCompleted, code, errs)
		require.Equal(t, []string{"a", "b", "c"}, again.order)
	})
}
