package sandbox

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// canonical returns a path without a symbolic link in any component.
func canonical(what, path string) (string, os.FileInfo, *events.Error) {
	if !filepath.IsAbs(path) {
		return "", nil, pathError("the %s %q is not an absolute path", what, path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, pathError("find the %s: %w", what, err)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", nil, pathError("find the %s: %w", what, err)
	}
	return resolved, info, nil
}

func canonicalDir(what, path string) (string, *events.Error) {
	resolved, info, e := canonical(what, path)
	if e == nil && !info.IsDir() {
		e = pathError("the %s %s is not a directory", what, resolved)
	}
	return resolved, e
}

func canonicalFile(what, path string) (string, *events.Error) {
	resolved, info, e := canonical(what, path)
	if e == nil && !info.Mode().IsRegular() {
		e = pathError("the %s %s is not a regular file", what, resolved)
	}
	return resolved, e
}

// canonicalHome is best effort: a home that does not exist protects nothing.
func canonicalHome(home string) string {
	if resolved, err := filepath.EvalSymlinks(home); home != "" && err == nil {
		return resolved
	}
	return home
}

// servers are the directories whose sockets stay within reach: what runs inside
// listens there.
func (r *roots) servers() []string {
	out := []string{r.temp}
	if !r.wide {
		out = append(out, r.workspace)
	}
	return out
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool { return policy.Within(path, dir) }

// topmost returns dirs sorted, without those that lie in another.
func topmost(dirs []string) []string {
	sorted := slices.Clone(dirs)
	slices.Sort(sorted)
	var out []string
	for _, d := range sorted {
		if !slices.ContainsFunc(out, func(o string) bool { return within(d, o) }) {
			out = append(out, d)
		}
	}
	return out
}

// pins returns the directories strictly between a writable root and a hidden
// directory in it, which a child could otherwise rename to put a forgery in
// their place. A mount point cannot be renamed.
func pins(outermost, hidden []string) []string {
	var out []string
	for _, h := range hidden {
		for _, root := range outermost {
			if !within(h, root) {
				continue
			}
			for d := filepath.Dir(h); d != root && within(d, root); d = filepath.Dir(d) {
				out = append(out, d)
			}
		}
	}
	// A parent sorts before what is in it.
	slices.Sort(out)
	return slices.Compact(out)
}

func pathError(format string, args ...any) *events.Error {
	return events.Errorf(events.CodeSandboxFailed, events.LayerWorkspace, "prepare the sandbox: "+format, args...)
}

func refused(format string, args ...any) *events.Error {
	return events.Errorf(events.CodeWorkspaceRefused, events.LayerWorkspace, format, args...)
}
