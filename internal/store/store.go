package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/deadlines"
	"github.com/hayward-dev/hayward/internal/diskspace"
	"github.com/hayward-dev/hayward/internal/rundir"
)

const (
	// feedAge and feedMessages bound the feed.
	feedAge      = 30 * 24 * time.Hour
	feedMessages = 1_000_000
	// feedDuplicates is how long a repeated event is recognized.
	feedDuplicates = 2 * time.Minute

	// bucketStream is the stream beneath the bucket.
	bucketStream = "KV_" + events.Bucket
)

// Backend is what the store needs of the server beneath its connection in order
// to come back from a full disk.
type Backend interface {
	// StoreHealth returns a context that ends when a stream stopped taking writes;
	// its cause says why. ReopenStore replaces it.
	StoreHealth() context.Context
	// ReopenStore closes the streams and opens them again.
	ReopenStore(ctx context.Context) error
	// SalvageStream puts the unreadable description of a stream that was not
	// opened aside, so that making the stream finds its messages. It returns false
	// if there are none.
	SalvageStream(name string) (bool, error)
}

// Option changes a [Store].
type Option func(*Store)

// WithBackend lets the store notice failed writes at once and reopen the
// streams, and make a stream anew whose description is damaged. Without it such
// a write runs into its deadline, and only a restart helps.
func WithBackend(b Backend) Option { return func(s *Store) { s.backend = b } }

// WithDeferredSync leaves the syncs of run directories to [Store.Sync], as a server
// without SyncAlways leaves those of the bucket to a timer.
func WithDeferredSync() Option { return func(s *Store) { s.root = s.root.Deferred() } }

// WithWriteTimeout bounds a write to the bucket or the feed.
func WithWriteTimeout(d time.Duration) Option { return func(s *Store) { s.timeout = d } }

// Store implements [coordinator.Journal] and [coordinator.Publisher].
type Store struct {
	root    rundir.Root
	log     *zap.Logger
	js      jetstream.JetStream
	kv      jetstream.KeyValue
	bucket  jetstream.Stream
	backend Backend
	timeout time.Duration // of one write
	markAge time.Duration // of the mark of a deletion
	// reopening holds one token: who has it reopens the streams.
	reopening chan struct{}

	// salvaged are the streams that Open had to describe anew.
	salvaged []string

	// gates is held while a gate is written or removed.
	gates sync.Mutex

	// mu guards doubts.
	mu sync.Mutex
	// doubts are the values whose write was not answered, by id, until the next
	// write of that id succeeds.
	doubts map[string][][]byte
}

var (
	_ coordinator.Journal   = (*Store)(nil)
	_ coordinator.Publisher = (*Store)(nil)
)

// Open opens the bucket and the feed, and makes them on the first start. nc and
// root stay the caller's.
func Open(ctx context.Context, nc *nats.Conn, root rundir.Root, log *zap.Logger, opts ...Option) (*Store, error) {
	if log == nil {
		log = zap.NewNop()
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{root: root, log: log, js: js, timeout: deadlines.Default().Put, markAge: markAge, reopening: make(chan struct{}, 1), doubts: make(map[string][][]byte)}
	for _, o := range opts {
		o(s)
	}
	fresh, err := s.openBucket(ctx)
	if err != nil {
		return nil, err
	}
	if s.bucket, err = js.Stream(ctx, bucketStream); err != nil {
		return nil, s.failure(ctx, "open the bucket", "", err)
	}
	if err := s.openFeed(ctx, fresh); err != nil {
		return nil, err
	}
	return s, nil
}

// Sync makes durable in the run directories what was put before.
func (s *Store) Sync() error { return s.root.Sync() }

func (s *Store) openBucket(ctx context.Context) (fresh bool, err error) {
	s.kv, err = s.js.KeyValue(ctx, events.Bucket)
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return false, s.failure(ctx, "open the bucket", "", err)
	}
	salvaged, err := s.salvage(bucketStream)
	if err != nil {
		return false, err
	}
	ids, err := s.root.List()
	if err != nil {
		return false, fmt.Errorf("open store: %w", err)
	}
	if len(ids) > 0 && !salvaged {
		return false, events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator,
			"open store: the bucket %s is missing, but there are run directories of %d subagents", events.Bucket, len(ids)).
			WithRemedy("restore the store's directory from a copy, or move %s away to begin anew", s.root.Path()).
			WithDetail("run_directories", s.root.Path())
	}
	s.kv, err = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: events.Bucket, Description: "Hayward: one record for each subagent",
		History: 1, Storage: jetstream.FileStorage, Replicas: 1,
	})
	if err != nil {
		return false, s.failure(ctx, "create the bucket", "", err)
	}
	return !salvaged, nil
}

// salvage lets a stream that the server did not open be made anew around the
// messages that are there. What they lack, [Store.Load] finds.
func (s *Store) salvage(stream string) (bool, error) {
	if s.backend == nil {
		return false, nil
	}
	found, err := s.backend.SalvageStream(stream)
	if err != nil {
		return false, events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "open store: salvage %s: %w", stream, err)
	}
	if found {
		s.log.Error("the description of a stream was damaged and is made anew", zap.String("stream", stream))
		s.salvaged = append(s.salvaged, stream)
	}
	return found, nil
}

func (s *Store) openFeed(ctx context.Context, fresh bool) error {
	if !fresh {
		if _, err := s.js.Stream(ctx, events.FeedStream); errors.Is(err, jetstream.ErrStreamNotFound) {
			salvaged, err := s.salvage(events.FeedStream)
			if err != nil {
				return err
			}
			if !salvaged {
				s.log.Warn("the feed's stream is missing and begins anew", zap.String("stream", events.FeedStream))
			}
		}
	}
	_, err := s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: events.FeedStream, Description: "Hayward: state changes of subagents",
		Subjects: []string{events.FeedSubjects}, Storage: jetstream.FileStorage, Replicas: 1,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
		MaxAge: feedAge, MaxMsgs: feedMessages, Duplicates: feedDuplicates, AllowDirect: true,
	})
	if err != nil {
		return s.failure(ctx, "open the feed", "", err)
	}
	return nil
}

// space checks the free space for a write; fresh is one of a new record.
func (s *Store) space(id string, fresh bool) error {
	free, size, err := s.root.Free()
	if err != nil {
		return events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "store %s: %w", id, err)
	}
	reserve, rest := diskspace.Store(size)
	need := rest
	if fresh {
		need = reserve
	}
	if free >= need {
		return nil
	}
	return full(events.Errorf(events.CodeStorageFull, events.LayerCoordinator,
		"store %s: %d bytes are free and %d have to stay free", id, free, need), s.root.Path())
}

func full(e *events.Error, path string) *events.Error {
	return e.WithRemedy("free space on the disk of %s", path)
}
