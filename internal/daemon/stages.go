package daemon

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

// stages is the journal with those who watch what becomes durable: each step of
// each subagent is told once, on the goroutine that wrote it, and never on the
// drain loop.
type stages struct {
	coordinator.Journal
	// wrote is told of every write of a record.
	wrote func(took time.Duration, err error)
	// watchers are told of every step; they must not block.
	watchers []func(step)

	mu sync.Mutex
	// live holds how far those have come that have not ended; guarded by mu.
	live map[string]progress
}

// progress is how far a live subagent has come durably.
type progress struct{ admitted, started bool }

func progressOf(r *events.Record) progress { return progress{r.PendingAt != nil, r.StartedAt != nil} }

// step is what became durable of a subagent with one write. States of a record
// may coalesce, so one step may be several of these.
type step struct {
	record                                   *events.Record
	accepted, admitted, started, ended, read bool
}

// restore notes what an earlier coordinator made durable.
func (s *stages) restore(stored []coordinator.Stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range stored {
		if r := &stored[i].Record; r.Live() {
			s.live[r.ID] = progressOf(r)
		}
	}
}

// Put implements [coordinator.Journal].
func (s *stages) Put(ctx context.Context, p coordinator.Put) (uint64, error) {
	began := time.Now()
	revision, err := s.Journal.Put(ctx, p)
	s.wrote(time.Since(began), err)
	if err != nil {
		return revision, err
	}
	st := s.step(&p.Record, p.Revision == 0)
	for _, watch := range s.watchers {
		watch(st)
	}
	return revision, nil
}

// step compares a durable state with the one before.
func (s *stages) step(r *events.Record, first bool) step {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, wasLive := s.live[r.ID]
	now := progressOf(r)
	if r.Live() {
		s.live[r.ID] = now
	} else {
		delete(s.live, r.ID)
	}
	st := step{record: r, accepted: first}
	if wasLive || first {
		st.admitted = now.admitted && !before.admitted
		st.started = now.started && !before.started
		st.ended = !r.Live()
	}
	// A record that was read does not change any more.
	st.read = !r.Live() && r.ReadAt != nil
	return st
}

// logSteps is a watcher that logs what becomes of each subagent, for who asks for
// the debug level.
func logSteps(log *zap.Logger) func(step) {
	return func(s step) {
		for _, told := range []struct {
			is   bool
			what string
		}{{s.accepted, "accepted"}, {s.started, "started"}, {s.ended, "ended"}, {s.read, "read"}} {
			entry := log.Check(zap.DebugLevel, told.what)
			if !told.is || entry == nil {
				continue
			}
			r := s.record
			fields := []zap.Field{zap.String("id", r.ID), zap.String("session", r.ParentSessionID), zap.Int("run", r.Run)}
			if s.ended {
				fields = append(fields, zap.String("status", string(r.Status)), zap.String("reason", string(r.Reason)))
			}
			entry.Write(fields...)
		}
	}
}
