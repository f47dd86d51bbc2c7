package filetx

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// Recover takes back or finishes the transaction whose journal this is, if
// there is one. It may itself be interrupted and called again.
func Recover(journalFile string) (Recovery, error) {
	j, err := readJournal(journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Recovery{}, nil
	}
	if err != nil {
		return Recovery{}, err
	}
	t, err := Open(j.Tree, j.Format)
	if errors.Is(err, fs.ErrNotExist) {
		// With the tree everything is gone that could be taken back.
		return Recovery{Outcome: RolledBack}, removeJournal(journalFile)
	}
	if err != nil {
		return Recovery{}, err
	}
	defer t.Close()
	return t.recover(j, journalFile)
}

func (t *Tree) recover(j *journal, journalFile string) (Recovery, error) {
	if j.Phase == committed {
		return Recovery{Outcome: Finished}, t.finish(j, journalFile)
	}
	left, err := t.undo(j)
	if err == nil {
		err = removeJournal(journalFile)
	}
	return Recovery{Outcome: RolledBack, Left: left}, err
}

// undo takes back what was done, in reverse. What was done is read from the
// tree; each step is skipped if it was taken back before.
func (t *Tree) undo(j *journal) ([]Left, error) {
	var left []Left
	step := func(o *op) error {
		if err := t.reached("undo " + o.path()); err != nil {
			return err
		}
		l, err := t.undoOne(j.Phase, o)
		if err != nil {
			return fmt.Errorf("take back %s: %w", o.path(), err)
		}
		if l != nil {
			left = append(left, *l)
		}
		return nil
	}
	for _, o := range slices.Backward(j.Ops) {
		if o.New.Kind != Absent {
			if err := step(o); err != nil {
				return left, err
			}
		}
	}
	if j.Phase == staging {
		return left, nil
	}
	for _, d := range slices.Backward(j.Mkdirs) {
		if err := t.rmdir(string(d.Path)); err != nil && !gone(err) && !errors.Is(err, unix.ENOTEMPTY) {
			return left, err
		}
	}
	for _, d := range slices.Backward(j.Rmdirs) {
		err := t.mkdir(string(d.Path), d.Perm)
		if err == nil {
			err = t.chmod(string(d.Path), d.Perm)
		}
		if err != nil && !gone(err) && !errors.Is(err, unix.EEXIST) {
			return left, err
		}
	}
	for _, o := range slices.Backward(j.Ops) {
		if o.New.Kind == Absent {
			if err := step(o); err != nil {
				return left, err
			}
		}
	}
	return left, nil
}

// undoOne takes one path back. It returns what had to be left.
func (t *Tree) undoOne(at phase, o *op) (*Left, error) {
	temp, err := t.stat(o.temp())
	if err != nil {
		return nil, err
	}
	staged := o.New.Kind != Absent && (at == staging || (temp.dev == o.Dev && temp.ino == o.Ino))
	if o.replaces() {
		kept, err := t.stat(o.backup())
		if err != nil {
			return nil, err
		}
		if kept.Kind != Absent {
			return t.putBack(o, o.backup(), func() error { return t.removeIf(o.temp(), temp.Kind != Absent) })
		}
	}
	switch {
	case temp.Kind == Absent && (o.Old.Kind != Absent || at == staging):
		return nil, nil // nothing was done, or it was taken back
	case temp.Kind == Absent: // the new file was moved to where nothing was
		mine, err := t.holdsNew(o)
		if err != nil {
			return nil, err
		}
		if mine {
			return nil, t.remove(o.path())
		}
		s, err := t.stat(o.path())
		if err != nil || s.ino != o.Ino || s.dev != o.Dev {
			return nil, err // somebody else's, or nobody's
		}
		return &Left{Path: o.path()}, nil
	case staged:
		same, err := t.sameFile(o.temp(), o.path())
		if err != nil {
			return nil, err
		}
		if same { // between two names of one move
			return nil, errors.Join(t.remove(o.path()), t.remove(o.temp()))
		}
		return nil, t.remove(o.temp())
	}
	return t.putBack(o, o.temp(), func() error { return nil })
}

// putBack returns what a path held from where it is kept, unless somebody wrote
// to the path since.
func (t *Tree) putBack(o *op, kept string, then func() error) (*Left, error) {
	same, err := t.sameFile(kept, o.path())
	if err != nil {
		return nil, err
	}
	if same { // between two names of one move
		return nil, errors.Join(t.remove(kept), then())
	}
	mine, err := t.holdsNew(o)
	if err != nil {
		return nil, err
	}
	if mine && kept == o.temp() && !t.noExchange {
		switch err := t.exchange(kept, o.path()); err {
		case 0:
			return nil, t.remove(kept) // now the new content
		case unix.EINVAL, unix.ENOSYS, unix.ENOTSUP:
		default:
			return nil, err
		}
	}
	if mine {
		if err := t.remove(o.path()); err != nil {
			return nil, err
		}
	}
	err = t.moveTo(kept, o.path())
	switch {
	case err == nil:
		return nil, then()
	case errors.Is(err, unix.EEXIST), gone(err):
		return &Left{Path: o.path(), Kept: kept}, then()
	}
	return nil, err
}

// holdsNew reports whether the path holds the new file as we made it.
func (t *Tree) holdsNew(o *op) (bool, error) {
	if o.New.Kind == Absent {
		return false, nil
	}
	s, err := t.stat(o.path())
	if err != nil || s.dev != o.Dev || s.ino != o.Ino {
		return false, err
	}
	s, err = t.State(o.path())
	return err == nil && o.New.is(s), err
}

// finish removes what was there before, the directories that were emptied, and
// the journal.
func (t *Tree) finish(j *journal, journalFile string) error {
	for _, o := range j.Ops {
		for _, name := range []string{o.temp(), o.backup()} {
			if err := t.reached("finish " + name); err != nil {
				return err
			}
			if err := t.remove(name); err != nil && !gone(err) {
				return err
			}
		}
	}
	for _, o := range slices.Backward(j.Ops) {
		if o.New.Kind != Absent {
			continue
		}
		for dir, _ := split(o.path()); dir != ""; dir, _ = split(dir) {
			if err := t.rmdir(dir); err != nil && !gone(err) {
				if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) ||
					errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
					break // an empty directory that stays harms nobody
				}
				return err
			}
		}
	}
	return removeJournal(journalFile)
}

// sameFile reports whether two names are of one file.
func (t *Tree) sameFile(a, b string) (bool, error) {
	one, err := t.stat(a)
	if err != nil {
		return false, err
	}
	other, err := t.stat(b)
	return err == nil && one.Kind != Absent && one.Kind != Blocked && one.dev == other.dev && one.ino == other.ino, err
}

func (t *Tree) removeIf(name string, there bool) error {
	if !there {
		return nil
	}
	return t.remove(name)
}

// gone reports that a path is not there, or its directory is none any more.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
