package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// DiscardResult says what was thrown away.
type DiscardResult struct {
	ID         string `json:"subagent_id"`
	Repository string `json:"repository,omitempty"`
	// Lost says what nothing holds any more.
	Lost []string `json:"lost,omitempty"`
	// Commit is what it left. It can be read until git prunes it.
	Commit string `json:"commit,omitempty"`
}

// DiscardEnded removes the directory, the refs and the record of an ended subagent.
// Without force it refuses if changes were neither applied nor made a branch, or
// if the directory holds what nothing else does.
func (r Root) DiscardEnded(ctx context.Context, id string, force bool) (DiscardResult, *events.Error) {
	res := DiscardResult{ID: id}
	rec, err := r.Read(id)
	if err != nil {
		if _, statErr := os.Lstat(r.Dir(id)); !events.ValidID(id) || errors.Is(statErr, fs.ErrNotExist) {
			return res, err
		}
		return res, r.discardUnknown(id, force, err)
	}
	res.Repository = rec.Repository
	if gone(rec.CommonDir) {
		return res, r.discardWithoutRepository(rec, force)
	}
	if rec.State == StateMaking {
		return res, r.discardUnmade(ctx, rec)
	}
	rec, unlock, err := r.hold(ctx, id)
	if err != nil {
		return res, err
	}
	defer unlock()
	if _, err := r.recoverApplies(rec.CommonDir); err != nil {
		return res, err
	}
	if rec, err = r.Read(id); err != nil {
		return res, err
	}
	if rec.State != StateDiscarded {
		if res.Lost, err = r.lostBy(ctx, rec); err != nil && !force {
			return res, err
		}
		if len(res.Lost) > 0 && !force {
			return res, wouldLose(id, res.Lost)
		}
	}
	refs, err := ListRefs(ctx, rec.CommonDir, id)
	if err != nil {
		return res, err
	}
	res.Commit = refs["subagents/"+RefTree]
	return res, r.throwAway(ctx, rec)
}

// throwAway removes all there is of a tree. Cut off, it is taken up by the next
// discard or gc. The caller holds repository lock and lease.
func (r Root) throwAway(ctx context.Context, rec Record) *events.Error {
	rec.State, rec.DiscardedAt = StateDiscarded, time.Now().UTC()
	if err := r.Write(rec); err != nil {
		return err
	}
	if err := r.removeDirectory(rec.ID); err != nil {
		return err
	}
	if err := DeleteRefs(ctx, rec.CommonDir, rec.ID); err != nil {
		return err
	}
	return r.RemoveDirectory(rec.ID)
}

// lostBy says what of an ended subagent nothing would hold if it were discarded.
func (r Root) lostBy(ctx context.Context, rec Record) ([]string, *events.Error) {
	lost, err := r.unsaved(ctx, rec)
	if err != nil {
		return nil, err
	}
	if rec.State == StateApplied {
		return lost, nil
	}
	w, err := r.examine(ctx, rec)
	if err != nil {
		return nil, err
	}
	if !w.clean && !w.branched {
		lost = append([]string{"its changes were neither applied nor made a branch"}, lost...)
	}
	return lost, nil
}

func wouldLose(id string, lost []string) *events.Error {
	return events.Errorf(events.CodeWouldLose, events.LayerWorkspace, "worktree %s: not discarded: %s", id, strings.Join(lost, "; ")).
		WithRemedy("hayward worktree diff %s shows it, --force discards it", id)
}

// discardUnmade removes a tree whose making was cut off: nothing ever ran in it.
// One that is being made is leased.
func (r Root) discardUnmade(ctx context.Context, rec Record) *events.Error {
	repository, err := LockRepository(ctx, rec.CommonDir, rec.ID)
	if err != nil {
		return err
	}
	defer repository.Unlock()
	lease, err := r.TryLease(rec.ID)
	if err != nil {
		return err
	}
	defer lease.Unlock()
	if rec, err = r.Read(rec.ID); err != nil {
		return err
	}
	if rec.State != StateMaking {
		return stillLive(rec.ID)
	}
	if err := r.giveBack(rec); err != nil {
		return err
	}
	if err := DeleteRefs(ctx, rec.CommonDir, rec.ID); err != nil {
		return err
	}
	return r.RemoveDirectory(rec.ID)
}

// discardUnknown removes a directory of which nobody knows what it is.
func (r Root) discardUnknown(id string, force bool, unread *events.Error) *events.Error {
	if !force {
		return wouldLose(id, []string{"nothing tells what its directory holds: " + unread.Message})
	}
	lease, err := r.TryLease(id)
	if err != nil {
		return err
	}
	defer lease.Unlock()
	return r.RemoveDirectory(id)
}

// discardWithoutRepository removes what is left when the repository is gone.
func (r Root) discardWithoutRepository(rec Record, force bool) *events.Error {
	if rec.State == StateLive {
		return stillLive(rec.ID)
	}
	if !force {
		return wouldLose(rec.ID, []string{"its repository " + rec.CommonDir + " is gone, so only its directory holds what it did"})
	}
	lease, err := r.TryLease(rec.ID)
	if err != nil {
		return err
	}
	defer lease.Unlock()
	return r.RemoveDirectory(rec.ID)
}

// gone reports whether a path certainly is not there.
func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
