package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Look is Open for who only looks: a root that is missing stays missing and holds
// nothing.
func Look(path string) (Root, *events.Error) {
	path, err := filepath.Abs(path)
	if err == nil {
		var resolved string
		if resolved, err = filepath.EvalSymlinks(path); err == nil {
			path = resolved
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return Root{}, events.Errorf(events.CodeStorageFailed, events.LayerWorkspace, "worktree: find the directory of the trees: %w", err)
	}
	return Root{path}, nil
}

// Entry is one tree as a list shows it.
type Entry struct {
	ID string `json:"subagent_id"`
	// State is empty if the record cannot be read; Error says why.
	State   State  `json:"state,omitempty"`
	Session string `json:"parent_session_id,omitempty"`
	// Path is the working tree; empty if its directory is gone.
	Path         string          `json:"path,omitempty"`
	Repository   string          `json:"repository,omitempty"`
	BaseCommit   string          `json:"base_commit,omitempty"`
	Branch       string          `json:"branch,omitempty"`
	CreatedAt    time.Time       `json:"created_at,omitzero"`
	EndedAt      time.Time       `json:"ended_at,omitzero"`
	AppliedAt    time.Time       `json:"applied_at,omitzero"`
	BranchCommit string          `json:"branch_commit,omitempty"`
	Changes      *events.Changes `json:"changes,omitempty"`
	// Bytes is what its directory takes on the disk.
	Bytes int64 `json:"bytes"`
	// Kept says why the directory is there after the end.
	Kept    []string      `json:"kept,omitempty"`
	Problem *events.Error `json:"problem,omitempty"`
	Error   *events.Error `json:"error,omitempty"`
}

// Entries lists all trees, the oldest first. One that cannot be read is listed
// with the error.
func (r Root) Entries(ctx context.Context) ([]Entry, *events.Error) {
	ids, err := r.List()
	if err != nil {
		return nil, err
	}
	all := make([]Entry, 0, len(ids))
	for _, id := range ids { // ids of version 7 are in the order of time
		if ctx.Err() != nil {
			return all, events.Errorf(events.CodeTimeout, events.LayerWorkspace, "worktree: list the trees: %w", context.Cause(ctx))
		}
		all = append(all, r.entry(id))
	}
	return all, nil
}

func (r Root) entry(id string) Entry {
	rec, err := r.Read(id)
	e := Entry{ID: id, Bytes: r.directorySize(id), Error: err}
	if err != nil {
		return e
	}
	e.State, e.Session, e.Repository, e.BaseCommit, e.Branch = rec.State, rec.Session, rec.Repository, rec.BaseCommit, rec.Branch
	e.CreatedAt, e.EndedAt, e.AppliedAt, e.BranchCommit = rec.CreatedAt, rec.EndedAt, rec.AppliedAt, rec.BranchCommit
	e.Changes, e.Problem = rec.Changes, rec.Problem
	if r.present(rec) {
		e.Path, e.Kept = r.Tree(rec), rec.Kept
	}
	return e
}

// PathOf is the working tree of id, which must be there.
func (r Root) PathOf(id string) (string, *events.Error) {
	rec, err := r.Read(id)
	if err != nil {
		return "", err
	}
	if !r.present(rec) {
		return "", workFailed(id, "find its directory", fs.ErrNotExist).
			WithRemedy("it was removed when nothing was in it that is not in the refs; hayward worktree branch %s NAME makes a branch of them", id)
	}
	return r.Tree(rec), nil
}

// CommonDir is the git directory that the repository around dir shares with its
// linked work trees.
func CommonDir(dir string) (string, *events.Error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", events.Errorf(events.CodeInvalidRequest, events.LayerGate, "worktree: find the repository: %w", err)
	}
	p, refused := locate(path)
	return p.commonDir, refused
}
