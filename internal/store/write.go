package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/diskspace"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// Put implements [coordinator.Journal].
func (s *Store) Put(ctx context.Context, p coordinator.Put) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	id := p.Record.ID
	value, err := events.MarshalRecord(p.Record)
	if err != nil {
		return 0, err
	}
	first := p.Revision == 0
	if err := s.space(id, first && p.Record.Live()); err != nil {
		return 0, err
	}
	made, err := s.witness(ctx, p)
	if err != nil {
		err = s.failure(ctx, "write the run directory of", id, err)
	}
	var revision uint64
	if err == nil {
		revision, err = s.write(ctx, id, value, p.Revision)
		crashpoint.Hit(crashpoint.RecordPut)
	}
	if err != nil && made {
		s.withdraw(id)
	}
	return revision, err
}

// witness writes the record's run directory; made is that of directory.
func (s *Store) witness(ctx context.Context, p coordinator.Put) (made bool, err error) {
	r := &p.Record
	first := p.Revision == 0 && p.Spec != nil
	if !first && r.Live() && r.Process == nil {
		return false, nil
	}
	d, made, err := s.directory(ctx, r.ID, first)
	if err != nil {
		return false, err
	}
	if first {
		err = d.WriteSpec(*p.Spec)
		crashpoint.Hit(crashpoint.SpecWritten)
	}
	switch {
	case err != nil:
	case !r.Live():
		err = d.WriteResult(*r)
		crashpoint.Hit(crashpoint.ResultWritten)
	case r.Process != nil:
		err = d.WriteRecord(*r)
	}
	return made, errors.Join(err, d.Close())
}

// directory opens id's run directory, and makes it for the first write. made
// says that a first write made it, so that it goes if the record is refused; one
// that is made anew for an accepted record stays.
func (s *Store) directory(ctx context.Context, id string, first bool) (d *rundir.Dir, made bool, err error) {
	if !first {
		d, err = s.root.Open(id)
		if !errors.Is(err, fs.ErrNotExist) {
			return d, false, err
		}
		s.log.Warn("the run directory is gone and is made anew", zap.String("id", id))
		d, err = s.root.Create(id)
		return d, false, err
	}
	d, err = s.root.Create(id)
	if !errors.Is(err, fs.ErrExist) {
		return d, err == nil, err
	}
	// It is of an earlier attempt that was not answered, or the id is taken. Then
	// nothing in it may be touched.
	if _, err := s.kv.Get(ctx, id); err == nil && s.doubt(id) == nil {
		return nil, false, conflict(id, jetstream.ErrKeyExists)
	} else if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, false, err
	}
	d, err = s.root.Open(id)
	return d, false, err
}

// withdraw takes a directory back whose record could not be put. If the record
// is in the bucket all the same, the next start removes it with the directory.
func (s *Store) withdraw(id string) {
	err := s.root.Condemn(id)
	if err == nil && s.doubt(id) == nil {
		err = s.root.Purge(id)
	}
	if err != nil {
		s.log.Error("take the run directory of a refused record back", zap.String("id", id), zap.Error(err))
	}
}

// write puts value in place of revision.
func (s *Store) write(ctx context.Context, id string, value []byte, revision uint64) (uint64, error) {
	if err := s.writable(ctx); err != nil {
		return 0, s.failure(ctx, "put the record of", id, err)
	}
	ctx, cancel := s.guard(ctx)
	defer cancel()
	next, err := s.compareAndSet(ctx, id, value, revision)
	if isConflict(err) {
		next, err = s.resolve(ctx, id, value, err)
	}
	switch {
	case err == nil:
		if s.dropDoubt(id) {
			// A first write of it that was not answered may have been withdrawn.
			if err := s.root.Purge(id); err != nil {
				s.log.Error("remove a withdrawn run directory", zap.String("id", id), zap.Error(err))
			}
		}
		return next, nil
	case isConflict(err):
		return 0, conflict(id, err)
	case unanswered(err):
		s.addDoubt(id, value)
	}
	return 0, s.failure(ctx, "put the record of", id, err)
}

func (s *Store) compareAndSet(ctx context.Context, id string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return s.kv.Create(ctx, id, value)
	}
	return s.kv.Update(ctx, id, value, revision)
}

