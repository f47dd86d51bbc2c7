package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
)

// Delete implements [coordinator.Journal]. It is decided once the directory is
// condemned; the next start finishes what is interrupted after that.
func (s *Store) Delete(ctx context.Context, id string, revision uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.writable(ctx); err != nil {
		return s.failure(ctx, "delete the record of", id, err)
	}
	if err := s.root.Condemn(id); err != nil {
		return s.failure(ctx, "delete the record of", id, err)
	}
	crashpoint.Hit(crashpoint.Condemned)
	if err := s.forget(ctx, id, revision); err != nil {
		if isConflict(err) {
			err = conflict(id, err)
		} else {
			err = s.failure(ctx, "delete the record of", id, err)
		}
		return errors.Join(err, s.root.Reprieve(id))
	}
	crashpoint.Hit(crashpoint.RecordDeleted)
	s.dropDoubt(id)
	err := s.root.Purge(id)
	crashpoint.Hit(crashpoint.Purged)
	return err
}

// forget removes id from the bucket; revision 0 is any. A record that is not
// there any more was removed by an attempt that was not answered.
//
// The mark that a deletion leaves stays for a while: the server remembers only
// lazily which messages it dropped, so without the mark the record would be there
// again after a crash.
func (s *Store) forget(ctx context.Context, id string, revision uint64) error {
	ctx, cancel := s.guard(ctx)
	defer cancel()
	err := s.kv.Delete(ctx, id, jetstream.LastRevision(revision))
	if isConflict(err) {
		if _, there := s.kv.Get(ctx, id); errors.Is(there, jetstream.ErrKeyNotFound) {
			return nil
		}
	}
	return err
}

// markAge is how long the mark of a deletion stays; the server has then long
// written down what it dropped.
const markAge = time.Hour

// removeMarks removes the marks of deletions long ago. They take little space and
// mean nothing, so a failure is only told.
func (s *Store) removeMarks(ctx context.Context, ids []string) {
	for _, id := range ids {
		if err := s.bucket.Purge(ctx, jetstream.WithPurgeSubject("$KV."+events.Bucket+"."+id)); err != nil {
			s.log.Warn("remove the mark of a deleted record", zap.String("id", id), zap.Error(err))
			return
		}
	}
}

// finishRemovals removes what was condemned. A directory that is there again is
// of a later subagent with the same id, or of a later attempt; then the record
// is not the condemned one's.
func (s *Store) finishRemovals(ctx context.Context) error {
	ids, err := s.root.Condemned()
	if err != nil {
		return err
	}
	for _, id := range ids {
		d, err := s.root.Open(id)
		switch {
		case err == nil:
			if err := d.Close(); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrNotExist):
			return err
		default:
			if err := s.forget(ctx, id, 0); err != nil {
				return s.failure(ctx, "finish the removal of", id, err)
			}
		}
		if err := s.root.Purge(id); err != nil {
			return err
		}
	}
	return nil
}

// PutGate implements [coordinator.Journal].
func (s *Store) PutGate(ctx context.Context, g events.Gate) error {
	s.gates.Lock() // a removal may write a gate that a cancel writes as well
	err := s.root.WriteGate(g)
	s.gates.Unlock()
	crashpoint.Hit(crashpoint.GateWritten)
	if err != nil {
		return s.failure(ctx, fmt.Sprintf("write the gate of prompt %s of session %s", g.Prompt, g.Session), "", err)
	}
	return nil
}

// DeleteGate implements [coordinator.Journal].
func (s *Store) DeleteGate(ctx context.Context, session, prompt string) error {
	s.gates.Lock()
	defer s.gates.Unlock()
	if err := s.root.RemoveGate(session, prompt); err != nil {
		return s.failure(ctx, fmt.Sprintf("remove the gate of prompt %s of session %s", prompt, session), "", err)
	}
	return nil
}
