package coordinator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestForegroundSpawnIsAnsweredWithItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{}).run()
		to := b.submit(command("a", "ok"))
		a := <-to
		require.Nil(t, a.Error)
		r := a.Reply.(events.SpawnReply)
		require.Equal(t, idOf("a"), r.SubagentID)
		require.Equal(t, events.StatusCompleted, r.Status)
		require.True(t, *r.Success)
		require.Equal(t, 0, *r.ExitCode)
		require.True(t, r.Sandbox.Active)
		require.False(t, r.Backgrounded)
		require.Len(t, b.journal.record(idOf("a")).SpecDigest, 64)

		require.Equal(t, []string{idOf("a")}, a.Reads)
		require.Nil(t, b.c.Ack(a.AckToken))
		synctest.Wait()
		require.NotNil(t, b.journal.record(idOf("a")).ReadAt)
		require.Equal(t, []string{"start", "release"}, b.spawner.callsOf(idOf("a")))
		b.stop()
		require.Equal(t, []events.State{events.StateQueued, events.StatePending, events.StateActive, events.StateCompleted}, b.feed.states(idOf("a")))
	})
}

func TestSpawnWithoutAnIDGetsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{}).run()
		s := background(command("a", "ok"))
		s.ID = ""
		r := reply[events.SpawnReply](t, b.submit(s))
		require.True(t, events.ValidID(r.SubagentID))
		require.True(t, r.Backgrounded)
		require.Nil(t, r.Success)
		b.stop()
	})
}

func TestProgressIsShownOfWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{}).run()
		reply[events.SpawnReply](t, b.submit(background(command("a", "wait"))))
		synctest.Wait()
		q := reply[events.QueryReply](t, b.submit(events.Query{IDs: []string{idOf("a")}}))
		require.Equal(t, "progress of "+idOf("a"), q.Snapshots[0].Progress.LastLine)
		found, err := b.c.Lookup(context.Background(), "s", idOf("a"))
		require.Nil(t, err)
		require.Equal(t, events.StateActive, found.State)
		_, err = b.c.Lookup(context.Background(), "other", idOf("a"))
		require.Equal(t, events.CodeUnknownID, err.Code)
		b.stop()
	})
}

// TestIntakeIsBounded fills the intake of a loop that does not run yet.
func TestIntakeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Intake: 3})
		var waiting []mailbox
		for range 3 {
			waiting = append(waiting, b.submit(events.ListActive{}))
		}
		err := b.c.Submit(Request{Event: events.ListActive{}, Responder: make(mailbox, 1)})
		require.Equal(t, events.CodeBusy, err.Code)
		require.Equal(t, "3", err.Details["depth"])
		require.Equal(t, events.CodeBusy, b.c.Ack("token").Code)
		require.Equal(t, 3, b.c.Health().Backlog)

		b.run()
		for _, to := range waiting {
			reply[events.ListActiveReply](t, to)
		}
		synctest.Wait()
		require.Zero(t, b.c.Health().Unanswered)
		b.stop()
	})
}

func TestUnansweredRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Outstanding: 2}).run()
		first := b.submit(command("a", "wait"))
		second := b.submit(command("b", "wait"))
		synctest.Wait()
		err := b.c.Submit(Request{Event: events.ListActive{}, Responder: make(mailbox, 1)})
		require.Equal(t, events.CodeBusy, err.Code)
		b.spawner.finish(idOf("a"))
		reply[events.SpawnReply](t, first)
		synctest.Wait()
		reply[events.ListActiveReply](t, b.submit(events.ListActive{}))
		b.stop()
		require.Equal(t, events.CodeShuttingDown, failure(t, second).Code)
	})
}

func TestInvalidRequestsNeverReachTheLoop(t *testing.T) {
	b := newBench(t, Config{})
	err := b.c.Submit(Request{Event: events.Query{}, Responder: make(mailbox, 1)})
	require.Equal(t, events.CodeInvalidRequest, err.Code)
	require.Zero(t, b.c.Health().Backlog)
}

