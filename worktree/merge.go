package worktree

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/filetx"
)

// FileAction is what an apply does to a path.
type FileAction string

// The actions.
const (
	ActionAdd    FileAction = "added"
	ActionModify FileAction = "modified"
	ActionMerge  FileAction = "merged" // both changed it, in different places
	ActionDelete FileAction = "deleted"
	ActionNone   FileAction = "present" // the user has it already
)

// FileResult is one path of an apply.
type FileResult struct {
	Path   string     `json:"path"`
	Action FileAction `json:"action"`
}

// merge is a three-way merge of one tree into the user's files, path by path.
type merge struct {
	git   Git
	tree  *filetx.Tree
	blobs *blobs
	modes struct{ base, end Modes }

	theirs    map[string]treeEntry // of changed paths
	pending   []pendingMerge
	changes   []filetx.Change
	files     []FileResult
	conflicts []Conflict
}

// pendingMerge is a file that both changed.
type pendingMerge struct {
	treeChange
	ours filetx.State
}

// plan decides about every path. Nothing is written to the user's files.
func (m *merge) plan(ctx context.Context, diff []treeChange) *events.Error {
	m.theirs = make(map[string]treeEntry, len(diff))
	for _, c := range diff {
		m.theirs[c.path] = c.to
	}
	var need []string
	for _, c := range diff {
		if err := filetx.CheckPath(c.path); err != nil {
			return events.Errorf(events.CodeWorktreeFailed, events.LayerWorkspace, "worktree %s: the subagent's tree: %w", m.git.ID, err)
		}
		if err := m.decide(c); err != nil {
			return m.unreadable(c.path, err)
		}
	}
	if err := m.permissions(); err != nil {
		return err
	}
	for _, p := range m.pending {
		need = append(need, p.from.oid, p.to.oid)
	}
	if err := m.blobs.fetch(ctx, need); err != nil {
		return err
	}
	for _, p := range m.pending {
		if err := m.mergeFile(ctx, p); err != nil {
			return err
		}
	}
	byPath := func(a, b string) int { return strings.Compare(a, b) }
	slices.SortFunc(m.files, func(a, b FileResult) int { return byPath(a.Path, b.Path) })
	slices.SortFunc(m.conflicts, func(a, b Conflict) int { return byPath(a.Path, b.Path) })
	return nil
}

func (m *merge) unreadable(path string, err error) *events.Error {
	return events.Errorf(events.CodeWorktreeFailed, events.LayerWorkspace, "worktree %s: look at %s: %w", m.git.ID, path, err)
}

// decide settles a path, or leaves it to mergeFile.
func (m *merge) decide(c treeChange) error {
	ours, err := m.tree.State(c.path)
	if err != nil {
		return err
	}
	base, theirs := c.from.state(), c.to.state()
	seen := ours
	if ours.Kind == filetx.Blocked {
		if to, changed := m.theirs[ours.At]; changed && to.mode == "" {
			seen = filetx.State{} // what is in the way goes; whether it may is decided there
		} else if theirs.Kind == filetx.Absent {
			seen = filetx.State{}
		}
	}
	inWay := false
	if ours.Kind == filetx.Directory {
		if inWay, err = m.occupied(c.path); err != nil {
			return err
		}
		if !inWay && base.Kind == filetx.Absent {
			seen = filetx.State{}
		} else if theirs.Kind == filetx.Absent {
			seen, inWay = filetx.State{}, false
		}
	}
	conflict := func(kind ConflictKind) error {
		m.conflicts = append(m.conflicts, Conflict{c.path, kind, c.from.version(), versionOf(ours), c.to.version()})
		return nil
	}
	switch {
	case c.from.mode == commitMode || c.to.mode == commitMode:
		return conflict(ConflictRepository)
	case inWay || seen.Kind == filetx.Directory || seen.Kind == filetx.Blocked:
		return conflict(ConflictDirectory)
	case seen.Same(theirs):
		m.files = append(m.files, FileResult{c.path, ActionNone})
		return nil
	case seen.Same(base):
		m.take(c.path, ours, theirs)
		return nil
	case seen.Kind == filetx.Special:
		return conflict(ConflictSpecial)
	case theirs.Kind == filetx.Absent:
		return conflict(ConflictModifyDelete)
	case seen.Kind == filetx.Absent:
		return conflict(ConflictDeleteModify)
	case !seen.Kind.Regular() || !theirs.Kind.Regular():
		if base.Kind == filetx.Absent {
			return conflict(ConflictAddAdd)
		}
		return conflict(ConflictType)
	case base.Kind == filetx.Absent && seen.OID == theirs.OID:
		return conflict(ConflictMode)
	case !base.Kind.Regular():
		return conflict(ConflictAddAdd)
	}
	m.pending = append(m.pending, pendingMerge{c, ours})
	return nil
}

// occupied reports whether a directory of the user holds anything that the
// subagent did not remove.
func (m *merge) occupied(dir string) (bool, error) {
	found := false
	err := m.tree.Walk(dir, func(name string, s filetx.State) error {
		if to, changed := m.theirs[name]; s.Kind != filetx.Directory && (!changed || to.mode != "") {
			found = true
		}
		return nil
	})
	return found, err
}

