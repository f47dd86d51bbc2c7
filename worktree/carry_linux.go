package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// carried is what of the user's working tree came into the new one.
type carried struct {
	// own is the index of the subagent: what the user staged, with the stat data of
	// the new tree. base is the index of the baseline, before git took up changed.
	own, base *index
	// changed are the paths of which the index does not say what is in the files.
	changed []string
	modes   Modes
	bytes   int64
}

// copy brings the user's working tree over: tracked files as they are, those that
// are not tracked and not ignored, and ignored ones that .worktreeinclude names.
func (m *maker) copy(ctx context.Context) error {
	repo := m.repo
	user := m.clean("")
	user.WorkTree = repo.top
	skip := func(path string) bool { return within(filepath.Join(repo.top, path), m.root.path) }
	seen, err := look(ctx, repo.top, repo.index, user, skip)
	if err != nil {
		return err
	}
	if len(seen.embedded) > 0 {
		return refusedAs("embedded repository", "%s holds a repository of its own: %s", repo.top, seen.embedded[0]).
			WithDetail("path", seen.embedded[0]).
			WithRemedy("name it in .gitignore or .git/info/exclude, or use --isolation none")
	}
	if len(seen.unreadable) > 0 {
		return fmt.Errorf("the directory %s cannot be read", seen.unreadable[0])
	}
	included, err := m.included(ctx, user, seen)
	if err != nil {
		return err
	}
	return m.bring(ctx, seen, included)
}

// includeFile names ignored files to carry, as patterns like those of .gitignore.
const includeFile = ".worktreeinclude"

// included lists the ignored files that .worktreeinclude names.
func (m *maker) included(ctx context.Context, user Git, seen *survey) ([]string, error) {
	patterns := readBeneath(m.repo.top, includeFile)
	if strings.TrimSpace(patterns) == "" || len(seen.ignored) == 0 {
		return nil, nil
	}
	file := filepath.Join(m.dir, "include")
	index := filepath.Join(m.dir, "include.index")
	err := errors.Join(os.WriteFile(file, []byte(patterns), 0o600), os.WriteFile(index, m.repo.index.encode(), 0o600))
	if err != nil {
		return nil, err
	}
	defer os.Remove(file)
	defer os.Remove(index)
	user.Index = index
	out, e := user.Output(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+file)
	if e != nil {
		return nil, e
	}
	var paths []string
	for _, p := range fields(out) {
		if slices.ContainsFunc(seen.ignored, func(i string) bool {
			return i == p || strings.HasSuffix(i, "/") && strings.HasPrefix(p, i)
		}) && !strings.HasSuffix(p, "/") {
			paths = append(paths, p)
		}
	}
	sort.Strings(paths)
	return paths, nil
}

// bring copies the files and makes both indexes of them.
func (m *maker) bring(ctx context.Context, seen *survey, included []string) error {
	repo := m.repo
	c, err := newCopier(repo.top, m.tree.Path)
	if err != nil {
		return err
	}
	defer c.close()
	var paths []string
	var place []int // in the index, of the first ones of paths
	for i := range repo.index.entries {
		if seen.stats[i].Mode != 0 {
			paths, place = append(paths, repo.index.entries[i].path), append(place, i)
		}
	}
	tracked := len(paths)
	paths = append(append(paths, seen.others...), included...)
	results, err := c.copy(ctx, paths, seen.dirs)
	if err != nil {
		return err
	}
	f := &m.files
	f.own = &index{format: repo.format, entries: slices.Clone(repo.index.entries), cacheTree: repo.index.cacheTree}
	f.modes = make(Modes)
	certain := make([]bool, len(f.own.entries))
	for n := range tracked {
		r, e := &results[n], &f.own.entries[place[n]]
		certain[place[n]] = m.certain(r, &repo.index.entries[place[n]])
		if certain[place[n]] {
			e.stat = statOf(&r.to)
		}
	}
	f.base = &index{format: repo.format, cacheTree: f.own.cacheTree, entries: make([]entry, 0, len(f.own.entries))}
	for i := range f.own.entries {
		e := f.own.entries[i]
		if !certain[i] {
			f.own.entries[i].stat = statData{}
			e.stat = statData{}
			f.changed = append(f.changed, e.path)
		}
		if e.intentToAdd() {
			continue // the baseline has it as it is
		}
		e.flags, e.extended = e.flags&^(flagAssumeValid|flagExtended), 0
		f.base.entries = append(f.base.entries, e)
	}
	f.changed = append(f.changed, seen.others...)
	for n := range results {
		f.bytes += results[n].to.Size
		if mode := results[n].to.Mode; n < tracked+len(seen.others) && gitMode(mode)&^0o777 == modeRegular {
			f.modes.note(paths[n], os.FileMode(mode&0o777))
		}
	}
	return m.noteIncluded(included, results[tracked+len(seen.others):])
}

// certain reports whether a copied file is what the user's index says, to the byte.
func (m *maker) certain(r *copied, e *entry) bool {
	if !r.steady || r.to.Mode == 0 || !e.unchanged(&r.from, m.repo.index.modTime) || e.intentToAdd() {
		return false
	}
	if e.mode == modeSymlink {
		return true
	}
	switch m.repo.converts {
	case convertsNothing:
		return true
	case convertsLineEnds:
		return !r.returns
	}
	return false
}

// includedFile lists the ignored files that were carried, with what they were, so
// that it can be told whether the subagent changed them.
const includedFile = "included"

func (m *maker) noteIncluded(paths []string, results []copied) error {
	x := &index{format: "sha1"}
	for i, p := range paths {
		if mode := gitMode(results[i].to.Mode); mode != 0 {
			x.entries = append(x.entries, entry{stat: statOf(&results[i].to), mode: mode, oid: make([]byte, 20), path: p})
		}
	}
	if len(x.entries) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(m.dir, includedFile), x.encode(), 0o600)
}