// TestOrderOfPrecedence fills every source and looks at the order in which they
// are taken.
func TestOrderOfPrecedence(t *testing.T) {
	b := newBench(t, Config{Intake: 1000})
	now := epochStart
	for range 150 {
		b.c.tell(ShutdownExpired{})
		b.submit(events.ListActive{})
		b.c.state.timers.arm(&timer{at: now, kind: timerLease, l: &lease{}})
	}
	taken := func() string {
		switch b.c.next(now).(type) {
		case ShutdownExpired:
			return "internal"
		case Request:
			return "command"
		case Tick:
			return "timers"
		}
		return "none"
	}
	expect := func(n int, kind string) {
		t.Helper()
		for i := range n {
			require.Equal(t, kind, taken(), "number %d of %s", i, kind)
		}
	}
	expect(64, "internal")
	expect(1, "command")
	expect(64, "internal")
	expect(1, "command")
	expect(22, "internal") // the last of 150
	expect(62, "command")  // 64 in a row with the two before
	expect(1, "timers")
	expect(64, "command")
	expect(1, "timers")
	expect(22, "command")
	expect(1, "timers")
	b.c.state.timers.heap = nil
	expect(1, "none")
	b.c.tell(ShutdownExpired{})
	expect(1, "internal")
	expect(1, "none")
}

// TestFinishBeatsCommand puts a cancel in first and the end of its target second.
func TestFinishBeatsCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{})
		record := events.Record{ID: idOf("a"), Run: 1, ParentSessionID: "s", State: events.StateActive, Status: events.StatusRunning,
			Process: &events.Process{PID: 1}, Background: true, CreatedAt: time.Now()}
		cancel := b.submit(events.Cancel{Target: events.CancelTarget{IDs: []string{idOf("a")}}})
		b.c.Ended(idOf("a"), 1, completed())
		b.journal.records[idOf("a")] = Put{Record: record, Revision: 7, Spec: &events.Spec{ID: idOf("a"), Run: 1}}
		b.spawner.children[idOf("a")] = events.Spec{Run: 1}
		b.run(b.journal.stored()...)
		r := reply[events.CancelReply](t, cancel)
		require.Equal(t, events.CancelAlreadyFinished, r.Results[0].Outcome)
		require.Equal(t, events.StatusCompleted, r.Results[0].Status)
		b.stop()
		require.Equal(t, []string{"adopt"}, b.spawner.callsOf(idOf("a")))
	})
}

func TestShutdownEndsChildrenAndReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Limits: Limits{PerSession: 2}}).run()
		spawned := []mailbox{b.submit(command("a", "wait")), b.submit(command("b", "wait")), b.submit(command("c", "ok"))}
		synctest.Wait()
		ended, left, err := b.c.Shutdown(context.Background(), events.ShutdownRequest{})
		require.NoError(t, err)
		require.Equal(t, 2, ended)
		require.Zero(t, left)
		require.NoError(t, <-b.ended)
		for _, to := range spawned[:2] {
			require.Equal(t, events.ReasonShutdown, reply[events.SpawnReply](t, to).Reason)
		}
		queued := reply[events.SpawnReply](t, spawned[2])
		require.True(t, queued.Backgrounded)
		require.NotEmpty(t, queued.Warnings)
		require.Equal(t, events.StateQueued, b.journal.record(idOf("c")).State)

		err = b.c.Submit(Request{Event: events.ListActive{}, Responder: make(mailbox, 1)})
		require.Equal(t, events.CodeShuttingDown, events.AsError(err).Code)
		_, _, err = b.c.Shutdown(context.Background(), events.ShutdownRequest{})
		require.Equal(t, events.CodeShuttingDown, events.AsError(err).Code)

		// What was queued runs in the next coordinator.
		next := newBench(t, Config{})
		next.journal, next.c.persister.journal = b.journal, b.journal
		next.run(b.journal.stored()...)
		q := reply[events.QueryReply](t, next.submit(events.Query{IDs: []string{idOf("c")}, Block: true}))
		require.Equal(t, events.StatusCompleted, q.Snapshots[0].Status)
		next.stop()
	})
}

func TestShutdownGivesUpWaitingButGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{}).run()
		spawned := b.submit(command("a", "stuck"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		ended, left, err := b.c.Shutdown(ctx, events.ShutdownRequest{})
		require.NoError(t, err)
		require.Zero(t, ended)
		require.Equal(t, 1, left)
		ended, left, err = b.c.Shutdown(context.Background(), events.ShutdownRequest{Kill: true})
		require.NoError(t, err)
		require.Equal(t, 1, ended)
		require.Zero(t, left)
		require.NoError(t, <-b.ended)
		require.Equal(t, events.StatusCancelled, reply[events.SpawnReply](t, spawned).Status)
	})
}

