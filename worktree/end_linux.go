package worktree

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
)

// refer sets the refs of the end, if there is anything to hold.
func (s *saver) refer(ctx context.Context, own *harvest, tree string) error {
	refs := make(map[string]string)
	for name, oid := range own.refs {
		refs[name] = oid
	}
	moved := own.head != s.base[RefHead]
	if tree != "" || moved || own.index != "" || len(refs) > 0 {
		if tree == "" {
			// The files are those of the baseline; what changed is how git has them.
			base, e := s.clean("").Line(ctx, "rev-parse", s.base[RefTree]+"^{tree}")
			if e != nil {
				return e
			}
			var err error
			if tree, err = commitTree(ctx, s.clean(""), base, s.modes.Message("hayward: what "+s.rec.ID+" left"), time.Now(), own.head); err != nil {
				return err
			}
		}
		refs[RefTree] = tree
		refs[RefIndex] = own.index
		if own.index == "" {
			refs[RefIndex] = s.base[RefIndex]
		}
		if own.head != "" {
			refs[RefHead] = own.head
		}
		s.out.keepFor("changes")
	}
	if len(refs) == 0 {
		// An earlier snapshot may have found something that is undone by now.
		have, e := ListRefs(ctx, s.rec.CommonDir, s.rec.ID)
		if e != nil {
			return e
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(have)), isEnd) {
			return nil
		}
	}
	s.out.refs = refs
	l, e := LockRepository(ctx, s.rec.CommonDir, s.rec.ID)
	if e != nil {
		return e
	}
	defer l.Unlock()
	if err := step("end refs"); err != nil {
		return err
	}
	if err := presentAll(ctx, s.clean(""), s.fresh); err != nil {
		return err
	}
	return s.replaceRefs(ctx, refs)
}

// isEnd reports whether a name that [ListRefs] gives is one of the end.
func isEnd(name string) bool { return strings.HasPrefix(name, "subagents/") }

// replaceRefs sets the refs of the end and deletes those of an earlier snapshot
// that are not among them.
func (s *saver) replaceRefs(ctx context.Context, refs map[string]string) error {
	stale := make(map[string]string)
	for _, name := range s.ended {
		if refs[name] == "" {
			stale[EndRef(s.rec.ID, name)] = ""
		}
	}
	set := make(map[string]string, len(refs))
	for name, oid := range refs {
		set[EndRef(s.rec.ID, name)] = oid
	}
	e := UpdateRefs(ctx, s.rec.CommonDir, s.rec.ID, set)
	if len(stale) > 0 {
		if failed := UpdateRefs(ctx, s.rec.CommonDir, s.rec.ID, stale); failed != nil {
			return failed
		}
		if e != nil { // a branch may lie where another's directory was
			e = UpdateRefs(ctx, s.rec.CommonDir, s.rec.ID, set)
		}
	}
	if e != nil {
		return e
	}
	crashpoint.Hit(crashpoint.SnapshotReferred)
	return nil
}

// Snapshot saves a tree whose subagent may still run. The refs are those that its
// end will replace.
func (r Root) Snapshot(ctx context.Context, id string) (Record, *events.Error) {
	rec, err := r.Read(id)
	if err != nil {
		return rec, err
	}
	return r.saveAndRecord(ctx, rec, func(*Record) {})
}

// saveAndRecord saves a tree and notes in its record what came of it. The record is
// returned whatever went wrong.
func (r Root) saveAndRecord(ctx context.Context, rec Record, note func(*Record)) (Record, *events.Error) {
	ctx, cancel := context.WithTimeout(ctx, SnapshotDeadline)
	defer cancel()
	saving, err := lock(ctx, filepath.Join(r.Dir(rec.ID), savingFile), LockDeadline)
	if err != nil {
		return rec, problem(rec.ID, "wait for another snapshot", err)
	}
	defer saving.Unlock()
	if now, e := r.Read(rec.ID); e == nil {
		rec = now // another snapshot may have ended meanwhile
	}
	out, failure := r.save(ctx, rec)
	rec.Problem = nil
	if failure != nil {
		rec.Problem = problem(rec.ID, "save the tree", failure).
			WithRemedy("the directory %s is kept; hayward worktree snapshot %s tries again", r.Tree(rec), rec.ID)
	}
	if out != nil {
		rec.SnapshotAt = time.Now().UTC()
		rec.Changes, rec.Kept = &out.changes, out.keep
		rec.Bytes, rec.Files = out.bytes, out.files
	}
	if rec.Problem != nil {
		rec.Kept = append(rec.Kept, "not saved")
	}
	note(&rec)
	if e := r.Write(rec); e != nil {
		return rec, e
	}
	return rec, rec.Problem
}

// Outcome is what became of a tree at the end of its subagent.
type Outcome struct {
	Worktree *events.Worktree
	Changes  *events.Changes
}

