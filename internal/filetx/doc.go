// Package filetx changes many files below one directory: all of them, or none.
//
// A transaction knows what each path holds before it (the caller looked) and
// what it is to hold after it. It first writes every new content into a
// temporary file on the same file system as its target, then moves. A
// replacement is an exchange of two names, so what was replaced is still there,
// and it is compared with what the caller had seen: a change made meanwhile by
// somebody else takes everything back. A journal outside the directory holds
// what is needed to take back, or to finish, what a crash interrupted; [Recover]
// does it. Nothing that somebody else wrote is ever removed: what cannot be put
// back for that reason is left under its temporary name and reported.
//
// Paths are relative, slash-separated bytes, as in a git tree. Each is resolved
// beneath the directory's descriptor without following symbolic links: a
// directory that is a link is not written through.
//
// Two transactions on one directory at once are the caller's to prevent. A
// reader may see some of the moves before others, and writers that hold a
// replaced file open go on writing into the replaced one.
package filetx

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Kind is what a path holds.
type Kind string

// The kinds.
const (
	Absent     Kind = ""           // nothing, and the path can be made
	File       Kind = "file"       // a regular file
	Executable Kind = "executable" // one that its owner may execute
	Symlink    Kind = "symlink"    // a symbolic link
	Directory  Kind = "directory"  // a directory
	Special    Kind = "special"    // a device, pipe or socket
	Blocked    Kind = "blocked"    // nothing, and an ancestor is no directory
)

// Regular reports whether it is a regular file.
func (k Kind) Regular() bool { return k == File || k == Executable }

// State is what a path holds.
type State struct {
	Kind Kind
	// OID is git's object id of the bytes of a file or of the target of a link.
	OID string
	// At is the ancestor that is no directory if the kind is Blocked, and AtKind
	// is its kind.
	At     string
	AtKind Kind

	perm     uint32
	uid, gid uint32
	dev, ino uint64
}

// Same reports whether both hold the same.
func (s State) Same(o State) bool { return s.Kind == o.Kind && s.OID == o.OID }

// Perm are the permissions that a file or directory had.
func (s State) Perm() fs.FileMode { return fs.FileMode(s.perm).Perm() }

// Change is what is to become of one path.
type Change struct {
	Path string
	// Old is what [Tree.State] said. It is Absent, a file, a link, or a directory
	// all of whose files the same transaction removes.
	Old State
	// New is Absent, a file or a link.
	New State
	// Perm are the permissions of the new file. 0: those of the file that it
	// replaces, else what the umask leaves.
	Perm fs.FileMode
}

// ErrChanged is that a path no longer held what the caller had seen.
var ErrChanged = errors.New("it was changed meanwhile")

// ErrPath is that a path may not be written.
var ErrPath = errors.New("is not a path of a working tree")

// CheckPath refuses what would leave the tree or reach a repository in it.
func CheckPath(path string) error {
	bad := path == "" || strings.ContainsRune(path, 0)
	for _, name := range strings.Split(path, "/") {
		bad = bad || name == "" || name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
	}
	if bad {
		return fmt.Errorf("%q %w", path, ErrPath)
	}
	return nil
}

// Outcome is what [Recover] did.
type Outcome string

// The outcomes.
const (
	Nothing    Outcome = ""            // there was no journal
	RolledBack Outcome = "rolled_back" // everything is as before the transaction
	Finished   Outcome = "finished"    // everything is as after it
)

// Left is a path that somebody changed after the transaction was interrupted.
type Left struct {
	Path string
	// Kept is the file with what the path held before, or empty if it held nothing.
	Kept string
}

// Recovery says what became of an interrupted transaction.
type Recovery struct {
	Outcome Outcome
	Left    []Left
}

// SkipDir tells [Tree.Walk] not to enter a directory.
var SkipDir = errors.New("skip this directory")
