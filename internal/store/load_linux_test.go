package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// Everything that one witness loses is restored from the other, for good.
func TestWhatIsRestored(t *testing.T) {
	loseRecord := func(t *testing.T, f *fixture, s *subagent) {
		require.NoError(t, f.bucket.Purge(f.ctx, jetstream.WithPurgeSubject("$KV."+events.Bucket+"."+s.spec.ID)))
		s.revision = 0
	}
	spoilRecord := func(t *testing.T, f *fixture, s *subagent) {
		_, err := f.kv.Put(f.ctx, s.spec.ID, []byte("{torn"))
		require.NoError(t, err)
		s.revision = 0
	}
	inRunDir := func(name, content string) func(*testing.T, *fixture, *subagent) {
		return func(t *testing.T, f *fixture, s *subagent) {
			if content == "" {
				remove(t, f.runFile(s.spec.ID, name))
				return
			}
			overwrite(t, f.runFile(s.spec.ID, name), content)
		}
	}
	behind := func(t *testing.T, f *fixture, s *subagent) {
		// The run directory has the state, the bucket still the one before.
		older := s.record
		older.Seq--
		older.State = events.StateQueued
		value, err := events.MarshalRecord(older)
		require.NoError(t, err)
		_, err = f.kv.Put(f.ctx, s.spec.ID, value)
		require.NoError(t, err)
		s.revision = 0
	}
	queued := func(s *subagent) []*subagent { return nil }
	for name, c := range map[string]struct {
		advance func(*subagent) []*subagent
		lose    func(*testing.T, *fixture, *subagent)
		state   events.State
		damaged bool
		whole   bool // nothing is recovered
	}{
		"queued, record lost":           {lose: loseRecord, state: events.StateQueued},
		"queued, record torn":           {lose: spoilRecord, state: events.StateQueued},
		"active, record lost":           {advance: toActive, lose: loseRecord, state: events.StateActive},
		"active, record torn":           {advance: toActive, lose: spoilRecord, state: events.StateActive},
		"active, record behind":         {advance: toActive, lose: behind, state: events.StateActive},
		"ended, record lost":            {advance: toEnd, lose: loseRecord, state: events.StateCompleted},
		"ended, record torn":            {advance: toEnd, lose: spoilRecord, state: events.StateCompleted},
		"ended, record behind":          {advance: toEnd, lose: behind, state: events.StateCompleted},
		"ended, result lost":            {advance: toEnd, lose: inRunDir(rundir.ResultFile, ""), state: events.StateCompleted},
		"ended, result torn":            {advance: toEnd, lose: inRunDir(rundir.ResultFile, "{"), state: events.StateCompleted},
		"ended, result of another":      {advance: toEnd, lose: inRunDir(rundir.ResultFile, `{"schema":1,"id":"x"}`), state: events.StateCompleted},
		"ended, directory lost":         {advance: toEnd, lose: inRunDir("", ""), state: events.StateCompleted},
		"ended, spec lost":              {advance: toEnd, lose: inRunDir(rundir.SpecFile, ""), state: events.StateCompleted, whole: true},
		"ended, spec torn":              {advance: toEnd, lose: inRunDir(rundir.SpecFile, "{"), state: events.StateCompleted, whole: true, damaged: true},
		"queued, spec torn":             {lose: inRunDir(rundir.SpecFile, `{"schema":1,"id":"`), state: events.StateQueued, whole: true, damaged: true},
		"queued, spec lost":             {lose: inRunDir(rundir.SpecFile, ""), state: events.StateQueued, whole: true, damaged: true},
		"queued, directory lost":        {lose: inRunDir("", ""), state: events.StateQueued, whole: true, damaged: true},
		"active, spec torn":             {advance: toActive, lose: inRunDir(rundir.SpecFile, "{"), state: events.StateActive, whole: true, damaged: true},
		"active, directory lost":        {advance: toActive, lose: inRunDir("", ""), state: events.StateActive, whole: true, damaged: true},
		"active, live record file lost": {advance: toActive, lose: inRunDir(rundir.RecordFile, ""), state: events.StateActive, whole: true},
		"nothing":                       {advance: toEnd, lose: func(*testing.T, *fixture, *subagent) {}, state: events.StateCompleted, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, t.TempDir())
			s, untouched := newSubagent(), newSubagent()
			f.put(t, untouched)
			f.put(t, s)
			if c.advance == nil {
				c.advance = queued
			}
			for _, next := range c.advance(s) {
				f.put(t, next)
			}
			c.lose(t, f, s)

			f = f.restart(t)
			l := f.load(t)
			require.Len(t, l.Records, 2)
			got := l.Records[0]
			if got.Record.ID != s.spec.ID {
				got = l.Records[1]
			}
			require.NotZero(t, got.Revision)
			if s.revision != 0 {
				require.Equal(t, s.revision, got.Revision)
			}
			want := s.record
			require.Equal(t, c.state, want.State)
			require.Equal(t, want, got.Record)
			var recovered, damaged []string
			if !c.whole {
				recovered = []string{s.spec.ID}
			}
			if c.damaged {
				damaged = []string{s.spec.ID}
			}
			require.Equal(t, recovered, l.Recovered)
			require.Equal(t, damaged, l.Damaged)
			switch {
			case c.state == events.StateCompleted || c.damaged:
				require.Nil(t, got.Spec)
			default:
				require.Equal(t, &s.spec, got.Spec)
			}

			// The next start finds it whole, and what was restored can be gone on with.
			f = f.restart(t)
			again := f.load(t)
			require.Empty(t, again.Recovered)
			require.Equal(t, l.Records, again.Records)
			require.Equal(t, damaged, again.Damaged, "damage is named until it is gone")
			s.revision = got.Revision
			s.record.Seq += 10
			f.put(t, s.completed())
		})
	}
}