// End saves the tree of a subagent of which no process is left, and deletes the
// directory if that loses nothing. What cannot be saved is kept, and the record
// says so. It may be called again after a crash: it then says the same. start is
// what the subagent's record says of the tree; the caller holds the lease.
func (r Root) End(ctx context.Context, id string, start *events.Worktree) Outcome {
	out := Outcome{Worktree: &events.Worktree{Kept: true}}
	if start != nil {
		*out.Worktree = *start
	}
	rec, err := r.Read(id)
	if err != nil {
		if _, statErr := os.Lstat(r.Dir(id)); errors.Is(statErr, fs.ErrNotExist) {
			out.Worktree.Kept, out.Worktree.Problem = false, lost(ctx, id, start)
			if out.Worktree.Problem == nil {
				out.Changes = &events.Changes{} // it ended clean before a crash
			}
		} else {
			out.Worktree.Problem, out.Worktree.KeptFor = err, []string{"not saved"}
		}
		return out
	}
	out.Worktree.Path, out.Worktree.Repository, out.Worktree.BaseCommit = r.Tree(rec), rec.Repository, rec.BaseCommit
	switch rec.State {
	case StateMaking: // nothing ever ran in it
		err, rec.Changes = r.giveBack(rec), &events.Changes{}
	case StateLive:
		rec, err = r.saveAndRecord(ctx, rec, func(rec *Record) {
			rec.State, rec.EndedAt = StateEnded, time.Now().UTC()
		})
		crashpoint.Hit(crashpoint.SnapshotRecorded)
	default:
		if rec.Problem != nil && rec.State == StateEnded { // what ended the try before may be over
			rec, err = r.saveAndRecord(ctx, rec, func(*Record) {})
		}
	}
	out.Worktree.KeptFor, out.Worktree.Problem, out.Changes = rec.Kept, err, rec.Changes
	if err == nil && len(rec.Kept) == 0 {
		if err := r.Discard(ctx, rec); err != nil {
			out.Worktree.Problem, out.Worktree.KeptFor = err, []string{"not deleted"}
			return out
		}
		out.Worktree.Kept = false
	}
	return out
}

// lost says why a tree whose directory is not there may have lost something, nil if
// it ended clean: that deletes its refs before its directory.
func lost(ctx context.Context, id string, start *events.Worktree) *events.Error {
	if start == nil || start.Repository == "" {
		return nil
	}
	p, err := locate(start.Repository)
	var refs map[string]string
	if err == nil {
		refs, err = ListRefs(ctx, p.commonDir, id)
	}
	switch {
	case err != nil:
		return events.Errorf(events.CodeWorktreeFailed, events.LayerWorkspace, "worktree %s: its directory is gone, and whether it was saved cannot be told: %w", id, err)
	case len(refs) == 0:
		return nil
	}
	e := events.Errorf(events.CodeWorktreeFailed, events.LayerWorkspace, "worktree %s: its directory %s is gone and was not deleted by Hayward; what was in it is not saved", id, start.Path)
	if refs["subagents/"+RefTree] != "" {
		return e.WithRemedy("%s has what it was at its last snapshot", EndRef(id, RefTree))
	}
	return e
}

// condemned begins the name of a directory whose deletion is decided.
const condemned = ".removed-"

// Discard deletes a tree with all that belongs to it, its refs included. The
// caller has made sure that this loses nothing, or that it is meant.
func (r Root) Discard(ctx context.Context, rec Record) *events.Error {
	if err := checkID(rec.ID); err != nil {
		return err
	}
	// The refs go first: a directory without refs is found and deleted again, refs
	// without a directory are not.
	if err := deleteAllRefs(ctx, rec.CommonDir, rec.ID); err != nil {
		return err
	}
	return r.RemoveDirectory(rec.ID)
}

// RemoveDirectory deletes the directory of a tree and leaves its refs.
func (r Root) RemoveDirectory(id string) *events.Error {
	if err := checkID(id); err != nil {
		return err
	}
	name := condemned + id
	err := os.Rename(r.Dir(id), filepath.Join(r.path, name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = removeTree(r.path, name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem(id, "delete the directory", err)
	}
	return nil
}

// Undo takes back a tree in which nothing ever ran. None is no error.
func (r Root) Undo(ctx context.Context, id string) *events.Error {
	rec, err := r.Read(id)
	switch {
	case err == nil:
		if err := r.giveBack(rec); err != nil {
			return err
		}
		return r.Discard(ctx, rec)
	case err.Code == events.CodeUnknownID:
		return r.RemoveDirectory(id) // cut off while it was made
	}
	return err
}

// Sweep finishes deletions that were cut off.
func (r Root) Sweep() error {
	entries, err := os.ReadDir(r.path)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if id, ok := strings.CutPrefix(e.Name(), condemned); ok && events.ValidID(id) {
			errs = append(errs, removeTree(r.path, e.Name()))
		}
	}
	return errors.Join(errs...)
}
