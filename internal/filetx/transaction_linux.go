package filetx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/crashpoint"
)

// errCrash ends a transaction where it is, as SIGKILL would.
var errCrash = errors.New("crash")

func (t *Tree) reached(point string) error {
	if t.hit == nil {
		return nil
	}
	return t.hit(point)
}

// Fill writes the bytes that a path is to hold: a file's, or a link's target.
type Fill func(ctx context.Context, path string, w io.Writer) error

// Apply makes all changes, or none. journalFile is outside the tree, and no
// other transaction uses it. On an error everything is as it was; an error in
// taking back leaves the journal for [Recover]. The context ends the preparation
// only: once targets are touched the transaction goes on, or back, to its end.
func (t *Tree) Apply(ctx context.Context, journalFile string, changes []Change, fill Fill) error {
	format := "sha1"
	if t.sum().Size() == 32 {
		format = "sha256"
	}
	j, err := t.plan(changes, format)
	if err != nil || len(j.Ops) == 0 {
		return err
	}
	if _, err := os.Lstat(journalFile); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("begin: there is a journal already, %s: %w", journalFile, errors.Join(err, fs.ErrExist))
	}
	if err := j.write(journalFile); err != nil {
		return err
	}
	err = t.stage(ctx, j, fill)
	if err == nil {
		j.Phase = moving
		err = j.write(journalFile)
	}
	if err == nil {
		crashpoint.Hit(crashpoint.ApplyStaged)
		err = t.reached("staged")
	}
	if err == nil {
		err = t.move(j)
	}
	if err == nil {
		j.Phase = committed
		if err := j.write(journalFile); err != nil {
			return fmt.Errorf("commit: %w", err) // what the journal says by now, Recover does
		}
	}
	switch {
	case errors.Is(err, errCrash):
		return err
	case err != nil:
		left, undoErr := t.undo(j)
		if undoErr == nil && len(left) > 0 {
			undoErr = fmt.Errorf("%s was changed meanwhile and is left as it is, what it held before is in %s", left[0].Path, left[0].Kept)
		}
		if undoErr == nil {
			undoErr = removeJournal(journalFile)
		}
		return errors.Join(err, undoErr)
	}
	crashpoint.Hit(crashpoint.ApplyCommitted)
	if err := t.reached("committed"); err != nil {
		return err
	}
	return t.finish(j, journalFile)
}

// stage writes the new contents beside their targets.
func (t *Tree) stage(ctx context.Context, j *journal, fill Fill) error {
	for _, o := range j.Ops {
		if o.New.Kind == Absent {
			continue
		}
		if err := t.reached("stage " + o.path()); err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := t.stageOne(ctx, o, fill); err != nil {
			return fmt.Errorf("prepare %s: %w", o.path(), err)
		}
		s, err := t.stat(o.temp())
		if err != nil {
			return err
		}
		o.Dev, o.Ino = s.dev, s.ino
	}
	return t.flush(j)
}

