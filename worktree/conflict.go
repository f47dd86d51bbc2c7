package worktree

import (
	"context"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/filetx"
)

// ConflictKind says why both sides of a path cannot be had.
type ConflictKind string

// The kinds of a [Conflict].
const (
	ConflictContent      ConflictKind = "content"       // both changed the same lines
	ConflictBinary       ConflictKind = "binary"        // both changed a file that is not text
	ConflictAddAdd       ConflictKind = "add_add"       // both made the path, with different content
	ConflictMode         ConflictKind = "mode"          // both made the path, one of them executable
	ConflictDeleteModify ConflictKind = "delete_modify" // the user removed what the subagent changed
	ConflictModifyDelete ConflictKind = "modify_delete" // the user changed what the subagent removed
	ConflictType         ConflictKind = "type"          // a file here is a symbolic link there
	ConflictDirectory    ConflictKind = "directory"     // a file or link here is a directory there
	ConflictSpecial      ConflictKind = "special"       // the user has a device, pipe or socket there
	ConflictRepository   ConflictKind = "repository"    // the subagent left a repository inside the tree
)

// Version is what one of the three sides has at a path. A side that has nothing
// there has no version.
type Version struct {
	// Path is where it is if that is not the conflict's path: the user's file or
	// link that is in the way of a directory.
	Path string `json:"path,omitempty"`
	// Mode is git's: 100644, 100755, 120000, 160000, or 040000 for a directory.
	// It is empty for what git does not keep.
	Mode string `json:"mode,omitempty"`
	// OID is the blob's id. Those of base and subagent are in the repository.
	OID string `json:"oid,omitempty"`
}

// Conflict is a path that user and subagent changed each in a way of their own.
type Conflict struct {
	Path string       `json:"path"`
	Kind ConflictKind `json:"kind"`
	// Base is what the subagent began with, Ours what the user has now, Theirs what
	// the subagent left.
	Base   *Version `json:"base,omitempty"`
	Ours   *Version `json:"ours,omitempty"`
	Theirs *Version `json:"theirs,omitempty"`
}

// treeChange is a path that differs between two trees.
type treeChange struct {
	path     string
	from, to treeEntry
}

// treeEntry is a path in a tree. Without a mode there is none.
type treeEntry struct{ mode, oid string }

// The modes of git.
const (
	blobMode      = "100644"
	execMode      = "100755"
	linkMode      = "120000"
	commitMode    = "160000"
	directoryMode = "040000"
)

func (e treeEntry) state() filetx.State {
	switch e.mode {
	case blobMode:
		return filetx.State{Kind: filetx.File, OID: e.oid}
	case execMode:
		return filetx.State{Kind: filetx.Executable, OID: e.oid}
	case linkMode:
		return filetx.State{Kind: filetx.Symlink, OID: e.oid}
	case commitMode:
		return filetx.State{Kind: filetx.Special, OID: e.oid}
	}
	return filetx.State{}
}

func (e treeEntry) version() *Version {
	if e.mode == "" {
		return nil
	}
	return &Version{Mode: e.mode, OID: e.oid}
}

func versionOf(s filetx.State) *Version {
	modes := map[filetx.Kind]string{filetx.File: blobMode, filetx.Executable: execMode, filetx.Symlink: linkMode, filetx.Directory: directoryMode}
	switch s.Kind {
	case filetx.Absent:
		return nil
	case filetx.Blocked:
		return &Version{Path: shownPath(s.At), Mode: modes[s.AtKind]}
	}
	return &Version{Mode: modes[s.Kind], OID: s.OID}
}

// diffTrees lists the paths that differ between two commits or trees, sorted.
func diffTrees(ctx context.Context, g Git, from, to string) ([]treeChange, *events.Error) {
	out, err := g.Output(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none", from+"^{tree}", to+"^{tree}")
	if err != nil {
		return nil, err
	}
	var all []treeChange
	parts := fields(out)
	for i := 0; i+1 < len(parts); i += 2 {
		f := strings.Fields(strings.TrimPrefix(parts[i], ":"))
		if len(f) != 5 {
			return nil, events.Errorf(events.CodeGitFailed, events.LayerWorkspace, "worktree %s: git diff-tree wrote %q", g.ID, parts[i])
		}
		c := treeChange{path: parts[i+1]}
		if strings.Trim(f[0], "0") != "" {
			c.from = treeEntry{f[0], f[2]}
		}
		if strings.Trim(f[1], "0") != "" {
			c.to = treeEntry{f[1], f[3]}
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b treeChange) int { return strings.Compare(a.path, b.path) })
	return all, nil
}
