package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/diskspace"
)

// SnapshotDeadline is how long saving one tree may take.
const SnapshotDeadline = 5 * time.Minute

// maxSaved is the size over which a file is not saved in git, but kept where it is.
const maxSaved = 2 << 30

// saved is what one look at a tree found and wrote.
type saved struct {
	// refs are those of the end, by what follows refs/hayward/subagents/<id>/; nil
	// if nothing differs from the beginning.
	refs    map[string]string
	changes events.Changes
	// keep says why the directory has to stay.
	keep  []string
	bytes int64
	files int
}

func (s *saved) keepFor(format string, args ...any) {
	if why := fmt.Sprintf(format, args...); !slices.Contains(s.keep, why) {
		s.keep = append(s.keep, why)
	}
}

// saver saves one tree.
type saver struct {
	root Root
	rec  Record
	top  string
	out  saved
	// base are the refs of the beginning, by their last part.
	base map[string]string
	// ended are those of an earlier snapshot, fresh the objects of the new tree that
	// the baseline does not have, one id a line.
	ended []string
	fresh string

	seen    *survey
	index   *index
	changed []string
	others  map[string]unix.Stat_t
	modes   Modes
}

// save writes what is in a tree and its git directory now into the user's
// repository, and sets the refs to it. It changes nothing in the tree.
func (r Root) save(ctx context.Context, rec Record) (*saved, error) {
	s := &saver{root: r, rec: rec, top: r.Tree(rec), base: make(map[string]string), others: make(map[string]unix.Stat_t), modes: make(Modes)}
	refs, e := ListRefs(ctx, rec.CommonDir, rec.ID)
	if e != nil {
		return nil, e
	}
	for name, oid := range refs {
		if rest, ok := strings.CutPrefix(name, "base/"); ok {
			s.base[rest] = oid
		} else {
			s.ended = append(s.ended, strings.TrimPrefix(name, "subagents/"))
		}
	}
	if s.base[RefTree] == "" {
		return nil, fmt.Errorf("%s is gone from %s", BaseRef(rec.ID, RefTree), rec.CommonDir)
	}
	// The files and the git directory are looked at beside one another.
	looked := make(chan error, 1)
	go func() { looked <- s.look(ctx) }()
	// Whatever is wrong with the subagent's git directory, its files are saved.
	own, ownErr := s.harvest(ctx)
	err := <-looked
	if ownErr != nil {
		s.out.keepFor("its git directory")
		own = &harvest{head: s.base[RefHead]}
	}
	if err := errors.Join(err, step("tree")); err != nil {
		return nil, errors.Join(err, ownErr)
	}
	tree, err := s.tree(ctx, own.head)
	if err != nil {
		return nil, errors.Join(err, ownErr)
	}
	if err := s.refer(ctx, own, tree); err != nil {
		return nil, err
	}
	return &s.out, ownErr
}

func (s *saver) clean(index string) Git { return cleanGit(s.root, s.rec, index) }

// tree writes the files as they are, and returns the commit of them; empty if they
// are those of the baseline.
func (s *saver) tree(ctx context.Context, parent string) (string, error) {
	if err := s.compare(); err != nil {
		return "", err
	}
	before := s.base[RefTree]
	message, err := os.ReadFile(filepath.Join(s.root.Dir(s.rec.ID), modesFile))
	if err != nil {
		return "", err
	}
	modesBefore := ParseModes(string(message))
	if len(s.changed) == 0 {
		if s.sameModes(modesBefore) {
			return "", nil
		}
	}
	tree, err := s.write(ctx)
	if err != nil {
		return "", err
	}
	if err := s.count(ctx, before, tree, modesBefore); err != nil {
		return "", err
	}
	return commitTree(ctx, s.clean(""), tree, s.modes.Message("hayward: what "+s.rec.ID+" left"), time.Now(), parent)
}

// look looks at every file. It touches nothing of the saver but index and seen.
func (s *saver) look(ctx context.Context) (err error) {
	if s.index, err = readIndex(s.root.baseIndex(s.rec.ID), s.rec.ObjectFormat); err != nil {
		return err
	}
	s.seen, err = look(ctx, s.top, s.index, s.clean(""), nil)
	return err
}

