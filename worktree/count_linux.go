package worktree

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// count compares two trees.
func (s *saver) count(ctx context.Context, before, after string, modesBefore Modes) error {
	out, e := s.clean("").Output(ctx, "diff-tree", "-r", "-t", "-z", "--raw", "--numstat", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", before, after)
	if e != nil {
		return e
	}
	s.fresh = newObjects(out)
	counted := make(map[string]bool)
	list := fields(out)
	for i := 0; i < len(list); i++ {
		if strings.HasPrefix(list[i], ":") {
			i++ // the path follows
			continue
		}
		p := strings.SplitN(list[i], "\t", 3)
		if len(p) != 3 {
			continue
		}
		counted[p[2]] = true
		s.out.changes.Files++
		for i, sum := range []*int{&s.out.changes.Insertions, &s.out.changes.Deletions} {
			if n, err := strconv.Atoi(p[i]); err == nil { // "-" is a binary file
				*sum += n
			}
		}
	}
	for i := range s.index.entries {
		p := s.index.entries[i].path
		if s.seen.stats[i].Mode != 0 && !counted[p] && modesBefore[p] != s.modes[p] {
			s.out.changes.Files++
		}
	}
	return nil
}

// ownIgnored returns an ignored path that the subagent made or changed, if any: it
// is saved nowhere else.
func (s *saver) ownIgnored() string {
	if len(s.seen.ignored) == 0 {
		return ""
	}
	included, err := readIndex(filepath.Join(s.root.Dir(s.rec.ID), includedFile), "sha1")
	if err != nil {
		return s.seen.ignored[0]
	}
	top, err := os.OpenFile(s.top, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return s.seen.ignored[0]
	}
	defer top.Close()
	level := slices.Clone(s.seen.ignored)
	for len(level) > 0 {
		p := level[0]
		level = level[1:]
		if dir, ok := strings.CutSuffix(p, "/"); ok {
			below, err := namesBeneath(top, dir)
			if err != nil {
				return p
			}
			level = append(level, below...)
			continue
		}
		e := included.find(p)
		st, err := statBeneath(top, p)
		now := statOf(&st)
		if e == nil || err != nil || now != e.stat || gitMode(st.Mode) != e.mode {
			return p
		}
	}
	return ""
}

// namesBeneath lists a directory; those in it have a slash at their end.
func namesBeneath(top *os.File, dir string) ([]string, error) {
	fd, err := beneath(top, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	list, err := f.ReadDir(-1)
	var out []string
	for _, e := range list {
		name := join(dir, e.Name())
		if e.IsDir() {
			name += "/"
		}
		out = append(out, name)
	}
	return out, err
}
