package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

// Loaded is what a start finds.
type Loaded struct {
	// Records are sorted by id. A live one whose spec is lost has none and is in
	// Damaged; so is one that stands for a record of which nothing can be read.
	Records []coordinator.Stored
	// Gates are the cancelled prompts.
	Gates []events.Gate
	// Recovered are the ids of which one witness was missing, unreadable or behind
	// and was restored from the other.
	Recovered []string
	// Damaged are the ids of which something is lost for good. The log says what.
	Damaged []string
}

// entry is a key of the bucket.
type entry struct {
	record   events.Record
	revision uint64
	// err says why record is not to be used.
	err error
}

// Load reads all records, compares them with the run directories and restores
// what one of them lacks. It also finishes removals that were interrupted.
func (s *Store) Load(ctx context.Context) (Loaded, error) {
	if err := s.finishRemovals(ctx); err != nil {
		return Loaded{}, fmt.Errorf("load store: %w", err)
	}
	gates, torn, err := s.root.Gates()
	if err != nil {
		return Loaded{}, fmt.Errorf("load store: %w", err)
	}
	for _, err := range torn {
		s.log.Error("a gate cannot be read, its prompt is open", zap.Error(err))
	}
	bucket, marks, err := s.entries(ctx)
	if err != nil {
		return Loaded{}, fmt.Errorf("load store: %w", err)
	}
	s.removeMarks(ctx, marks)
	ids, err := s.root.List()
	if err != nil {
		return Loaded{}, fmt.Errorf("load store: %w", err)
	}
	for id := range bucket {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	loaded := Loaded{Records: make([]coordinator.Stored, 0, len(ids)), Gates: gates, Recovered: s.salvaged}
	for _, err := range torn {
		loaded.Damaged = append(loaded.Damaged, err.Error())
	}
	for _, id := range slices.Compact(ids) {
		if err := ctx.Err(); err != nil {
			return Loaded{}, fmt.Errorf("load store: %w", err)
		}
		c := comparison{store: s, id: id, entry: bucket[id], log: s.log.With(zap.String("id", id))}
		found, err := c.reconcile(ctx)
		if err != nil {
			return Loaded{}, fmt.Errorf("load store: %w", err)
		}
		if found {
			loaded.Records = append(loaded.Records, c.stored)
		}
		if c.recovered {
			loaded.Recovered = append(loaded.Recovered, id)
		}
		if c.damaged {
			loaded.Damaged = append(loaded.Damaged, id)
		}
	}
	return loaded, nil
}

// entries reads the whole bucket. marks are ids that were deleted long ago.
func (s *Store) entries(ctx context.Context) (_ map[string]*entry, marks []string, err error) {
	w, err := s.kv.WatchAll(ctx)
	if err != nil {
		return nil, nil, s.failure(ctx, "read the bucket", "", err)
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	all := make(map[string]*entry)
	for {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case kv, open := <-w.Updates():
			switch {
			case !open:
				return nil, nil, s.failure(ctx, "read the bucket", "", errors.New("the connection was closed"))
			case kv == nil:
				return all, marks, nil
			case kv.Operation() != jetstream.KeyValuePut:
				if time.Since(kv.Created()) > s.markAge {
					marks = append(marks, kv.Key())
				}
			case !events.ValidID(kv.Key()):
				s.log.Warn("the bucket has a key that is no id", zap.String("key", kv.Key()))
			default:
				all[kv.Key()] = decode(kv)
			}
		}
	}
}

func decode(kv jetstream.KeyValueEntry) *entry {
	e := &entry{revision: kv.Revision()}
	if e.err = events.DecodeRecord(kv.Value(), &e.record); e.err == nil && e.record.ID != kv.Key() {
		e.err = fmt.Errorf("the record names id %q", e.record.ID)
	}
	return e
}
