package spawner

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// Reach finds the directories and the program that a confined subagent asks for, as
// far as its sandbox lets it look itself. Whatever is wrong with one of them is one
// error: otherwise it could ask what there is where it may not look.
func (a Asking) Reach(s events.Spawn) (events.Spawn, *events.Error) {
	if a.Bounds == nil {
		return s, nil
	}
	r := newReach(a)
	s.AddDirs = slices.Clone(s.AddDirs)
	dirs := []struct {
		member string
		path   *string
	}{{"cwd", &s.Cwd}, {"workspace", &s.Workspace}}
	for i := range s.AddDirs {
		dirs = append(dirs, struct {
			member string
			path   *string
		}{"add_dirs", &s.AddDirs[i]})
	}
	for _, d := range dirs {
		if *d.path == "" {
			continue
		}
		found, info := r.find(*d.path)
		if info == nil || !info.IsDir() {
			return s, events.Errorf(events.CodeCwdMissing, events.LayerWorkspace,
				"spawn: %s: %s is not a directory within reach of subagent %s", d.member, *d.path, a.Spec.ID).
				WithRemedy("name a directory that the subagent can read itself")
		}
		*d.path = found
	}
	// The program of a type is in its definition, which is not the subagent's.
	if len(s.Command) > 0 && strings.EqualFold(cmp.Or(s.SubagentType, TypeCommand), TypeCommand) && !r.finds(s) {
		return s, events.Errorf(events.CodeCommandNotFound, events.LayerGate,
			"spawn: %s: not found within reach of subagent %s", s.Command[0], a.Spec.ID).
			WithRemedy("name a program that the subagent can run itself")
	}
	return s, nil
}

// maxLinks is how many links a path may lead through, as for the kernel.
const maxLinks = 40

// reach follows paths as one who is kept within bounds can.
type reach struct {
	bounds policy.Bounds
	opened []string
	// covered are the host's directories that have another one in their place, hidden
	// the coordinator's, of which only own is shown.
	covered, hidden []string
	own             string
}

func newReach(a Asking) reach {
	r := reach{bounds: *a.Bounds, opened: slices.Concat(a.Bounds.Readable, a.Bounds.Writable), hidden: canonical(a.Hidden), own: a.Tree}
	if r.bounds.PrivateTemp {
		r.covered = canonical(policy.SharedTemp)
	}
	return r
}

// canonical are the canonical paths of those that exist.
func canonical(paths []string) []string {
	var out []string
	for _, p := range paths {
		if c, err := filepath.EvalSymlinks(p); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// sees reports whether it can be seen that something is at a canonical path: what is
// denied cannot, and what is covered only where something in it is opened. The files
// of processes are other ones inside.
func (r reach) sees(path string) bool {
	within := func(trees []string) bool {
		return slices.ContainsFunc(trees, func(t string) bool { return policy.Within(path, t) })
	}
	leadsTo := func(t string) bool { return policy.Within(t, path) }
	owned := r.own != "" && (policy.Within(path, r.own) || leadsTo(r.own))
	switch {
	case policy.Within(path, "/proc"):
		return false
	case within(r.hidden) && !owned:
		return false
	case slices.ContainsFunc(r.bounds.Denied, func(d policy.Denied) bool { return policy.Within(path, d.Path) }):
		return false
	}
	return !within(r.covered) || within(r.opened) || slices.ContainsFunc(r.opened, leadsTo)
}

// find returns the canonical path of what can be read at an absolute path, and what
// it is; nil for what is not there or out of reach. No step is looked at that could
// not be looked at inside: a link may lead out and in again.
func (r reach) find(path string) (string, fs.FileInfo) {
	if !filepath.IsAbs(path) {
		return "", nil
	}
	at, links := "/", 0
	for steps := strings.Split(path, "/"); len(steps) > 0; {
		step := steps[0]
		steps = steps[1:]
		next := filepath.Join(at, step) // also of "", "." and "..": at has no links
		if !r.sees(next) {
			return "", nil
		}
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if len(steps) > 0 && !info.IsDir() {
				return "", nil
			}
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", nil
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		steps = append(strings.Split(target, "/"), steps...)
	}
	info, err := os.Lstat(at)
	if err != nil || !r.bounds.Reads(at) {
		return "", nil
	}
	return at, info
}

// finds reports whether the program of a spawn is where [findCommand] looks for it.
// Of one that is named by its path, that says whether it can be run.
func (r reach) finds(s events.Spawn) bool {
	name := s.Command[0]
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = s.Cwd + "/" + name
		}
		_, info := r.find(name)
		return info != nil
	}
	path, ok := s.Env["PATH"]
	if !ok {
		path = baseEnvironment["PATH"]
	}
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		found, info := r.find(dir + "/" + name)
		if info == nil {
			return false
		}
		_, err := exec.LookPath(found)
		return err == nil
	})
}