// compare sorts what was seen by what the baseline has.
func (s *saver) compare() error {
	seen := s.seen
	for i := range s.index.entries {
		e, st := &s.index.entries[i], &seen.stats[i]
		now := statOf(st)
		now.dev = e.stat.dev
		if st.Mode == 0 || now != e.stat || gitMode(st.Mode) != e.mode {
			s.changed = append(s.changed, e.path)
		}
		if st.Mode != 0 {
			s.take(e.path, st)
		}
	}
	top, err := os.OpenFile(s.top, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer top.Close()
	for _, p := range seen.others {
		st, err := statBeneath(top, p)
		if absent(err) {
			continue // it runs still
		}
		if err != nil {
			return fmt.Errorf("look at %s: %w", p, err)
		}
		s.others[p] = st
		s.changed = append(s.changed, p)
		s.take(p, &st)
	}
	for what, list := range map[string][]string{
		"embedded repository": seen.embedded, "special file": seen.special, "unreadable directory": seen.unreadable,
	} {
		if len(list) > 0 {
			s.out.keepFor("%s %s", what, list[0])
		}
	}
	if path := s.ownIgnored(); path != "" {
		s.out.keepFor("ignored files: %s", path)
	}
	return nil
}

// take adds a file to the sums.
func (s *saver) take(path string, st *unix.Stat_t) {
	s.out.files++
	s.out.bytes += st.Size
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		s.modes.note(path, os.FileMode(st.Mode&0o777))
	}
}

// statBeneath is lstat of a path below a directory without following links.
func statBeneath(top *os.File, path string) (unix.Stat_t, error) {
	var st unix.Stat_t
	dir, name := split(path)
	fd, err := beneath(top, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	err = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

// sameModes reports whether the permissions that git does not keep are as before.
func (s *saver) sameModes(before Modes) bool {
	if len(before) != len(s.modes) {
		return false
	}
	for path, mode := range s.modes {
		if before[path] != mode {
			return false
		}
	}
	return true
}

// write has git take up the changed files, in the baseline's index as a file of its
// own, and returns the tree.
func (s *saver) write(ctx context.Context) (string, error) {
	paths, restore, err := s.readable()
	defer restore()
	if err != nil {
		return "", err
	}
	// git compares times by the second and trusts an index that is younger than a
	// file, as every copy is: it has to read what is known to have changed.
	for _, p := range paths {
		if e := s.index.find(p); e != nil {
			e.stat = statData{}
		}
	}
	g := s.clean(filepath.Join(s.root.Dir(s.rec.ID), "end.index"))
	defer os.Remove(g.Index)
	if err := os.WriteFile(g.Index, s.index.encode(), 0o600); err != nil {
		return "", err
	}
	if err := updateIndex(ctx, g, paths); err != nil {
		return "", err
	}
	// write-tree replaces the index at most by an equal one.
	var x *index
	read := make(chan error, 1)
	go func() {
		var err error
		if len(s.others) > 0 {
			x, err = readIndex(g.Index, s.rec.ObjectFormat)
		}
		read <- err
	}()
	tree, e := g.Line(ctx, "write-tree")
	if err := <-read; err != nil {
		return "", err
	}
	if e != nil {
		return "", e
	}
	s.taken(x)
	return tree, nil
}

// taken notes new files that git did not take up: it refuses names like .git.
func (s *saver) taken(x *index) {
	for p := range s.others {
		if st := s.others[p]; x.find(p) == nil && st.Size <= maxSaved {
			s.out.keepFor("not saved: %s", p)
		}
	}
}

// readable returns the changed files that can be saved, makes those readable that
// are not, and returns what puts their modes back.
func (s *saver) readable() (paths []string, restore func(), err error) {
	var undo []func()
	restore = func() {
		for _, f := range undo {
			f()
		}
	}
	top, err := os.OpenFile(s.top, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, restore, err
	}
	undo = append(undo, func() { top.Close() })
	var need uint64
	for _, p := range s.changed {
		st, ok := s.others[p]
		if !ok {
			if st, err = statBeneath(top, p); err != nil {
				if absent(err) {
					paths = append(paths, p) // deleted
					continue
				}
				return nil, restore, fmt.Errorf("look at %s: %w", p, err)
			}
		}
		if st.Size > maxSaved {
			s.out.keepFor("large file %s", p)
			continue
		}
		need += uint64(st.Size)
		if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o400 == 0 && os.Geteuid() != 0 {
			if err := chmodBeneath(top, p, st.Mode&0o777|0o400); err != nil {
				return nil, restore, fmt.Errorf("read %s: %w", p, err)
			}
			undo = append([]func(){func() { _ = chmodBeneath(top, p, st.Mode&0o777) }}, undo...)
		}
		paths = append(paths, p)
	}
	free, size, err := diskspaceOf(s.rec.CommonDir)
	if err == nil && need+diskspace.Output(size) > free {
		err = events.Errorf(events.CodeStorageFull, events.LayerWorkspace,
			"worktree %s: %d bytes are free for objects in %s, %d are to be saved", s.rec.ID, free, s.rec.CommonDir, need).
			WithRemedy("free space; the directory is kept, and hayward worktree snapshot saves it then")
	}
	return paths, restore, err
}

func diskspaceOf(path string) (free, size uint64, err error) {
	dir, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer dir.Close()
	return diskspace.Free(int(dir.Fd()))
}

func chmodBeneath(top *os.File, path string, mode uint32) error {
	fd, err := beneath(top, path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), os.FileMode(mode))
}
