package coordinator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// reports collects what a persister tells.
type reports struct {
	mu   sync.Mutex
	list []Message
}

func (r *reports) add(m Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, m)
}

func (r *reports) durable(id string) (seqs []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.list {
		if p, ok := m.(Persisted); ok && p.Record.ID == id {
			seqs = append(seqs, p.Record.Seq)
		}
	}
	return seqs
}

func (r *reports) failures() (codes []events.Code) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.list {
		if f, ok := m.(PersistFailed); ok {
			codes = append(codes, f.Err.Code)
		}
	}
	return codes
}

func recordOf(id string, seq uint64) Persist {
	return Persist{Record: &events.Record{ID: id, Seq: seq}, Spec: &events.Spec{ID: id}}
}

// withPersister runs a persister in a bubble of fake time.
func withPersister(t *testing.T, test func(t *testing.T, p *persister, j *memoryJournal, r *reports, stop func())) {
	synctest.Test(t, func(t *testing.T) {
		j, r := newMemoryJournal(t), &reports{}
		p := newPersister(j, 5*time.Second, r.add, zap.NewNop())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		done := make(chan struct{})
		go func() { p.run(ctx); close(done) }()
		test(t, p, j, r, func() { p.in.close(); <-done })
	})
}

func TestPersisterCoalescesAndPipelines(t *testing.T) {
	withPersister(t, func(t *testing.T, p *persister, j *memoryJournal, r *reports, stop func()) {
		j.set(time.Second, nil)
		for seq := uint64(1); seq <= 50; seq++ {
			for _, id := range []string{"a", "b", "c"} {
				p.in.push(recordOf(id, seq))
			}
			if seq == 1 {
				synctest.Wait() // the first writes are under way
			}
		}
		stop()
		require.Equal(t, []uint64{1, 50}, r.durable("a"), "later states coalesce")
		require.Equal(t, []uint64{1, 50}, r.durable("c"))
		require.Equal(t, 6, j.puts)
		require.Equal(t, 3, j.most, "ids overlap")
	})
}

func TestPersisterBoundsWritesUnderWay(t *testing.T) {
	withPersister(t, func(t *testing.T, p *persister, j *memoryJournal, r *reports, stop func()) {
		j.set(time.Second, nil)
		for _, id := range ids(100) {
			p.in.push(recordOf(id, 1))
		}
		stop()
		require.Equal(t, maxInflight, j.most)
		require.Equal(t, 100, j.puts)
	})
}

func TestPersisterHoldsWhatFails(t *testing.T) {
	withPersister(t, func(t *testing.T, p *persister, j *memoryJournal, r *reports, stop func()) {
		full := events.Errorf(events.CodeStorageFull, events.LayerCoordinator, "no space")
		j.set(0, func(context.Context, Put) error { return full })
		for _, id := range ids(10) {
			p.in.push(recordOf(id, 1))
		}
		time.Sleep(time.Minute)
		j.mu.Lock()
		tries := j.puts
		j.mu.Unlock()
		require.Greater(t, tries, 10*20, "it is tried again")
		require.Less(t, tries, 10*40, "with backoff")
		require.NotContains(t, r.failures(), events.CodeStorageFailed)
		p.in.push(recordOf(ids(1)[0], 2))
		j.set(0, nil)
		stop()
		require.Equal(t, []uint64{2}, r.durable(ids(1)[0]), "the latest state is written")
		for _, id := range ids(10)[1:] {
			require.Equal(t, []uint64{1}, r.durable(id))
		}
	})
}

func TestPersisterGivesAWriteADeadline(t *testing.T) {
	withPersister(t, func(t *testing.T, p *persister, j *memoryJournal, r *reports, stop func()) {
		j.set(0, func(ctx context.Context, p Put) error {
			if p.Record.Seq == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		began := time.Now()
		p.in.push(recordOf("a", 1))
		p.in.push(recordOf("b", 2)) // is not held up
		synctest.Wait()
		require.Equal(t, []uint64{2}, r.durable("b"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, []events.Code{events.CodeStorageFailed}, r.failures())
		p.in.push(recordOf("a", 3))
		stop()
		require.Equal(t, []uint64{3}, r.durable("a"))
		require.Less(t, time.Since(began), 6*time.Second)
	})
}

func TestPersisterStopsAtAConflict(t *testing.T) {
	withPersister(t, func(t *testing.T, p *persister, j *memoryJournal, r *reports, stop func()) {
		j.records["a"] = Put{Revision: 3}
		p.in.push(recordOf("a", 1))
		synctest.Wait()
		p.in.push(recordOf("b", 1))
		stop()
		require.Equal(t, []events.Code{events.CodeStoreConflict}, r.failures())
		require.Empty(t, r.durable("b"), "nothing is written beside a second writer")
	})
}

func TestSecondWriterStopsTheCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{}).run()
		to := b.submit(command("a", "wait"))
		synctest.Wait()
		b.journal.mu.Lock()
		put := b.journal.records[idOf("a")]
		put.Revision += 10
		b.journal.records[idOf("a")] = put
		b.journal.mu.Unlock()
		b.spawner.finish(idOf("a"))
		err := <-b.ended
		require.True(t, events.HasCode(err, events.CodeStoreConflict), "%v", err)
		require.Equal(t, events.CodeStoreConflict, failure(t, to).Code)
		b.cancel()
	})
}

