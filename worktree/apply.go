package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/filetx"
)

// ApplyOptions say how to apply.
type ApplyOptions struct {
	// DryRun finds out what would be done.
	DryRun bool
}

// ApplyResult says what an apply did. With conflicts it did nothing.
type ApplyResult struct {
	ID         string `json:"subagent_id"`
	Repository string `json:"repository"`
	DryRun     bool   `json:"dry_run"`
	// Applied tells that the changes are in the user's files, Already that an
	// earlier apply had brought them.
	Applied   bool         `json:"applied"`
	Already   bool         `json:"already"`
	Files     []FileResult `json:"files"`
	Conflicts []Conflict   `json:"conflicts"`
	// Removed tells that the subagent's directory is gone, Kept why it is not.
	Removed bool     `json:"removed"`
	Kept    []string `json:"kept,omitempty"`
	// Warnings tell what an earlier apply that was cut off had left.
	Warnings []string `json:"warnings,omitempty"`
}

const (
	journalFile = ".apply.json"
	blobsDir    = ".apply.blobs"
)

// Apply merges what a subagent changed into the user's working tree: for each
// path the baseline, what the user has now and what the subagent left. It changes
// all of it or, if there is a conflict, nothing; and of the repository it changes
// nothing but those files: not the index, not HEAD, not a branch, not the stash.
//
// Line ends are as the files have them, and no attribute of the repository names
// another way to merge. A path that exists is never overwritten unless it holds
// what the subagent began with, be it tracked, untracked or ignored.
func (r Root) Apply(ctx context.Context, id string, o ApplyOptions) (ApplyResult, *events.Error) {
	res := ApplyResult{ID: id, DryRun: o.DryRun, Files: []FileResult{}, Conflicts: []Conflict{}}
	rec, unlock, err := r.hold(ctx, id)
	if err != nil {
		return res, err
	}
	defer unlock()
	res.Repository = rec.Repository
	if res.Warnings, err = r.recoverApplies(rec.CommonDir); err != nil {
		return res, err
	}
	if rec, err = r.Read(id); err != nil { // an interrupted apply may have been this one's
		return res, err
	}
	switch {
	case rec.State == StateApplied:
		res.Applied, res.Already = true, true
		return res, r.afterApply(ctx, rec, &res)
	case rec.State == StateDiscarded:
		return res, workFailed(id, "apply", errors.New("it was discarded"))
	case rec.Problem != nil:
		return res, workFailed(id, "apply", errors.New("what it left was not saved completely: "+rec.Problem.Message)).
			WithRemedy("its files are in %s", r.Tree(rec))
	}
	if err := r.merge(ctx, rec, &res); err != nil || res.DryRun || len(res.Conflicts) > 0 {
		return res, err
	}
	res.Applied = true
	rec.State, rec.AppliedAt = StateApplied, time.Now().UTC()
	if err := r.Write(rec); err != nil {
		return res, err
	}
	return res, r.afterApply(ctx, rec, &res)
}

// merge plans and, unless it is a dry run or has conflicts, carries out.
func (r Root) merge(ctx context.Context, rec Record, res *ApplyResult) (failure *events.Error) {
	g := userGit(rec.CommonDir, rec.ID)
	base, end, err := r.ends(ctx, rec)
	if err != nil {
		return err
	}
	diff, err := diffTrees(ctx, g, base, end)
	if err != nil {
		return err
	}
	if err := sameRepository(rec); err != nil {
		return err
	}
	tree, openErr := filetx.Open(rec.Repository, rec.ObjectFormat)
	if openErr != nil {
		return workFailed(rec.ID, "open the user's working tree", openErr)
	}
	defer tree.Close() // read only, as far as the descriptor is concerned
	b, openErr := openBlobs(g, filepath.Join(r.Dir(rec.ID), blobsDir), rec.ObjectFormat)
	if openErr != nil {
		return workFailed(rec.ID, "make a directory for merging", openErr)
	}
	defer func() {
		if err := b.close(); err != nil && failure == nil {
			failure = workFailed(rec.ID, "remove the directory for merging", err)
		}
	}()
	m := &merge{git: g, tree: tree, blobs: b}
	if m.modes.base, err = modesOf(ctx, g, base); err != nil {
		return err
	}
	if m.modes.end, err = modesOf(ctx, g, end); err != nil {
		return err
	}
	if err := m.plan(ctx, diff); err != nil {
		return err
	}
	for _, f := range m.files {
		res.Files = append(res.Files, FileResult{shownPath(f.Path), f.Action})
	}
	for _, c := range m.conflicts {
		c.Path = shownPath(c.Path)
		res.Conflicts = append(res.Conflicts, c)
	}
	if res.DryRun || len(res.Conflicts) > 0 {
		return nil
	}
	if err := m.transact(ctx, r.journal(rec.ID)); err != nil {
		return applyError(rec.ID, err)
	}
	return nil
}

// applyError is what ended the change of the user's files.
func applyError(id string, err error) *events.Error {
	var typed *events.Error
	switch {
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, filetx.ErrChanged):
		return workFailed(id, "apply", err).WithRemedy("nothing was applied; apply again")
	}
	return workFailed(id, "apply", err)
}

