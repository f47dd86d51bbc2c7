package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// GCClass says what kind of left-over something is.
type GCClass string

// The classes.
const (
	GCLive       GCClass = "live"       // its subagent has not ended
	GCUnknown    GCClass = "unknown"    // nobody can tell
	GCIncomplete GCClass = "incomplete" // its making was cut off
	GCClean      GCClass = "clean"      // it changed nothing
	GCChanges    GCClass = "changes"    // its changes are in the refs only
	GCApplied    GCClass = "applied"    // its changes were applied
	GCBranched   GCClass = "branched"   // a branch of the user's holds its changes
	GCDiscarded  GCClass = "discarded"  // a discard of it was cut off
	GCRefs       GCClass = "refs"       // refs in a repository, and nothing else
)

// GCOptions widen and narrow what is collected.
type GCOptions struct {
	DryRun bool
	// OlderThan leaves what ended later than that ago.
	OlderThan time.Duration
	// Saved also removes the directories of changes that are in the refs and were
	// not applied; the refs stay.
	Saved bool
	// Ignored also removes directories that hold nothing of their own but files that
	// git ignores.
	Ignored bool
	// Refs also removes refs of applied subagents whose changes the user no longer
	// has, and in the known repositories and Repositories, by their common git
	// directory, refs of subagents that have no record here. It needs OlderThan.
	Refs         bool
	Repositories []string
}

// GCItem is one thing that was looked at.
type GCItem struct {
	ID         string  `json:"subagent_id"`
	Class      GCClass `json:"class"`
	Repository string  `json:"repository,omitempty"`
	// Directory and Refs tell what was removed, or in a dry run would be. When both
	// are gone, or there is nothing to hold, so is the record.
	Directory bool `json:"directory_removed"`
	Refs      bool `json:"refs_removed"`
	Record    bool `json:"record_removed"`
	// Bytes is what the removed directory took.
	Bytes int64 `json:"bytes,omitzero"`
	// Why says why that is safe, or why what stays stays.
	Why   string        `json:"why"`
	Error *events.Error `json:"error,omitempty"`
}

// incompleteAge is how old the directory of a spawn that was cut off must be: a
// spawn that goes on may be about to lock it.
const incompleteAge = time.Hour

// GC removes what is proven to be held elsewhere, and says of each tree what it
// did and why. What lives and what nobody knows is never touched. An item that
// failed does not keep the others from being looked at.
func (r Root) GC(ctx context.Context, o GCOptions) ([]GCItem, *events.Error) {
	if o.Refs && o.OlderThan <= 0 {
		return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "worktree: refs are collected only with an age that they must have")
	}
	ids, err := r.List()
	if err != nil {
		return nil, err
	}
	if !o.DryRun && !gone(r.path) {
		if err := r.Sweep(); err != nil {
			return nil, events.Errorf(events.CodeWorktreeFailed, events.LayerWorkspace, "worktree: finish what was being removed: %w", err)
		}
	}
	repositories := make(map[string]bool)
	for _, dir := range o.Repositories {
		repositories[dir] = true
	}
	items := []GCItem{}
	for _, id := range ids {
		if ctx.Err() != nil {
			return items, events.Errorf(events.CodeTimeout, events.LayerWorkspace, "worktree: gc: %w", context.Cause(ctx))
		}
		item, commonDir := r.collect(ctx, id, o)
		items = append(items, item)
		if commonDir != "" {
			repositories[commonDir] = true
		}
	}
	if !o.Refs {
		return items, nil
	}
	for dir := range repositories {
		more, err := r.collectRefs(ctx, dir, o)
		items = append(items, more...)
		if err != nil {
			return items, err
		}
	}
	return items, nil
}

// collect looks at one tree.
func (r Root) collect(ctx context.Context, id string, o GCOptions) (item GCItem, commonDir string) {
	item = GCItem{ID: id, Class: GCUnknown}
	rec, err := r.Read(id)
	switch {
	case events.HasCode(asError(err), events.CodeUnknownID):
		return r.collectIncomplete(id, o), ""
	case err != nil:
		item.Why = "its record cannot be read: " + err.Message
		return item, ""
	}
	item.Repository = rec.Repository
	switch {
	case rec.State == StateLive:
		item.Class, item.Why = GCLive, "its subagent has not ended"
		return item, rec.CommonDir
	case rec.State == StateMaking && !gone(rec.CommonDir):
		item.Class, item.Why = GCIncomplete, "its making was cut off, nothing ran in it"
		if !o.DryRun {
			err = r.discardUnmade(ctx, rec)
		} else if lease, busy := r.TryLease(id); busy != nil {
			err = busy
		} else {
			lease.Unlock()
		}
		switch {
		case err == nil:
			item.Directory, item.Refs, item.Record = true, true, true
		case err.Code == events.CodeBusy:
			item.Class, item.Why = GCLive, "it is being made"
		default:
			item.Error, item.Why = err, "it could not be removed"
		}
		return item, rec.CommonDir
	case gone(rec.CommonDir):
		item.Why = "its repository is gone; discard --force removes what it left"
		return item, ""
	case o.OlderThan > 0 && time.Since(rec.EndedAt) < o.OlderThan && rec.State != StateDiscarded:
		item.Class, item.Why = GCChanges, "it ended too lately"
		if rec.State == StateApplied {
			item.Class = GCApplied
		}
		return item, rec.CommonDir
	}
	rec, unlock, err := r.hold(ctx, id)
	if err == nil {
		defer unlock()
		err = r.collectHeld(ctx, rec, o, &item)
	}
	if err != nil {
		item.Error, item.Why = err, "it could not be looked at"
	}
	return item, rec.CommonDir
}

