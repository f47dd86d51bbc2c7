package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// roots are the paths of a request, canonical: absolute, clean, and without a
// symbolic link in any component.
type roots struct {
	workspace string
	// wide is true for a workspace that was opened on purpose only.
	wide  bool
	temp  string
	cache string
	bus   string
	// writable are all writable roots, sorted; outermost those below no other.
	writable, outermost []string
	// hidden are the topmost hidden directories, sorted.
	hidden []string
	// pins are the ancestors of hidden directories below a writable root,
	// shallow before deep.
	pins   []string
	inputs []Bind
}

// sharedTemp are the host's temporary directories, writable where they exist.
var sharedTemp = []string{"/tmp", "/var/tmp", "/dev/shm"}

// resolveRoots checks the paths of r and makes them canonical.
func resolveRoots(r Request) (*roots, *events.Error) {
	out := new(roots)
	var e *events.Error
	dir := func(what, path string) string {
		if e != nil || path == "" {
			return ""
		}
		var resolved string
		if resolved, e = canonicalDir(what, path); e != nil {
			return ""
		}
		return resolved
	}
	if r.Workspace == "" || r.TempDir == "" {
		return nil, pathError("the request names no workspace or no temporary directory")
	}
	out.workspace = dir("workspace", r.Workspace)
	out.temp = dir("temporary directory", r.TempDir)
	out.cache = dir("cache root", r.CacheRoot)
	out.bus = dir("bus directory", r.Bus)
	cwd := dir("working directory", r.Cwd)
	if e == nil && r.ChildBinary != "" {
		_, e = canonicalFile("child binary", r.ChildBinary)
	}
	var added, hidden []string
	for _, d := range r.AddDirs {
		added = append(added, dir("added directory", d))
	}
	for _, d := range r.Hidden {
		hidden = append(hidden, dir("hidden directory", d))
	}
	if e != nil {
		return nil, e
	}
	if out.temp != filepath.Clean(r.TempDir) {
		// Another subagent of the user can write /tmp: what stands there must be the
		// directory that was made, not a link to what it would like to be writable.
		return nil, refused("the temporary directory %s is a link to %s", r.TempDir, out.temp)
	}
	out.hidden = topmost(hidden)

	if e := checkWorkspace(out.workspace, canonicalHome(r.Home), out.hidden); e != nil {
		if out.wide = slices.Contains(added, out.workspace); !out.wide {
			return nil, e
		}
	}
	out.writable = append(append(out.writable, out.workspace, out.temp), added...)
	if out.cache != "" {
		out.writable = append(out.writable, out.cache)
	}
	for _, w := range append(slices.Clone(out.writable), cwd) {
		for _, h := range out.hidden {
			if w != "" && within(w, h) {
				return nil, refused("%s lies in %s, which no subagent may reach", w, h)
			}
		}
	}
	for _, d := range sharedTemp {
		if resolved, err := filepath.EvalSymlinks(d); err == nil {
			out.writable = append(out.writable, resolved)
		}
	}
	slices.Sort(out.writable)
	out.writable = slices.Compact(out.writable)
	out.outermost = topmost(out.writable)
	out.pins = pins(out.outermost, out.hidden)
	out.inputs, e = resolveInputs(r.Inputs, out.temp)
	return out, e
}

// checkWorkspace refuses workspaces that would open more than anyone means to.
func checkWorkspace(workspace, home string, hidden []string) *events.Error {
	why := ""
	switch {
	case workspace == "/":
		why = "is the whole file system"
	case home != "" && workspace == home:
		why = "is the home directory"
	case home != "" && within(home, workspace):
		why = "holds the home directory"
	}
	for _, h := range hidden {
		if why == "" && within(h, workspace) {
			why = "holds " + h + ", where the coordinator keeps its state"
		}
	}
	if why == "" {
		return nil
	}
	return refused("the workspace %s %s", workspace, why).
		WithRemedy("name a smaller --workspace, or say --add-dir %s to open it on purpose", workspace)
}

// resolveInputs checks that each source is a file and each target one below temp.
func resolveInputs(inputs []Bind, temp string) ([]Bind, *events.Error) {
	var out []Bind
	for _, b := range inputs {
		source, e := canonicalFile("input", b.Source)
		if e != nil {
			return nil, e
		}
		target, e := canonicalFile("place of an input", b.Target)
		if e != nil {
			return nil, e
		}
		if !within(target, temp) {
			return nil, pathError("the place %s of an input is not below %s", target, temp)
		}
		out = append(out, Bind{Source: source, Target: target})
	}
	// The caller's order carries no meaning, so it must not reach the hash.
	slices.SortFunc(out, func(a, b Bind) int { return strings.Compare(a.Target, b.Target) })
	return out, nil
}

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
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

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