// TestFullDiskLosesNothing takes the disk away while a child runs.
func TestFullDiskLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{}).run()
		running := b.submit(command("a", "wait"))
		synctest.Wait()
		full := events.Errorf(events.CodeStorageFull, events.LayerCoordinator, "no space")
		b.journal.set(0, func(context.Context, Put) error { return full })
		b.spawner.finish(idOf("a"))
		refused := b.submit(command("b", "ok"))
		require.Equal(t, events.CodeStorageFull, failure(t, refused).Code)
		q := reply[events.QueryReply](t, b.submit(events.Query{IDs: []string{idOf("a"), idOf("b")}}))
		require.Equal(t, events.StatusRunning, q.Snapshots[0].Status, "only what is durable is told")
		require.Equal(t, []string{idOf("b")}, q.Unknown)
		time.Sleep(10 * time.Second)
		require.Empty(t, running)
		b.journal.set(0, nil)
		require.Equal(t, events.StatusCompleted, reply[events.SpawnReply](t, running).Status)
		require.Equal(t, events.StatusCompleted, reply[events.SpawnReply](t, b.submit(command("c", "ok"))).Status)
		b.stop()
		require.Empty(t, b.spawner.callsOf(idOf("b")), "what was refused never starts")
	})
}

func TestFullDiskIsAnErrorInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{}).run()
		running := b.submit(command("a", "wait"))
		synctest.Wait()
		full := events.Errorf(events.CodeStorageFull, events.LayerCoordinator, "no space")
		b.journal.set(0, func(context.Context, Put) error { return full })
		b.spawner.finish(idOf("a"))
		began := time.Now()
		require.Equal(t, events.CodeStorageFull, failure(t, running).Code)
		require.InDelta(t, storePatience.Seconds(), time.Since(began).Seconds(), 3)
		b.stop()
	})
}

func TestPublisherRetriesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed, tries := newMemoryFeed(t), 0
		feed.fault = func() error {
			if tries++; tries%3 != 0 {
				return errors.New("no stream")
			}
			return nil
		}
		p := newPublisher(feed, time.Second, zap.NewNop())
		for seq := uint64(1); seq <= 20; seq++ {
			p.in.push(events.FeedEvent{SubagentID: "a", Seq: seq})
		}
		p.in.close()
		p.run(t.Context())
		require.Len(t, feed.list, 20)
		require.Zero(t, p.dropped.Load())
	})
}

func TestPublisherCountsWhatItDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := newMemoryFeed(t)
		feed.fault = func() error { return errors.New("no stream") }
		p := newPublisher(feed, time.Second, zap.NewNop())
		for seq := range uint64(maxFeed + 5) {
			p.in.push(events.FeedEvent{SubagentID: "a", Seq: seq + 1})
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		p.run(ctx)
		require.EqualValues(t, maxFeed+5, p.dropped.Load())
	})
}

// answerOf gives one answer to a replier and returns what its responder gets.
func answerOf(t *testing.T, files Files, reply any) Answer {
	t.Helper()
	answered := 0
	r := newReplier(files, func() { answered++ }, zap.NewNop())
	to := make(mailbox, 2)
	r.in.push(Reply{To: to, Answer: Answer{Reply: reply, AckToken: "t"}})
	r.in.close()
	r.run()
	require.Equal(t, 1, answered)
	require.Len(t, to, 1)
	return <-to
}

func endedSnapshot(id string, text string) events.Snapshot {
	return events.Snapshot{SubagentID: id, State: events.StateCompleted, Status: events.StatusCompleted,
		Output: events.Output{Text: text, Bytes: 1 << 20, Truncated: true}}
}