// take lets the subagent's version replace the user's.
func (m *merge) take(path string, ours, theirs filetx.State) {
	action := ActionModify
	c := filetx.Change{Path: path, Old: ours, New: theirs}
	switch {
	case theirs.Kind == filetx.Absent:
		action = ActionDelete
	case ours.Kind == filetx.Absent, ours.Kind == filetx.Blocked, ours.Kind == filetx.Directory:
		action = ActionAdd
	}
	if ours.Kind == filetx.Blocked {
		c.Old = filetx.State{}
	}
	if theirs.Kind.Regular() {
		exec := theirs.Kind == filetx.Executable
		if perm := m.modes.end.Mode(path, exec); perm != m.modes.base.Mode(path, exec) {
			c.Perm = perm
		}
	}
	m.changes = append(m.changes, c)
	m.files = append(m.files, FileResult{path, action})
}

// permissions takes over permissions that the subagent changed and the user did
// not, of files whose content it left alone. Those that git keeps are in the trees.
func (m *merge) permissions() *events.Error {
	paths := make(map[string]bool)
	for _, modes := range []Modes{m.modes.base, m.modes.end} {
		for path := range modes {
			_, changed := m.theirs[path]
			if !changed && m.modes.base[path] != m.modes.end[path] && filetx.CheckPath(path) == nil {
				paths[path] = true
			}
		}
	}
	for path := range paths {
		ours, err := m.tree.State(path)
		if err != nil {
			return m.unreadable(path, err)
		}
		exec := ours.Kind == filetx.Executable
		was, is := m.modes.base.Mode(path, exec), m.modes.end.Mode(path, exec)
		if was == is || !ours.Kind.Regular() || ours.Perm() != was {
			continue
		}
		if err := m.blobs.keep(m.tree, path, ours.OID); err != nil {
			return m.unreadable(path, err)
		}
		m.changes = append(m.changes, filetx.Change{Path: path, Old: ours, New: filetx.State{Kind: ours.Kind, OID: ours.OID}, Perm: is})
		m.files = append(m.files, FileResult{path, ActionModify})
	}
	return nil
}

// mergeFile merges a regular file that both changed: its mode, and its lines.
func (m *merge) mergeFile(ctx context.Context, p pendingMerge) *events.Error {
	base, theirs := p.from.state(), p.to.state()
	merged := filetx.State{Kind: p.ours.Kind, OID: p.ours.OID}
	if p.ours.Kind == base.Kind {
		merged.Kind = theirs.Kind
	}
	if theirs.OID != base.OID && p.ours.OID != theirs.OID {
		merged.OID = theirs.OID
		if p.ours.OID != base.OID {
			oid, kind, err := m.mergeContent(ctx, p)
			switch {
			case err != nil:
				return err
			case kind != "":
				m.conflicts = append(m.conflicts, Conflict{p.path, kind, p.from.version(), versionOf(p.ours), p.to.version()})
				return nil
			}
			merged.OID = oid
		}
	}
	if merged.OID == p.ours.OID {
		if err := m.blobs.keep(m.tree, p.path, p.ours.OID); err != nil {
			return m.unreadable(p.path, err)
		}
	}
	m.changes = append(m.changes, filetx.Change{Path: p.path, Old: p.ours, New: merged})
	m.files = append(m.files, FileResult{p.path, ActionMerge})
	return nil
}

// mergeContent merges lines. It returns the object id of the result, which is
// among the blobs then, or the kind of the conflict.
func (m *merge) mergeContent(ctx context.Context, p pendingMerge) (string, ConflictKind, *events.Error) {
	if err := m.blobs.keep(m.tree, p.path, p.ours.OID); err != nil {
		return "", "", m.unreadable(p.path, err)
	}
	sides := []string{m.blobs.file(p.ours.OID), m.blobs.file(p.from.oid), m.blobs.file(p.to.oid)}
	for _, file := range sides {
		binary, err := isBinary(file)
		if err != nil {
			return "", "", m.unreadable(p.path, err)
		}
		if binary {
			return "", ConflictBinary, nil
		}
	}
	result, err := os.CreateTemp(m.blobs.dir, "merged-")
	if err != nil {
		return "", "", m.unreadable(p.path, err)
	}
	failed := m.git.Run(ctx, Call{Stdout: result}, append([]string{"merge-file", "-p", "-q"}, sides...)...)
	if err := result.Close(); err != nil {
		return "", "", m.unreadable(p.path, err)
	}
	switch status := ExitStatus(failed); {
	case failed == nil:
	case status > 0 && status < 128:
		return "", ConflictContent, nil
	default:
		return "", "", failed
	}
	oid, err := m.blobs.adopt(result.Name())
	if err != nil {
		return "", "", m.unreadable(p.path, err)
	}
	return oid, "", nil
}

// sniff is how much of a file git looks at to tell text from the rest.
const sniff = 8000

func isBinary(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, sniff))
	return bytes.IndexByte(head, 0) >= 0, err
}

// fill is what filetx asks for.
func (m *merge) fill(_ context.Context, path string, w io.Writer) error {
	i, ok := slices.BinarySearchFunc(m.changes, path, func(c filetx.Change, path string) int { return strings.Compare(c.Path, path) })
	if !ok {
		return fmt.Errorf("%s is not changed", path)
	}
	f, err := os.Open(m.blobs.file(m.changes[i].New.OID))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// transact carries the plan out; all of it, or nothing.
func (m *merge) transact(ctx context.Context, journal string) error {
	slices.SortFunc(m.changes, func(a, b filetx.Change) int { return strings.Compare(a.Path, b.Path) })
	var need []string
	for _, c := range m.changes {
		if c.New.Kind != filetx.Absent {
			need = append(need, c.New.OID)
		}
	}
	if err := m.blobs.fetch(ctx, need); err != nil {
		return err
	}
	return m.tree.Apply(ctx, filepath.Clean(journal), m.changes, m.fill)
}
