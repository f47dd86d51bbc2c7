package store

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
)

func TestRecordsOutliveTheServer(t *testing.T) {
	f := open(t, t.TempDir())
	require.Equal(t, Loaded{Records: []coordinator.Stored{}}, f.load(t))
	queued, active, ended := newSubagent(), newSubagent(), newSubagent()
	for _, s := range []*subagent{queued, active, ended} {
		f.put(t, s)
	}
	f.put(t, active.active())
	f.put(t, ended.active())
	f.put(t, ended.completed())
	require.FileExists(t, f.runFile(ended.spec.ID, rundir.ResultFile))
	require.FileExists(t, f.runFile(active.spec.ID, rundir.RecordFile))

	f = f.restart(t)
	want := Loaded{Records: []coordinator.Stored{queued.stored(), active.stored(), ended.stored()}}
	require.Equal(t, want, f.load(t))
	f.put(t, active.completed())
	f = f.restart(t)
	want.Records[1] = active.stored()
	require.Equal(t, want, f.load(t))
}

func TestManySubagentsAtOnce(t *testing.T) {
	f := open(t, t.TempDir())
	var all sync.WaitGroup
	failed := make(chan error, 50)
	for range 50 {
		all.Go(func() {
			s := newSubagent()
			err := errors.Join(f.try(s), f.try(s.active()), f.try(s.completed()))
			if err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	close(failed)
	require.NoError(t, <-failed)
	require.Len(t, f.restart(t).load(t).Records, 50)
}

func TestConflict(t *testing.T) {
	f := open(t, t.TempDir())
	s := newSubagent()
	f.put(t, s)
	other := *s
	f.put(t, other.active())
	err := f.try(s.active())
	require.True(t, events.HasCode(err, events.CodeStoreConflict), "%v", err)
	require.ErrorContains(t, err, s.spec.ID)

	// The same id once more leaves the first one's directory as it is.
	again := newSubagent()
	again.spec.ID, again.record.ID = s.spec.ID, s.spec.ID
	again.spec.Request.Command = []string{"other"}
	err = f.try(again)
	require.True(t, events.HasCode(err, events.CodeStoreConflict), "%v", err)
	require.Equal(t, []coordinator.Stored{other.stored()}, f.restart(t).load(t).Records)
}

// A write that happened although nobody heard of it is no second writer.
func TestUnansweredWriteIsOurs(t *testing.T) {
	f := open(t, t.TempDir())
	s := newSubagent()
	f.put(t, s)
	lost := *s
	f.put(t, lost.active())
	value, err := events.MarshalRecord(lost.record)
	require.NoError(t, err)
	f.addDoubt(s.spec.ID, value)

	same := *s
	f.put(t, same.active())
	require.Equal(t, lost.revision, same.revision, "the same state is not written twice")

	f.addDoubt(s.spec.ID, value)
	f.put(t, s.active().completed())
	require.Greater(t, s.revision, lost.revision)
	require.Nil(t, f.doubt(s.spec.ID))
	require.Equal(t, []coordinator.Stored{s.stored()}, f.restart(t).load(t).Records)
}

// A first write that is cancelled leaves nothing that a later start would run.
func TestCancelledFirstWrite(t *testing.T) {
	f := open(t, t.TempDir())
	s := newSubagent()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.Put(ctx, coordinator.Put{Record: s.record, Spec: &s.spec})
	require.True(t, events.HasCode(err, events.CodeStorageFailed), "%v", err)
	require.ErrorIs(t, err, context.Canceled)
	require.NoDirExists(t, f.runFile(s.spec.ID, ""))

	// Had it been written all the same, it would go at the next start.
	value, err := events.MarshalRecord(s.record)
	require.NoError(t, err)
	_, err = f.kv.Create(f.ctx, s.spec.ID, value)
	require.NoError(t, err)
	f = f.restart(t)
	require.Empty(t, f.load(t).Records)
	require.Empty(t, f.restart(t).load(t).Records)
}

// The coordinator tries a refused first write again, as the failure it became.
func TestFirstWriteIsTriedAgain(t *testing.T) {
	f := open(t, t.TempDir())
	s := newSubagent()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.Put(ctx, coordinator.Put{Record: s.record, Spec: &s.spec})
	require.Error(t, err)
	f.put(t, s.completed())
	require.Equal(t, []coordinator.Stored{s.stored()}, f.restart(t).load(t).Records)
}

// A directory that vanished while the subagent ran is made anew for its end, and
// a failed write of that end takes nothing back.
func TestVanishedDirectory(t *testing.T) {
	f := open(t, t.TempDir())
	s := newSubagent()
	f.put(t, s)
	f.put(t, s.active())
	remove(t, f.runFile(s.spec.ID, ""))
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	s.completed()
	_, err := f.Put(ctx, coordinator.Put{Record: s.record, Revision: s.revision})
	require.True(t, events.HasCode(err, events.CodeStorageFailed), "%v", err)
	l := f.restart(t).load(t)
	require.Len(t, l.Records, 1)
	require.Equal(t, s.record, l.Records[0].Record, "the end was in the run directory")
	require.Equal(t, []string{s.spec.ID}, l.Recovered)
}

// A first write that was not answered is withdrawn; when the end of it is written
// later, the withdrawn directory goes, not only at the next start.
func TestWithdrawnDirectoryGoesWithTheEnd(t *testing.T) {
	f := open(t, t.TempDir())
	s := newSubagent()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.Put(ctx, coordinator.Put{Record: s.record, Spec: &s.spec})
	require.Error(t, err)
	condemned, err := f.root.Condemned()
	require.NoError(t, err)
	require.Equal(t, []string{s.spec.ID}, condemned)

	f.put(t, s.completed())
	condemned, err = f.root.Condemned()
	require.NoError(t, err)
	require.Empty(t, condemned)
	require.DirExists(t, f.runFile(s.spec.ID, ""))
	require.Equal(t, []coordinator.Stored{s.stored()}, f.restart(t).load(t).Records)
}

func TestDelete(t *testing.T) {
	f := open(t, t.TempDir())
	s, other := newSubagent(), newSubagent()
	f.put(t, s)
	f.put(t, other)
	stale := s.revision
	f.put(t, s.completed())
	err := f.Delete(f.ctx, s.spec.ID, stale)
	require.True(t, events.HasCode(err, events.CodeStoreConflict), "%v", err)
	require.DirExists(t, f.runFile(s.spec.ID, ""))

	require.NoError(t, f.Delete(f.ctx, s.spec.ID, s.revision))
	require.NoDirExists(t, f.runFile(s.spec.ID, ""))
	require.NoError(t, f.Delete(f.ctx, s.spec.ID, s.revision), "again after an answer that was lost")
	f = f.restart(t)
	require.Equal(t, []coordinator.Stored{other.stored()}, f.load(t).Records)
	messages := func() uint64 {
		info, err := f.bucket.Info(f.ctx)
		require.NoError(t, err)
		return info.State.Msgs
	}
	require.EqualValues(t, 2, messages(), "the mark stays for a while")
	f.markAge = 0
	require.Equal(t, []coordinator.Stored{other.stored()}, f.load(t).Records)
	require.EqualValues(t, 1, messages())

	// The id can be used again.
	s.revision = 0
	s.record.State = events.StateQueued
	f.put(t, s)
}

func TestInterruptedDeleteIsFinished(t *testing.T) {
	f := open(t, t.TempDir())
	s, reused := newSubagent(), newSubagent()
	f.put(t, s.completed())
	f.put(t, reused.completed())
	require.NoError(t, f.root.Condemn(s.spec.ID))
	require.NoError(t, f.root.Condemn(reused.spec.ID))
	require.NoError(t, os.Mkdir(f.runFile(reused.spec.ID, ""), 0o700))

	f = f.restart(t)
	require.Len(t, f.load(t).Records, 1, "a directory that is there again is another subagent's")
	condemned, err := f.root.Condemned()
	require.NoError(t, err)
	require.Empty(t, condemned)
	require.Empty(t, f.restart(t).load(t).Recovered)
}

func TestPublish(t *testing.T) {
	f := open(t, t.TempDir())
	id := events.NewID()
	states := []events.State{events.StateQueued, events.StatePending, events.StateActive, events.StateCompleted}
	for i, state := range states {
		e := events.FeedEvent{Seq: uint64(i + 1), SubagentID: id, Run: 1, State: state, Session: "s"}
		require.NoError(t, f.Publish(f.ctx, e))
		require.NoError(t, f.Publish(f.ctx, e), "a repeated one is stored once")
	}
	f = f.restart(t)
	c, err := f.js.OrderedConsumer(f.ctx, events.FeedStream, jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	for i, state := range states {
		m, err := c.Next(jetstream.FetchMaxWait(deadline))
		require.NoError(t, err)
		require.Equal(t, events.FeedSubject(id, state), m.Subject())
		var e events.FeedEvent
		require.NoError(t, json.Unmarshal(m.Data(), &e))
		require.EqualValues(t, i+1, e.Seq)
	}
	info, err := c.Info(f.ctx)
	require.NoError(t, err)
	require.Zero(t, info.NumPending)
}

func TestClosedConnection(t *testing.T) {
	f := open(t, t.TempDir())
	f.nc.Close()
	s := newSubagent()
	require.True(t, events.HasCode(f.try(s), events.CodeStorageFailed))
	require.True(t, events.HasCode(f.Publish(f.ctx, events.FeedEvent{SubagentID: s.spec.ID}), events.CodeStorageFailed))
	_, err := f.Load(f.ctx)
	require.True(t, events.HasCode(err, events.CodeStorageFailed), "%v", err)
}