func TestReplierAddsOutput(t *testing.T) {
	a := answerOf(t, memoryFiles{fill: "x", size: 1 << 20}, events.SpawnReply{Snapshot: endedSnapshot("a", "digest")})
	r := a.Reply.(events.SpawnReply)
	require.Len(t, r.Text, events.MaxReplyOutput)
	require.True(t, r.Truncated)
	require.EqualValues(t, 1<<20, r.Bytes)
	require.Equal(t, "t", a.AckToken)
}

// TestReplierFitsIntoAMessage tries outputs that grow to six times their size.
func TestReplierFitsIntoAMessage(t *testing.T) {
	for _, fill := range []string{"x", "\x01", "\u2028"} {
		for _, n := range []int{1, 3, 4, 30, events.MaxQueryIDs} {
			var list []events.Snapshot
			for _, id := range ids(n) {
				list = append(list, endedSnapshot(id, strings.Repeat(fill, 1000)))
			}
			a := answerOf(t, memoryFiles{fill: fill, size: 1 << 20}, events.QueryReply{Snapshots: list})
			require.Nil(t, a.Error)
			b, err := events.Marshal(a.Reply)
			require.NoError(t, err, "%d of %q", n, fill)
			require.Less(t, len(b), events.MaxMessage)
			require.NotEmpty(t, a.Reply.(events.QueryReply).Snapshots[n-1].Text, "%d of %q", n, fill)
		}
	}
}

func TestReplierLeavesOutWhatIsBulky(t *testing.T) {
	labels := map[string]string{}
	for _, k := range ids(64) {
		labels[k] = strings.Repeat("v", 256)
	}
	var list []events.Snapshot
	for _, id := range ids(events.MaxPage) {
		s := endedSnapshot(id, "")
		s.Labels = labels
		s.Sandbox = &events.SandboxReport{Profile: "workspace", Active: true, Writable: []string{strings.Repeat("/w", 1000)}}
		list = append(list, s)
	}
	a := answerOf(t, memoryFiles{fill: "x", size: 10}, events.ListActiveReply{Subagents: slices.Clone(list)})
	require.Nil(t, a.Error)
	_, err := events.Marshal(a.Reply)
	require.NoError(t, err)
	r := a.Reply.(events.ListActiveReply)
	require.NotEmpty(t, r.Warnings)
	require.True(t, r.Subagents[0].Sandbox.Active)
	require.Len(t, list[0].Sandbox.Writable, 1, "the record itself is untouched")

	for i := range list {
		list[i].Workspace = strings.Repeat("\x01", 4000)
	}
	a = answerOf(t, memoryFiles{}, events.ListActiveReply{Subagents: list})
	require.Equal(t, events.CodeTooLarge, a.Error.Code, "what cannot be sent is an error, not nothing")
}

func TestReplierTellsOfUnreadableOutput(t *testing.T) {
	a := answerOf(t, memoryFiles{fault: errors.New("gone")}, events.SpawnReply{Snapshot: endedSnapshot("a", "digest")})
	r := a.Reply.(events.SpawnReply)
	require.Equal(t, "digest", r.Text)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "gone")
}

// hostile panics in the hands of the replier.
type hostile struct{ memoryFiles }

func (hostile) Output(string, int) (events.Output, error) { panic("files") }
func (hostile) Answer(Answer)                             { panic("responder") }

func TestReplierSurvivesPanics(t *testing.T) {
	a := answerOf(t, hostile{}, events.SpawnReply{Snapshot: endedSnapshot("a", "digest")})
	require.Equal(t, events.CodeInternal, a.Error.Code)

	answered := 0
	r := newReplier(memoryFiles{}, func() { answered++ }, zap.NewNop())
	to := make(mailbox, 1)
	r.in.push(Reply{To: hostile{}})
	r.in.push(Reply{To: to, Answer: Answer{Reply: Stats{}}})
	r.in.close()
	r.run()
	require.Equal(t, 2, answered)
	require.Len(t, to, 1)
}

func TestQueue(t *testing.T) {
	q := newQueue[int](0)
	for i := range 5000 {
		q.push(i)
	}
	for i := range 5000 {
		v, ok := q.pop()
		require.True(t, ok)
		require.Equal(t, i, v)
		if i%2 == 0 {
			q.push(5000 + i/2)
		}
	}
	require.Equal(t, 2500, q.depth())
	q.close()
	ok, closed := q.push(1)
	require.False(t, ok)
	require.True(t, closed)
	require.False(t, q.drained())
	for i := range 2500 {
		v, _ := q.pop()
		require.Equal(t, 5000+i, v)
	}
	require.True(t, q.drained())
}