func toActive(s *subagent) []*subagent { return []*subagent{s.active()} }

func toEnd(s *subagent) []*subagent { return []*subagent{s.active().completed()} }

// A subagent of which only the spec and what it wrote are left is not started
// again.
func TestStartedIsNotQueuedAgain(t *testing.T) {
	f := open(t, t.TempDir())
	s := newSubagent()
	f.put(t, s)
	require.NoError(t, f.bucket.Purge(f.ctx))
	overwrite(t, f.runFile(s.spec.ID, rundir.StdoutFile), "hi\n")
	l := f.restart(t).load(t)
	require.Equal(t, []string{s.spec.ID}, l.Recovered)
	require.Equal(t, events.StatePending, l.Records[0].Record.State)
	require.Nil(t, l.Records[0].Record.Process)
}

func TestDirectoriesWithoutARecord(t *testing.T) {
	f := open(t, t.TempDir())
	unfinished, output, spec := events.NewID(), events.NewID(), events.NewID()
	for _, id := range []string{unfinished, output, spec} {
		require.NoError(t, os.Mkdir(f.runFile(id, ""), 0o700))
	}
	overwrite(t, f.runFile(unfinished, "."+rundir.SpecFile+".tmp"), "{")
	overwrite(t, f.runFile(output, rundir.StdoutFile), "hi\n")
	overwrite(t, f.runFile(spec, rundir.SpecFile), "{")
	f = f.restart(t)
	l := f.load(t)
	require.Empty(t, l.Recovered)
	require.ElementsMatch(t, []string{output, spec}, l.Damaged)
	requireLost(t, l, output, spec)
	require.NoDirExists(t, f.runFile(unfinished, ""), "its making was interrupted: nothing was accepted")
	require.DirExists(t, f.runFile(output, ""), "damage is kept")
}

func TestRecordThatCannotBeReadWithoutADirectory(t *testing.T) {
	f := open(t, t.TempDir())
	id := events.NewID()
	for key, value := range map[string]string{id: "{", "stranger": "x"} {
		_, err := f.kv.Put(f.ctx, key, []byte(value))
		require.NoError(t, err)
	}
	l := f.load(t)
	requireLost(t, l, id)
	require.NotZero(t, l.Records[0].Revision)
	require.Equal(t, []string{id}, l.Damaged)
	require.Equal(t, []string{id}, f.restart(t).load(t).Damaged, "damage is named until it is gone")
}

// requireLost requires that failed records stand for what cannot be read, so
// that the coordinator knows that the ids are taken.
func requireLost(t *testing.T, l Loaded, ids ...string) {
	t.Helper()
	var got []string
	for _, s := range l.Records {
		got = append(got, s.Record.ID)
		require.Equal(t, events.StatusFailed, s.Record.Status)
		require.Equal(t, events.CodeStoreDamaged, s.Record.Error.Code)
		require.NotNil(t, s.Record.ReadAt)
	}
	require.ElementsMatch(t, ids, got)
}

