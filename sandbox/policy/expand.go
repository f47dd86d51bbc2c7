package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits bound one expansion. They are shared by all its entries.
type Limits struct {
	// Depth is how deep below a pattern's root a directory may be entered,
	// Matches how many paths may be found, Entries how many may be looked at.
	Depth, Matches, Entries int
}

// DefaultLimits are those of every sandbox.
var DefaultLimits = Limits{Depth: 64, Matches: 4096, Entries: 2_000_000}

// Match is one path that an entry leads to.
type Match struct {
	// Path is canonical: no component of it is a symbolic link.
	Path string
	// Named is the path by which it was found, which may lead through links.
	Named string
	Info  fs.FileInfo
	Entry Entry
}

// Expansion is what entries lead to.
type Expansion struct {
	// Matches are sorted by path, each path once.
	Matches []Match
	// Missing are the entries that led to nothing, as they were written.
	Missing []string
	// Unreadable are directories that could not be looked into: this user cannot
	// reach what is in them either.
	Unreadable []string
}

// Expand finds what entries lead to in the file system. A link that matches
// counts with what it leads to; directories behind links are not searched, hidden
// and ignored ones are. What vanishes meanwhile is no match.
func Expand(entries []Entry, limits Limits) (Expansion, error) {
	x := &expander{limits: limits, found: make(map[string]Match)}
	walks := make(map[string][]walking)
	for _, e := range entries {
		if !e.Pattern {
			if err := x.exact(e); err != nil {
				return Expansion{}, err
			}
			continue
		}
		p, err := Compile(e.Path, e.Below)
		if err != nil {
			return Expansion{}, fmt.Errorf("pattern %s: %w", e, err)
		}
		root, err := filepath.EvalSymlinks(p.Root)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			x.miss(e)
			continue
		} else if err != nil {
			return Expansion{}, fmt.Errorf("pattern %s: %w", e, err)
		}
		walks[root] = append(walks[root], walking{pattern: p, entry: e, state: p.Start(), hit: new(bool)})
	}
	roots := make([]string, 0, len(walks))
	for root := range walks {
		roots = append(roots, root)
	}
	slices.Sort(roots)
	for _, root := range roots {
		if err := x.enter(); err != nil {
			return Expansion{}, fmt.Errorf("%w at %s", err, root)
		}
		if err := x.walk(root, 0, walks[root], false); err != nil {
			return Expansion{}, err
		}
		for _, w := range walks[root] {
			if !*w.hit {
				x.miss(w.entry)
			}
		}
	}
	return x.result(), nil
}

// walking is one pattern on its way through the tree.
type walking struct {
	pattern Pattern
	entry   Entry
	state   State
	hit     *bool
}

type expander struct {
	limits     Limits
	seen       int
	found      map[string]Match
	missing    []string
	unreadable []string
}

func (x *expander) miss(e Entry) {
	if !e.Optional {
		x.missing = append(x.missing, e.String())
	}
}

func (x *expander) exact(e Entry) error {
	ok, err := x.add(e.Path, e, false)
	if err == nil && !ok {
		x.miss(e)
	}
	return err
}

// add enters what path leads to. It reports false if there is nothing. The
// directory of a walked path is canonical: such a path is as well, but for a link.
func (x *expander) add(path string, e Entry, walked bool) (bool, error) {
	canonical := path
	var info fs.FileInfo
	var err error
	if walked {
		info, err = os.Lstat(path)
	}
	if !walked || err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if canonical, err = Canonical(path); err == nil {
			info, err = os.Lstat(canonical)
		}
	}
	switch {
	case LeadsNowhere(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("entry %s: %w", e, err)
	}
	if _, ok := x.found[canonical]; ok {
		return true, nil
	}
	if len(x.found) >= x.limits.Matches {
		return false, fmt.Errorf("entry %s: more than %d paths match, %s is one too many", e, x.limits.Matches, path)
	}
	x.found[canonical] = Match{Path: canonical, Named: path, Info: info, Entry: e}
	return true, nil
}

