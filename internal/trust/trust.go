// Package trust keeps the list of projects whose own files count: their
// configuration, and what their agent definitions say beyond names.
//
// A project is the git repository around a directory, else the directory itself.
// Trust is for these files as they were then: with the first that is added, changed
// or removed the project is not trusted any more. So neither a subagent that writes
// in the project nor a commit that somebody pulls has a say.
package trust

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/durable"
)

// Project is a project that is trusted.
type Project struct {
	// Dir is its canonical path.
	Dir   string    `json:"dir"`
	Since time.Time `json:"since"`
	// Digest is that of the files that were trusted.
	Digest string `json:"digest"`
}

// List is the file that holds the projects. Changes of several processes follow
// one another.
type List struct{ path string }

// Open returns the list in a file, which need not be there.
func Open(path string) List { return List{path} }

type content struct {
	Projects []Project `json:"projects"`
}

// ProjectOf returns the canonical directory of the project around dir.
func ProjectOf(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if top := repository(dir); top != "" {
		return top, nil
	}
	return dir, nil
}

// repository is the directory at or above dir that holds .git, or empty. Git is
// not asked: its answer depends on files of a project that is not trusted yet.
func repository(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return ""
		}
	}
}

// Projects lists the projects by path.
func (l List) Projects() ([]Project, error) {
	b, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the trusted projects: %w", err)
	}
	var c content
	if err := events.DecodeRecord(b, &c); err != nil {
		return nil, fmt.Errorf("read the trusted projects: %s: %w", l.path, err)
	}
	return c.Projects, nil
}

// Trusts reports whether dir is in a trusted project whose files are those that
// were trusted. A list that cannot be read trusts nothing.
func (l List) Trusts(dir string) (bool, error) {
	top, err := ProjectOf(dir)
	if err != nil {
		return false, err
	}
	projects, err := l.Projects()
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(projects, func(p Project) bool { return p.Dir == top })
	if i < 0 {
		return false, nil
	}
	now, err := digest(top)
	return err == nil && now == projects[i].Digest, err
}

// Add trusts the project around dir, with its files as they are, and returns its
// directory. The root directory and a home are no projects.
func (l List) Add(dir, home string, now time.Time) (top string, added bool, err error) {
	if top, err = ProjectOf(dir); err != nil {
		return "", false, err
	}
	if canonical, err := filepath.EvalSymlinks(home); err == nil {
		home = canonical
	}
	if top == "/" || top == home {
		return top, false, fmt.Errorf("%s is not a project: everything below it would count", top)
	}
	sum, err := digest(top)
	if err != nil {
		return top, false, err
	}
	err = l.change(func(projects []Project) []Project {
		projects = slices.DeleteFunc(projects, func(p Project) bool { return p.Dir == top && p.Digest != sum })
		if slices.ContainsFunc(projects, func(p Project) bool { return p.Dir == top }) {
			return projects
		}
		added = true
		return append(projects, Project{Dir: top, Since: now.UTC().Truncate(time.Second), Digest: sum})
	})
	return top, added, err
}

// Remove takes trust back. dir may be gone by now.
func (l List) Remove(dir string) (top string, removed bool, err error) {
	if top, err = ProjectOf(dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return "", false, err
		}
		if top, err = filepath.Abs(dir); err != nil {
			return "", false, err
		}
	}
	err = l.change(func(projects []Project) []Project {
		return slices.DeleteFunc(projects, func(p Project) bool {
			removed = removed || p.Dir == top
			return p.Dir == top
		})
	})
	return top, removed, err
}

func (l List) change(edit func([]Project) []Project) error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return fmt.Errorf("change the trusted projects: %w", err)
	}
	lock, err := os.OpenFile(l.path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("change the trusted projects: %w", err)
	}
	defer lock.Close()
	// It is held for the few writes below.
	for err = unix.Flock(int(lock.Fd()), unix.LOCK_EX); errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("change the trusted projects: lock %s: %w", lock.Name(), err)
	}
	projects, err := l.Projects()
	if err != nil {
		return err
	}
	projects = edit(projects)
	slices.SortFunc(projects, func(a, b Project) int { return cmp.Compare(a.Dir, b.Dir) })
	b, err := events.MarshalRecord(content{projects})
	if err != nil {
		return fmt.Errorf("change the trusted projects: %w", err)
	}
	if err := durable.WriteFile(l.path, b); err != nil {
		return fmt.Errorf("change the trusted projects: %w", err)
	}
	return nil
}
