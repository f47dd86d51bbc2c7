package store

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

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

// sumSeed is that of the sums that are compared within one process.
var sumSeed = maphash.MakeSeed()

// entry is a key of the bucket.
type entry struct {
	record   events.Record
	revision uint64
	// sum is that of the value, under the seed of all sums.
	sum uint64
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
	compared, err := s.compareAll(ctx, slices.Compact(ids), bucket)
	if err != nil {
		return Loaded{}, fmt.Errorf("load store: %w", err)
	}
	for i := range compared {
		c := &compared[i]
		if c.found {
			loaded.Records = append(loaded.Records, c.stored)
		}
		if c.recovered {
			loaded.Recovered = append(loaded.Recovered, c.id)
		}
		if c.damaged {
			loaded.Damaged = append(loaded.Damaged, c.id)
		}
	}
	return loaded, nil
}

// compareAll compares the witnesses of each id, several ids at once: most of it is
// waiting for the file system.
func (s *Store) compareAll(ctx context.Context, ids []string, bucket map[string]*entry) ([]comparison, error) {
	all := make([]comparison, len(ids))
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range min(2*runtime.GOMAXPROCS(0), len(ids)) {
		workers.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(ids) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				c := &all[i]
				*c = comparison{store: s, id: ids[i], entry: bucket[ids[i]], log: s.log}
				if err := c.compare(ctx); err != nil {
					return err
				}
			}
		})
	}
	return all, workers.Wait()
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
	e := &entry{revision: kv.Revision(), sum: maphash.Bytes(sumSeed, kv.Value())}
	if e.err = events.DecodeRecord(kv.Value(), &e.record); e.err == nil && e.record.ID != kv.Key() {
		e.err = fmt.Errorf("the record names id %q", e.record.ID)
	}
	return e
}