// Canonical is [filepath.EvalSymlinks], quicker for what does not exist, as most of
// what is looked for does not.
func Canonical(path string) (string, error) {
	if _, err := os.Lstat(path); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// LeadsNowhere reports whether an error says that a path leads to nothing that
// this user could reach: it does not exist, is closed, or is a loop of links.
func LeadsNowhere(err error) bool {
	return gone(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, errLoop) ||
		err != nil && strings.Contains(err.Error(), "too many links")
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir)
}

// enter counts one entry that is looked at.
func (x *expander) enter() error {
	if x.seen >= x.limits.Entries {
		return fmt.Errorf("more than %d entries to search", x.limits.Entries)
	}
	x.seen++
	return nil
}

// walk searches one directory. In a covered one, which matched itself, only
// links matter: what they lead to may lie outside.
func (x *expander) walk(dir string, depth int, walks []walking, covered bool) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		x.unreadable = append(x.unreadable, dir)
		return nil
	case gone(err):
		return nil
	case err != nil:
		return fmt.Errorf("search %s: %w", dir, err)
	}
	for _, entry := range entries {
		if err := x.enter(); err != nil {
			return fmt.Errorf("%w at %s", err, filepath.Join(dir, entry.Name()))
		}
		if err := x.visit(filepath.Join(dir, entry.Name()), entry, depth, walks, covered); err != nil {
			return err
		}
	}
	return nil
}

func (x *expander) visit(path string, entry fs.DirEntry, depth int, walks []walking, covered bool) error {
	link := entry.Type()&fs.ModeSymlink != 0
	var on []walking
	for _, w := range walks {
		next, matched := w.pattern.Step(w.state, entry.Name())
		if matched {
			if !utf8.ValidString(path) {
				return fmt.Errorf("pattern %s: the name %q is not UTF-8", w.entry, path)
			}
			*w.hit = true
			if !covered || link {
				if _, err := x.add(path, w.entry, true); err != nil {
					return err
				}
			}
			covered = covered || entry.IsDir()
		}
		if len(next) > 0 {
			on = append(on, walking{w.pattern, w.entry, next, w.hit})
		}
	}
	if !entry.IsDir() || len(on) == 0 {
		return nil
	}
	if depth+1 >= x.limits.Depth {
		return fmt.Errorf("pattern %s: %s is %d directories deep", on[0].entry, path, x.limits.Depth)
	}
	return x.walk(path, depth+1, on, covered)
}

func (x *expander) result() Expansion {
	out := Expansion{Missing: x.missing, Unreadable: x.unreadable}
	for _, m := range x.found {
		out.Matches = append(out.Matches, m)
	}
	slices.SortFunc(out.Matches, func(a, b Match) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Twins returns further names below root of those matches that are files with
// several hard links.
func Twins(root string, matches []Match, limits Limits) ([]Match, error) {
	known := make(map[string]bool, len(matches))
	linked := make(map[Identity]Entry)
	for _, m := range matches {
		known[m.Path] = true
		if m.Info.Mode().IsRegular() && Links(m.Info) > 1 {
			linked[IdentityOf(m.Info)] = m.Entry
		}
	}
	if len(linked) == 0 {
		return nil, nil
	}
	var out []Match
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > limits.Entries {
			return fmt.Errorf("search %s for hard links: more than %d entries", root, limits.Entries)
		}
		if errors.Is(err, fs.ErrPermission) || gone(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("search %s for hard links: %w", root, err)
		}
		if !d.Type().IsRegular() || known[path] {
			return nil
		}
		info, err := d.Info()
		if gone(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("search %s for hard links: %w", root, err)
		}
		if entry, ok := linked[IdentityOf(info)]; ok && Links(info) > 1 {
			out = append(out, Match{Path: path, Named: path, Info: info, Entry: entry})
		}
		return nil
	})
	return out, err
}