// asError keeps a nil *events.Error from becoming an error that is not nil.
func asError(err *events.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// collectHeld looks at an ended tree whose locks are held.
func (r Root) collectHeld(ctx context.Context, rec Record, o GCOptions, item *GCItem) *events.Error {
	if !o.DryRun {
		if _, err := r.recoverApplies(rec.CommonDir); err != nil {
			return err
		}
		var err *events.Error
		if rec, err = r.Read(rec.ID); err != nil {
			return err
		}
	}
	if rec.State == StateDiscarded {
		item.Class, item.Why = GCDiscarded, "it was discarded"
		item.Directory, item.Refs, item.Record = r.present(rec), true, true
		if o.DryRun {
			return nil
		}
		return r.throwAway(ctx, rec)
	}
	if !gone(r.journal(rec.ID)) {
		item.Class, item.Why = GCUnknown, "an apply of it was cut off; apply it again"
		return nil
	}
	w, err := r.examine(ctx, rec)
	if err != nil {
		return err
	}
	switch {
	case w.clean:
		item.Class, item.Why = GCClean, "it changed nothing"
	case w.branched:
		item.Class, item.Why = GCBranched, "a branch holds all that it did"
	case rec.State == StateApplied:
		item.Class, item.Why = GCApplied, "its changes are in the working tree"
	default:
		item.Class, item.Why = GCChanges, "its changes were not applied"
	}
	mayDirectory := item.Class != GCChanges || o.Saved
	mayRefs := item.Class != GCChanges && len(w.missing) == 0
	if !mayRefs && item.Class == GCApplied {
		item.Why = "its refs stay: only they hold " + strings.Join(w.missing, ", and ")
		if o.Refs {
			mayRefs, item.Why = true, "its changes were applied, and it is old enough"
		}
	}
	return r.removeCollected(ctx, rec, o, item, mayDirectory, mayRefs)
}

// removeCollected removes directory and refs where both permission and proof are
// there.
func (r Root) removeCollected(ctx context.Context, rec Record, o GCOptions, item *GCItem, mayDirectory, mayRefs bool) *events.Error {
	there := r.present(rec)
	if there {
		if !mayDirectory {
			return nil
		}
		lost, err := r.unsaved(ctx, rec)
		if err != nil {
			return err
		}
		if len(lost) > 0 && o.Ignored {
			if lost, err = r.unsavedButIgnored(ctx, rec); err != nil {
				return err
			}
		}
		if len(lost) > 0 {
			item.Why = "its directory stays: " + strings.Join(lost, "; ")
			return nil
		}
		item.Directory, item.Bytes = true, r.directorySize(rec.ID)
		if item.Class == GCChanges {
			item.Why = "its changes stay in the refs"
		}
	}
	item.Refs, item.Record = mayRefs, mayRefs
	if o.DryRun {
		return nil
	}
	if there {
		if err := r.removeDirectory(rec.ID); err != nil {
			return err
		}
		rec.Kept, rec.Bytes, rec.Files = nil, 0, 0
		if err := r.Write(rec); err != nil {
			return err
		}
	}
	if !mayRefs {
		return nil
	}
	if err := DeleteRefs(ctx, rec.CommonDir, rec.ID); err != nil {
		return err
	}
	return r.RemoveDirectory(rec.ID)
}

// collectIncomplete removes the directory of a spawn that was cut off before it
// had a record, if nothing is in it.
func (r Root) collectIncomplete(id string, o GCOptions) GCItem {
	item := GCItem{ID: id, Class: GCIncomplete}
	entries, err := os.ReadDir(r.Dir(id))
	info, err2 := os.Lstat(r.Dir(id))
	if err := errors.Join(err, err2); err != nil {
		item.Why = "it cannot be looked at"
		item.Error = workFailed(id, "look at its directory", err)
		return item
	}
	for _, e := range entries {
		if e.Name() != leaseFile {
			item.Why = fmt.Sprintf("it has no record, but %s; discard --force removes it", e.Name())
			return item
		}
	}
	if age := time.Since(info.ModTime()); age < max(incompleteAge, o.OlderThan) {
		item.Why = "it is empty, but a spawn may be about to use it"
		return item
	}
	item.Why, item.Directory = "it is empty and has no record", true
	if o.DryRun {
		return item
	}
	lease, failure := r.TryLease(id)
	if failure == nil {
		defer lease.Unlock()
		failure = r.RemoveDirectory(id)
	}
	if failure != nil {
		item.Directory, item.Error = false, failure
	}
	return item
}