// A stream whose description is damaged is made anew around its messages.
func TestDamagedDescription(t *testing.T) {
	for _, stream := range []string{bucketStream, events.FeedStream} {
		for _, file := range []string{"meta.inf", "meta.sum"} {
			t.Run(stream+" "+file, func(t *testing.T) {
				f := open(t, t.TempDir())
				s := newSubagent()
				f.put(t, s)
				f.put(t, s.active().completed())
				require.NoError(t, f.Publish(f.ctx, events.FeedEvent{Seq: 1, SubagentID: s.spec.ID, State: events.StateQueued}))
				f.stop(t)
				overwrite(t, filepath.Join(f.dir, "jetstream/jetstream/$G/streams", stream, file), "{")
				// Not from the other witness.
				remove(t, f.runFile(s.spec.ID, rundir.ResultFile))

				f = open(t, f.dir)
				l := f.load(t)
				require.Equal(t, []coordinator.Stored{s.stored()}, l.Records)
				require.ElementsMatch(t, []string{s.spec.ID, stream}, l.Recovered)
				feed, err := f.js.Stream(f.ctx, events.FeedStream)
				require.NoError(t, err)
				require.EqualValues(t, 1, feed.CachedInfo().State.Msgs)

				require.Empty(t, f.restart(t).load(t).Recovered)
			})
		}
	}
}

// The server drops what it cannot read of its own files and only logs that. The
// run directories bring it back.
func TestTruncatedStore(t *testing.T) {
	const count = 90
	f := open(t, t.TempDir())
	want := make([]coordinator.Stored, count)
	for i := range count {
		s := newSubagent()
		f.put(t, s)
		switch i % 3 {
		case 1:
			f.put(t, s.active())
		case 2:
			f.put(t, s.active().completed())
		}
		want[i] = s.stored()
	}
	f.stop(t)
	blocks, err := filepath.Glob(filepath.Join(f.dir, "jetstream", "jetstream", "*", "streams", bucketStream, "msgs", "*.blk"))
	require.NoError(t, err)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		st, err := os.Stat(block)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(block, st.Size()/2))
	}

	f = open(t, f.dir)
	l := f.load(t)
	require.NotEmpty(t, l.Recovered, "the test has to lose something")
	require.Empty(t, l.Damaged)
	require.Len(t, l.Records, count)
	for i := range want {
		want[i].Revision = l.Records[i].Revision
		require.NotZero(t, want[i].Revision)
	}
	require.Equal(t, want, l.Records)
}

func TestMissingBucketIsDamage(t *testing.T) {
	f := open(t, t.TempDir())
	s := newSubagent()
	f.put(t, s)
	f.stop(t)
	remove(t, filepath.Join(f.dir, "jetstream"))

	f = prepare(t, f.dir)
	_, err := Open(f.ctx, f.nc, f.root, nil)
	require.True(t, events.HasCode(err, events.CodeStoreDamaged), "%v", err)
	require.ErrorContains(t, err, f.root.Path())
	_, err = f.js0(t).KeyValue(f.ctx, events.Bucket)
	require.ErrorIs(t, err, jetstream.ErrBucketNotFound, "no fresh bucket was made")
	require.FileExists(t, f.runFile(s.spec.ID, rundir.SpecFile))
}

func (f *fixture) js0(t *testing.T) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(f.nc)
	require.NoError(t, err)
	return js
}

func TestMissingFeedBeginsAnew(t *testing.T) {
	f := open(t, t.TempDir())
	s := newSubagent()
	f.put(t, s)
	require.NoError(t, f.js.DeleteStream(f.ctx, events.FeedStream))
	f = f.restart(t)
	require.Len(t, f.load(t).Records, 1)
	require.NotEmpty(t, f.logs.FilterMessageSnippet("begins anew").All())
	require.NoError(t, f.Publish(f.ctx, events.FeedEvent{Seq: 1, SubagentID: s.spec.ID, State: events.StateQueued}))
}

func TestClip(t *testing.T) {
	require.Equal(t, "ab", clip("ab", 3))
	require.Equal(t, strings.Repeat("é", 2), clip(strings.Repeat("é", 5), 5))
}