// resolve handles a conflict: when what stands there is this write, or an
// earlier one of ours that was not answered, there is no second writer.
func (s *Store) resolve(ctx context.Context, id string, value []byte, cause error) (uint64, error) {
	ours := s.doubt(id)
	if ours == nil {
		return 0, cause
	}
	e, err := s.kv.Get(ctx, id)
	switch {
	case err != nil:
		return 0, fmt.Errorf("look who wrote it: %w", err)
	case bytes.Equal(e.Value(), value):
		return e.Revision(), nil
	case slices.ContainsFunc(ours, func(v []byte) bool { return bytes.Equal(e.Value(), v) }):
		return s.compareAndSet(ctx, id, value, e.Revision())
	}
	return 0, cause
}

func (s *Store) doubt(id string) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubts[id]
}

// addDoubt remembers a value whose write was not answered. Retries repeat the
// same value, so there are at most as many as states.
func (s *Store) addDoubt(id string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.doubts[id], func(v []byte) bool { return bytes.Equal(v, value) }) {
		s.doubts[id] = append(slices.Clip(s.doubts[id]), value)
	}
}

// dropDoubt forgets the doubts about id and reports whether there were any.
func (s *Store) dropDoubt(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, doubted := s.doubts[id]
	delete(s.doubts, id)
	return doubted
}

// Publish implements [coordinator.Publisher]. A repeated event is stored once.
func (s *Store) Publish(ctx context.Context, e events.FeedEvent) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	data, err := events.Marshal(e)
	if err != nil {
		return err
	}
	if err := s.writable(ctx); err != nil {
		return s.failure(ctx, "publish an event of", e.SubagentID, err)
	}
	ctx, cancelGuard := s.guard(ctx)
	defer cancelGuard()
	_, err = s.js.Publish(ctx, events.FeedSubject(e.SubagentID, e.State), data,
		jetstream.WithMsgID(fmt.Sprintf("%s.%d.%d", e.SubagentID, e.Run, e.Seq)))
	if err != nil {
		return s.failure(ctx, "publish an event of", e.SubagentID, err)
	}
	return nil
}

// writable reopens the streams if a write failed and there is space again. One
// caller does it, the others wait for it.
func (s *Store) writable(ctx context.Context) error {
	if s.backend == nil || s.backend.StoreHealth().Err() == nil {
		return nil
	}
	select {
	case s.reopening <- struct{}{}:
		defer func() { <-s.reopening }()
	case <-ctx.Done():
		return ctx.Err()
	}
	health := s.backend.StoreHealth()
	if health.Err() == nil {
		return nil
	}
	free, size, err := s.root.Free()
	if err != nil {
		return err
	}
	// Reopening writes as well, so there must be more than the rest.
	if _, rest := diskspace.Store(size); free < 2*rest {
		return fmt.Errorf("the store stopped: %w", errors.Join(context.Cause(health), unix.ENOSPC))
	}
	s.log.Warn("reopen the store", zap.NamedError("cause", context.Cause(health)))
	return s.backend.ReopenStore(ctx)
}

// guard returns ctx, ended as soon as the streams stop taking writes: such a
// write is never answered.
func (s *Store) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.backend == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	health := s.backend.StoreHealth()
	stop := context.AfterFunc(health, func() { cancel(context.Cause(health)) })
	return ctx, func() { stop(); cancel(nil) }
}

// failure is err with its operation, id and code.
func (s *Store) failure(ctx context.Context, what, id string, err error) error {
	var typed *events.Error
	if errors.As(err, &typed) {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(err, cause)
	}
	if id != "" {
		what += " " + id
	}
	if noSpace(err) {
		return full(events.Errorf(events.CodeStorageFull, events.LayerCoordinator, "%s: %w", what, err), s.root.Path())
	}
	return events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "%s: %w", what, err)
}

func conflict(id string, err error) *events.Error {
	return events.Errorf(events.CodeStoreConflict, events.LayerCoordinator,
		"put the record of %s: somebody else wrote it: %w", id, err).
		WithRemedy("let only one coordinator use the state directory")
}

func isConflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// unanswered reports whether the write may have happened although it failed.
func unanswered(err error) bool {
	var refused jetstream.JetStreamError
	return !errors.As(err, &refused) && !errors.Is(err, jetstream.ErrNoStreamResponse) && !errors.Is(err, nats.ErrNoResponders)
}

// The server's codes for a store that reached its bound.
const (
	insufficientResources    jetstream.ErrorCode = 10023
	storageResourcesExceeded jetstream.ErrorCode = 10047
)

// noSpace recognizes a full disk in errors of the system, in the server's codes
// and in what it logs.
func noSpace(err error) bool {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return true
	}
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == insufficientResources || api.ErrorCode == storageResourcesExceeded) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, unix.ENOSPC.Error()) || strings.Contains(text, unix.EDQUOT.Error())
}