func (t *Tree) stageOne(ctx context.Context, o *op, fill Fill) error {
	if o.New.Kind == Symlink {
		var target strings.Builder
		if err := fill(ctx, o.path(), &target); err != nil {
			return err
		}
		if oid := t.hash([]byte(target.String())); oid != o.New.OID {
			return fmt.Errorf("the target's object id is %s, not %s", oid, o.New.OID)
		}
		return t.at(o.temp(), func(dir int, base string) error { return unix.Symlinkat(target.String(), dir, base) })
	}
	mode := uint32(0o666) // the umask applies, as for every new file
	if o.New.Kind == Executable {
		mode = 0o777
	}
	if o.Old.Kind.Regular() || o.New.Perm != 0 {
		mode = 0o600
	}
	var fd int
	err := t.at(o.temp(), func(dir int, base string) (err error) {
		fd, err = unix.Openat(dir, base, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), path.Join(t.path, o.temp()))
	err = fill(ctx, o.path(), f)
	if err == nil && o.Old.Kind.Regular() {
		err = keepMetadata(f, o)
	}
	if err == nil && o.New.Perm != 0 {
		err = unix.Fchmod(fd, o.New.Perm)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	oid, err := t.hashFile(o.temp(), io.Discard)
	if err == nil && oid != o.New.OID {
		err = fmt.Errorf("the content's object id is %s, not %s", oid, o.New.OID)
	}
	return err
}

// keepMetadata gives a new file the permissions of the one it replaces, but for
// what executable means, and its owner where we may.
func keepMetadata(f *os.File, o *op) error {
	if err := unix.Fchown(int(f.Fd()), int(o.Old.UID), int(o.Old.GID)); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	perm := o.Old.Perm
	switch {
	case o.New.Kind == File:
		perm &^= 0o7111
	case o.Old.Kind == File: // becomes executable for whoever may read it
		perm |= 0o100 | perm&0o444>>2
	}
	return unix.Fchmod(int(f.Fd()), perm)
}

// flush makes the staged files durable, so that no power cut leaves an empty one
// in the place of a full one. Writing all of them begins before the first is
// waited for.
func (t *Tree) flush(j *journal) error {
	for _, sync := range []func(fd int) error{
		func(fd int) error { return unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE) },
		unix.Fsync,
	} {
		for _, o := range j.Ops {
			if !o.New.Kind.Regular() {
				continue
			}
			fd, err := t.open(o.temp(), unix.O_RDONLY|unix.O_NONBLOCK)
			if err != nil {
				return err
			}
			err = sync(fd)
			if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
				err = nil // a file system without it
			}
			if err := errors.Join(err, unix.Close(fd)); err != nil {
				return fmt.Errorf("make %s durable: %w", o.path(), err)
			}
		}
	}
	return nil
}

// move touches the targets: removals, directories that go, directories that
// come, then everything new.
func (t *Tree) move(j *journal) error {
	for _, o := range j.Ops {
		if o.New.Kind != Absent {
			continue
		}
		if err := t.reached("remove " + o.path()); err != nil {
			return err
		}
		if err := t.moveTo(o.path(), o.temp()); err != nil {
			return meanwhile(o.path(), err)
		}
		if err := t.compare(o.path(), o.temp(), o.Old); err != nil {
			return err
		}
	}
	for _, d := range j.Rmdirs {
		if err := t.reached("rmdir " + string(d.Path)); err != nil {
			return err
		}
		if err := t.rmdir(string(d.Path)); err != nil {
			return meanwhile(string(d.Path), err)
		}
	}
	for _, d := range j.Mkdirs {
		if err := t.reached("mkdir " + string(d.Path)); err != nil {
			return err
		}
		if err := t.mkdir(string(d.Path), 0o777); err != nil {
			return meanwhile(string(d.Path), err)
		}
	}
	for _, o := range j.Ops {
		if o.New.Kind == Absent {
			continue
		}
		if err := t.reached("write " + o.path()); err != nil {
			return err
		}
		if err := t.put(o); err != nil {
			return err
		}
	}
	crashpoint.Hit(crashpoint.ApplyMoved)
	return t.reached("moved")
}

// put moves one new content to its place.
func (t *Tree) put(o *op) error {
	if !o.replaces() {
		return meanwhile(o.path(), t.moveTo(o.temp(), o.path()))
	}
	err := unix.EINVAL
	if !t.noExchange {
		err = t.exchange(o.temp(), o.path())
	}
	switch err {
	case 0:
		return t.compare(o.path(), o.temp(), o.Old)
	case unix.EINVAL, unix.ENOSYS, unix.ENOTSUP:
	default:
		return meanwhile(o.path(), err)
	}
	if err := t.moveTo(o.path(), o.backup()); err != nil {
		return meanwhile(o.path(), err)
	}
	if err := t.compare(o.path(), o.backup(), o.Old); err != nil {
		return err
	}
	if err := t.reached("swap " + o.path()); err != nil {
		return err
	}
	return meanwhile(o.path(), t.moveTo(o.temp(), o.path()))
}

// compare checks that what was moved away is what the caller had seen.
func (t *Tree) compare(name, moved string, old content) error {
	s, err := t.State(moved)
	if err == nil && !old.is(s) {
		err = ErrChanged
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// meanwhile says that a path is not what it was, where an error means that.
func meanwhile(name string, err error) error {
	for _, e := range []error{unix.EEXIST, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENOTEMPTY, unix.EISDIR} {
		if errors.Is(err, e) {
			return fmt.Errorf("%s: %w (%w)", name, ErrChanged, err)
		}
	}
	return err
}