// TestEndOfContextAnswersEverybody ends Run with requests in every place.
func TestEndOfContextAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{}).run()
		waits := []mailbox{b.submit(command("a", "wait"))}
		synctest.Wait()
		waits = append(waits, b.submit(events.Query{IDs: []string{idOf("a")}, Block: true}))
		synctest.Wait()
		b.cancel()
		require.NoError(t, <-b.ended)
		for _, to := range waits {
			require.Equal(t, events.CodeShuttingDown, failure(t, to).Code)
			require.Empty(t, to)
		}
		require.Equal(t, events.StateActive, b.journal.record(idOf("a")).State)
		require.Equal(t, []string{"start", "release"}, b.spawner.callsOf(idOf("a")), "children are left alone")
	})
}

func TestStatsAndSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Limits: Limits{PerSession: 1}}).run()
		b.submit(background(command("a", "wait")))
		b.submit(background(command("b", "wait")))
		synctest.Wait()
		require.NoError(t, b.c.sync(context.Background()))
		st, err := b.c.Stats(context.Background())
		require.NoError(t, err)
		require.Equal(t, Stats{Queued: 1, Active: 1}, st)
		b.stop()
		require.Error(t, b.c.sync(context.Background()))
		_, err = b.c.Stats(context.Background())
		require.Equal(t, events.CodeShuttingDown, events.AsError(err).Code)
	})
}

// TestManyCallersAtOnce lets callers spawn, query, cancel, read and acknowledge
// at the same time, on real time and several threads, and then looks for what
// was lost.
func TestManyCallersAtOnce(t *testing.T) {
	const callers, rounds = 8, 60
	b := newBench(t, Config{Limits: Limits{PerSession: 4, Total: 6, QueueLength: 10_000}}).run()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(caller), 1))
			for round := range rounds {
				name := fmt.Sprintf("c%d-%d", caller, round)
				s := spawnOf(name, fmt.Sprint("session", caller%3))
				s.Prompt = []string{"ok", "ok", "wait"}[r.IntN(3)]
				s.RunInBackground = s.Prompt == "wait" || r.IntN(2) == 0
				a := <-b.submit(s)
				if a.Error != nil {
					t.Errorf("spawn %s: %v", name, a.Error)
					return
				}
				if a.AckToken != "" && r.IntN(2) == 0 {
					_ = b.c.Ack(a.AckToken) // too late or busy leaves it unread, which is checked below
				}
				<-b.submit(events.Query{IDs: []string{s.ID}, Block: s.Prompt == "ok"})
				if s.Prompt == "wait" {
					c := (<-b.submit(events.Cancel{Target: events.CancelTarget{IDs: []string{s.ID}}})).Reply.(events.CancelReply)
					if len(c.Results) != 1 || c.Results[0].Outcome != events.CancelCancelled {
						t.Errorf("cancel %s: %+v", name, c)
					}
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, b.c.sync(context.Background()))
	st, err := b.c.Stats(context.Background())
	require.NoError(t, err)
	require.Equal(t, callers*rounds, st.Completed)
	require.Zero(t, st.Queued+st.Pending+st.Active)
	require.LessOrEqual(t, b.spawner.most, 6)
	b.stop()
	unread := 0
	for _, stored := range b.journal.stored() {
		require.Equal(t, events.StateCompleted, stored.Record.State)
		if stored.Record.ReadAt == nil {
			unread++
		}
	}
	require.Len(t, b.journal.records, callers*rounds)
	require.Equal(t, st.Unread, unread)
	require.Zero(t, b.c.Health().Unanswered)
}

// An exit that is told when the loop has ended is not taken for one with nothing
// nested, and does not wait.
func TestExitedAfterTheLoopEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{})
		answer := make(chan error, 1)
		go func() {
			_, err := b.c.Exited(t.Context(), idOf("a"), 1)
			answer <- err
		}()
		synctest.Wait()
		b.c.close()
		close(b.c.done)
		require.True(t, events.HasCode(<-answer, events.CodeShuttingDown))
		_, err := b.c.Exited(t.Context(), idOf("a"), 1)
		require.True(t, events.HasCode(err, events.CodeShuttingDown))
	})
}