// afterApply removes the directory if nothing is in it that would be lost.
func (r Root) afterApply(ctx context.Context, rec Record, res *ApplyResult) *events.Error {
	if res.DryRun {
		return nil
	}
	kept, err := r.removeSaved(ctx, &rec)
	res.Kept, res.Removed = kept, err == nil && len(kept) == 0
	return err
}

// ends are the commits of the baseline and of what the subagent left.
func (r Root) ends(ctx context.Context, rec Record) (base, end string, err *events.Error) {
	refs, err := ListRefs(ctx, rec.CommonDir, rec.ID)
	if err != nil {
		return "", "", err
	}
	asBegun(rec, refs)
	base, end = refs["base/"+RefTree], refs["subagents/"+RefTree]
	if base == "" || end == "" {
		return "", "", workFailed(rec.ID, "find what it changed", errors.New("the repository does not have its refs any more"))
	}
	return base, end, nil
}

// modesOf reads the modes that a commit's message keeps.
func modesOf(ctx context.Context, g Git, commit string) (Modes, *events.Error) {
	out, err := g.Output(ctx, "cat-file", "commit", commit)
	if err != nil {
		return nil, err
	}
	_, message, _ := strings.Cut(string(out), "\n\n")
	return ParseModes(message), nil
}

// hold takes the locks for work on an ended tree: the repository's, then the
// lease. The record is the one under the locks.
func (r Root) hold(ctx context.Context, id string) (Record, func(), *events.Error) {
	rec, err := r.Read(id)
	if err != nil {
		return rec, nil, err
	}
	if rec.State == StateLive || rec.State == StateMaking {
		return rec, nil, stillLive(id)
	}
	repository, err := LockRepository(ctx, rec.CommonDir, id)
	if err != nil {
		return rec, nil, err
	}
	lease, err := r.TryLease(id)
	if err != nil {
		repository.Unlock()
		return rec, nil, err
	}
	unlock := func() {
		lease.Unlock()
		repository.Unlock()
	}
	if rec, err = r.Read(id); err == nil && (rec.State == StateLive || rec.State == StateMaking) {
		err = stillLive(id)
	}
	if err != nil {
		unlock()
		return rec, nil, err
	}
	return rec, unlock, nil
}

func stillLive(id string) *events.Error {
	return events.Errorf(events.CodeBusy, events.LayerWorkspace, "worktree %s: its subagent has not ended", id).
		WithRemedy("hayward wait %s, or hayward cancel %s", id, id)
}

func workFailed(id, doing string, err error) *events.Error {
	return events.Errorf(events.CodeWorktreeFailed, events.LayerWorkspace, "worktree %s: %s: %w", id, doing, err)
}

// recoverApplies takes back or finishes the applies to a repository that were cut
// off. The caller holds the repository's lock.
func (r Root) recoverApplies(commonDir string) (warnings []string, failure *events.Error) {
	ids, err := r.List()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		journal := r.journal(id)
		if _, err := os.Lstat(journal); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		rec, err := r.Read(id)
		if err != nil || rec.CommonDir != commonDir {
			continue // another repository's, or nobody can tell
		}
		done, recErr := filetx.Recover(journal)
		for _, l := range done.Left {
			warnings = append(warnings, leftWarning(id, rec.Repository, l))
		}
		if recErr != nil {
			return warnings, workFailed(id, "recover the apply that was cut off", recErr)
		}
		if done.Outcome == filetx.Finished {
			rec.State, rec.AppliedAt = StateApplied, time.Now().UTC()
			if err := r.Write(rec); err != nil {
				return warnings, err
			}
		}
	}
	return warnings, nil
}

func leftWarning(id, repository string, l filetx.Left) string {
	s := "the apply of " + id + " that was cut off was taken back, but " + l.Path + " has changed since and is left as it is"
	if l.Kept != "" {
		s += "; what it held before is in " + filepath.Join(repository, l.Kept)
	}
	return s
}

// sameRepository checks that the user's working tree is still the one that the
// tree was made from.
func sameRepository(rec Record) *events.Error {
	gone := func(why string) *events.Error {
		return events.Errorf(events.CodeNotRepository, events.LayerWorkspace, "worktree %s: %s %s", rec.ID, rec.Repository, why).
			WithRemedy("hayward worktree branch %s NAME brings the changes into the repository as a branch", rec.ID)
	}
	dot := filepath.Join(rec.Repository, ".git")
	info, err := os.Lstat(dot)
	if err != nil {
		return gone("is no working tree of the repository any more")
	}
	if info.Mode().IsRegular() {
		body, err := os.ReadFile(dot)
		target, ok := strings.CutPrefix(strings.TrimRight(string(body), "\r\n"), "gitdir: ")
		if err != nil || !ok {
			return gone("has a .git file that cannot be read")
		}
		if dot = target; !filepath.IsAbs(dot) {
			dot = filepath.Join(rec.Repository, target)
		}
	}
	here, err := os.Stat(dot)
	there, err2 := os.Stat(rec.GitDir)
	if err != nil || err2 != nil || !os.SameFile(here, there) {
		return gone("is a working tree of another repository now")
	}
	return nil
}
