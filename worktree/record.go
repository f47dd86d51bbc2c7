package worktree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/durable"
)

// State is how far a tree's life has come.
type State string

// The states of a [Record].
const (
	StateMaking    State = "making"    // it is not complete; with a free lease its making was cut off
	StateLive      State = "live"      // its subagent runs, or nobody has looked since
	StateEnded     State = "ended"     // its end is in the refs
	StateApplied   State = "applied"   // its changes are in the user's working tree
	StateDiscarded State = "discarded" // its changes were thrown away on purpose
)

// Record is all that is known of one tree, in record.json. It is written by the
// coordinator while the subagent lives and by the verbs of the command line after.
type Record struct {
	Schema  int    `json:"schema"`
	ID      string `json:"id"`
	Run     int    `json:"run,omitzero"`
	Session string `json:"session,omitempty"`
	// Repository is the top of the user's working tree, GitDir its git directory,
	// CommonDir the one that all its linked work trees share.
	Repository string `json:"repository"`
	GitDir     string `json:"git_dir"`
	CommonDir  string `json:"common_dir"`
	// Subdirectory is where in the tree the command runs, empty for the top.
	Subdirectory string `json:"subdirectory,omitempty"`
	// Name is the last part of the tree's path.
	Name string `json:"name"`
	// BaseCommit is empty if the repository had no commit; Branch is empty if HEAD
	// was detached.
	BaseCommit   string    `json:"base_commit,omitempty"`
	Branch       string    `json:"branch,omitempty"`
	ObjectFormat string    `json:"object_format"`
	CreatedAt    time.Time `json:"created_at,omitzero"`
	State        State     `json:"state"`
	EndedAt      time.Time `json:"ended_at,omitzero"`
	// SnapshotAt is when the refs of the end were last written.
	SnapshotAt time.Time       `json:"snapshot_at,omitzero"`
	Changes    *events.Changes `json:"changes,omitempty"`
	// Kept says why the directory is still there after the end: "changes", "ignored
	// files" and so on. Empty means that it is gone.
	Kept []string `json:"kept,omitempty"`
	// Problem is why the refs of the end do not hold everything.
	Problem *events.Error `json:"problem,omitempty"`
	// Bytes and Files are what the tree took when it was made or saved last.
	Bytes int64 `json:"bytes,omitzero"`
	Files int   `json:"files,omitzero"`

	// ResumedFrom is the subagent whose files the tree began with; TakenFrom is the
	// same where the directory itself was taken over from it.
	ResumedFrom string `json:"resumed_from,omitempty"`
	TakenFrom   string `json:"taken_from,omitempty"`

	AppliedAt   time.Time `json:"applied_at,omitzero"`
	DiscardedAt time.Time `json:"discarded_at,omitzero"`
	// BranchCommit is what the latest branch was made at that the user asked for.
	BranchCommit string `json:"branch_commit,omitempty"`
}

const recordSchema = 1

const (
	recordFile = "record.json"
	leaseFile  = "lease"
	gitName    = "git"
	indexFile  = "base.index"
	savingFile = "saving"
	// maxRecord bounds a record that is read.
	maxRecord = 4 << 20
)

// Root is the directory of all trees of one state directory.
type Root struct{ path string }

// Open makes the root where it is missing.
func Open(path string) (Root, *events.Error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return Root{}, events.Errorf(events.CodeStorageFailed, events.LayerWorkspace, "worktree: make the directory of the trees: %w", err).
			WithRemedy("[worktree] dir names another place")
	}
	return Root{path}, nil
}

// Path is the root's absolute path.
func (r Root) Path() string { return r.path }

// Dir is the directory of one tree and all that belongs to it. id must be valid.
func (r Root) Dir(id string) string { return filepath.Join(r.path, id) }

// Tree is the working tree of a record.
func (r Root) Tree(rec Record) string { return filepath.Join(r.path, rec.ID, rec.Name) }

// cleanGit is our own git directory for the tree of id.
func (r Root) cleanGit(id string) string { return filepath.Join(r.path, id, gitName) }

// baseIndex is the index of the baseline of id.
func (r Root) baseIndex(id string) string { return filepath.Join(r.path, id, indexFile) }

// Read returns the record of id. None is [events.CodeUnknownID].
func (r Root) Read(id string) (Record, *events.Error) {
	var rec Record
	if err := checkID(id); err != nil {
		return rec, err
	}
	f, err := os.OpenFile(filepath.Join(r.Dir(id), recordFile), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, events.Errorf(events.CodeUnknownID, events.LayerGate, "worktree %s: there is none", id).
			WithRemedy("hayward worktree ls lists them")
	}
	if err == nil {
		defer f.Close()
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(f, maxRecord)); err == nil {
			err = events.DecodeRecord(body, &rec)
		}
	}
	if err == nil && (rec.ID != id || rec.Schema > recordSchema || !validName(rec.Name)) {
		err = errors.New("it is of another tree or of a newer version")
	}
	if err != nil {
		return rec, events.Errorf(events.CodeStoreDamaged, events.LayerWorkspace, "worktree %s: read its record: %w", id, err)
	}
	return rec, nil
}

// ourNames are those in the directory of a tree that no tree may have.
var ourNames = []string{
	gitName, recordFile, leaseFile, indexFile, savingFile, carriedRefs, firstIndex, modesFile, tagPacks, includedFile, scratchName,
	"end.index", "staged.index", "include", "include.index",
}

// validName reports whether a name can be that of a tree: one part of a path that
// collides with nothing of ours.
func validName(name string) bool {
	return name != "" && name[0] != '.' && filepath.Base(name) == name && !slices.Contains(ourNames, name)
}

// Write makes a record durable: the old one or the new one is there, never less.
func (r Root) Write(rec Record) *events.Error {
	if err := checkID(rec.ID); err != nil {
		return err
	}
	rec.Schema = recordSchema
	body, err := events.MarshalRecord(rec)
	if err == nil {
		err = durable.WriteFile(filepath.Join(r.Dir(rec.ID), recordFile), body)
	}
	if err != nil {
		return events.Errorf(events.CodeStorageFailed, events.LayerWorkspace, "worktree %s: write its record: %w", rec.ID, err)
	}
	return nil
}

// List returns the ids that have a directory, sorted. One without a record is of
// a tree whose making was cut off.
func (r Root) List() ([]string, *events.Error) {
	entries, err := os.ReadDir(r.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, events.Errorf(events.CodeStorageFailed, events.LayerWorkspace, "worktree: list the trees: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && events.ValidID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	sort.Strings(ids)
	return ids, nil
}
