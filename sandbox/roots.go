package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// tree is a canonical path that a profile opens: a directory with all that is
// below it, or a file.
type tree struct {
	path string
	dir  bool
	// origin names the profile, file or flag that says so.
	origin string
	// is is what was at the path of a denied one.
	is policy.Identity
}

// roots are the paths of a request, canonical: absolute, clean, and without a
// symbolic link in any component.
type roots struct {
	caps policy.Capabilities
	// shared are the host's temporary directories, canonical.
	shared []string

	workspace string
	// wide is true for a workspace that was opened on purpose only.
	wide  bool
	temp  string
	cache string
	bus   string
	// tempRoot is the directory of all children's temporary ones, empty if temp
	// stands alone.
	tempRoot string
	// readable and writable are what the profile opens, sorted; readable counts
	// only where not everything is. outermost are the writable ones below no other.
	readable, writable []tree
	outermost          []string
	// hidden are the topmost hidden directories, sorted; own is what is shown in one.
	hidden []string
	own    string
	// closed are trees in a writable root that stay read-only, denied those that
	// are out of reach, both topmost and sorted.
	closed []string
	denied []tree
	// placed are the denied ones that are named by their place.
	placed     []string
	repository repository
	// sockets are host sockets that stay within reach.
	sockets []string
	// pins are the ancestors of hidden and closed ones below a writable root,
	// shallow before deep.
	pins   []string
	inputs []Bind
	kept   []Bind
	// missing are entries that led to nothing, as they were written.
	missing []string
	// absent are protected names that did not exist: see [Quarantine].
	absent []string
	// loopback is whether a closed network leaves a loopback device.
	loopback bool
	// narrowed are opened trees that the spawner's sandbox does not open as far.
	narrowed []string
	// gaps are what was found that this sandbox does not cover.
	gaps []string
}

// sharedTemp are the host's temporary directories, canonical, where they exist.
func sharedTemp() []string {
	var out []string
	for _, d := range policy.SharedTemp {
		if resolved, err := filepath.EvalSymlinks(d); err == nil {
			out = append(out, resolved)
		}
	}
	return out
}

// resolveRoots checks the paths of r and makes them canonical.
func resolveRoots(r Request, profile Profile) (*roots, *events.Error) {
	out := &roots{shared: sharedTemp(), loopback: r.Loopback}
	if e := out.resolveRequest(r, profile); e != nil {
		return nil, e
	}
	out.openRepository()
	var e *events.Error
	if out.writable, e = out.open(out.caps.ReadWrite); e != nil {
		return nil, e
	}
	if !out.caps.DefaultRead {
		if out.readable, e = out.open(out.caps.ReadOnly); e != nil {
			return nil, e
		}
	}
	if e := out.narrow(r); e != nil {
		return nil, e
	}
	out.outermost = topmost(treePaths(out.writable))
	out.caps.PrivateTemp = out.caps.PrivateTemp && !out.opensSharedTemp()
	if e := out.reachable(r.Cwd, profile); e != nil {
		return nil, e
	}
	for _, s := range out.caps.Sockets {
		if resolved, err := filepath.EvalSymlinks(s.Path); err == nil {
			out.sockets = append(out.sockets, resolved)
		} else {
			out.missing = append(out.missing, s.String())
		}
	}
	if r.Within != nil {
		out.sockets = slices.DeleteFunc(out.sockets, func(s string) bool { return !slices.Contains(r.Within.Sockets, s) })
	}
	if e := out.protect(r); e != nil {
		return nil, e
	}
	if out.inputs, e = resolveBinds(r.Inputs, out.temp, canonicalFile); e != nil {
		return nil, e
	}
	out.kept, e = resolveBinds(r.Kept, out.temp, canonicalDir)
	return out, e
}

// resolveRequest fills in what the request names itself.
func (out *roots) resolveRequest(r Request, profile Profile) *events.Error {
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
		return pathError("the request names no workspace or no temporary directory")
	}
	out.workspace = dir("workspace", r.Workspace)
	out.temp = dir("temporary directory", r.TempDir)
	out.tempRoot = dir("root of the temporary directories", r.TempRoot)
	out.cache = dir("cache root", r.CacheRoot)
	out.bus = dir("bus directory", r.Bus)
	out.own = dir("own directory", r.Own)
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
		return e
	}
	if out.temp != filepath.Clean(r.TempDir) {
		// Another program of the user may have put a link there: it must not make
		// what it leads to writable.
		return refused("the temporary directory %s is a link to %s", r.TempDir, out.temp)
	}
	if out.tempRoot != "" && filepath.Dir(out.temp) != out.tempRoot {
		return pathError("the temporary directory %s is not directly in %s", out.temp, out.tempRoot)
	}
	out.hidden = topmost(hidden)
	out.caps = policy.Resolve(profile, policy.Place{
		Workspace: out.workspace, Home: canonicalHome(r.Home), TempDir: out.temp, CacheRoot: out.cache,
		AddDirs: added, Top: topDirectories(), Path: filepath.SplitList(r.Path),
	})
	for _, d := range r.Readable {
		out.caps.ReadOnly = append(out.caps.ReadOnly, policy.Entry{Path: d, Origin: "repository"})
	}
	for _, d := range r.Deny {
		if err := policy.CheckDeny(d); err != nil {
			return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "the entry to deny %w", err)
		}
		out.caps.Deny = append(out.caps.Deny, policy.NewEntry(d, "--deny", policy.Place{Workspace: out.workspace, Home: canonicalHome(r.Home)}))
	}
	if !out.caps.ClosedWorkspace {
		if e := checkWorkspace(out.workspace, canonicalHome(r.Home), out.hidden); e != nil {
			if out.wide = slices.Contains(added, out.workspace); !out.wide {
				return e
			}
		}
	}
	for _, w := range append([]string{out.workspace, out.temp, out.cache, cwd}, added...) {
		for _, h := range out.hidden {
			if w != "" && within(w, h) && !out.owns(w) {
				return refused("%s lies in %s, which no subagent may reach", w, h)
			}
		}
	}
	return nil
}

// open returns the trees that entries lead to, sorted, and notes those that lead
// to nothing.
func (out *roots) open(entries []policy.Entry) ([]tree, *events.Error) {
	x, err := policy.Expand(entries, policy.DefaultLimits)
	if err != nil {
		return nil, pathError("%w", err)
	}
	out.missing = append(out.missing, x.Missing...)
	trees := make([]tree, 0, len(x.Matches))
	for _, m := range x.Matches {
		hidden := slices.IndexFunc(out.hidden, func(h string) bool { return within(m.Path, h) })
		switch {
		case hidden < 0 || out.owns(m.Path):
			trees = append(trees, tree{path: m.Path, dir: m.Info.IsDir(), origin: m.Entry.Origin})
		case m.Entry.Optional: // it is no loss
		default:
			return nil, refused("%s of %s lies in %s, which no subagent may reach", m.Path, m.Entry.Origin, out.hidden[hidden])
		}
	}
	return trees, nil
}

// owns reports whether a path lies in the child's own directory.
func (out *roots) owns(path string) bool { return out.own != "" && within(path, out.own) }

// topDirectories are the directories directly below /, links to one included.
func topDirectories() []string {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil // then none of them is opened
	}
	var out []string
	for _, e := range entries {
		path := "/" + e.Name()
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			out = append(out, path)
		}
	}
	return out
}

// reachable refuses a working directory that the command could not even list.
func (out *roots) reachable(cwd string, profile Profile) *events.Error {
	if out.caps.DefaultRead || cwd == "" {
		return nil
	}
	cwd, e := canonicalDir("working directory", cwd)
	if e != nil {
		return e
	}
	for _, t := range append(slices.Clone(out.readable), out.writable...) {
		if within(cwd, t.path) && out.visible(cwd) {
			return nil
		}
	}
	return refused("the working directory %s is not readable under profile %s", cwd, profile.Name()).
		WithRemedy("name it as --workspace or with --add-dir, or use another profile")
}

// visible reports whether a path of the host is seen inside: one in a host's
// temporary directory is not where the child has its own in the place of it,
// unless it is opened.
func (out *roots) visible(path string) bool {
	if !out.caps.PrivateTemp || !out.inSharedTemp(path) {
		return true
	}
	for _, t := range append(slices.Clone(out.readable), out.writable...) {
		if t.path != out.temp && within(path, t.path) {
			return true
		}
	}
	return false
}

// inSharedTemp reports whether a path lies in a temporary directory of the host.
func (out *roots) inSharedTemp(path string) bool {
	return slices.ContainsFunc(out.shared, func(d string) bool { return within(path, d) })
}

// opensSharedTemp reports whether a temporary directory of the host was opened on
// purpose: then the child cannot have its own in the place of it.
func (out *roots) opensSharedTemp() bool {
	return slices.ContainsFunc(out.shared, func(d string) bool {
		return out.writes(d) || slices.ContainsFunc(out.readable, func(t tree) bool { return t.path == "/" || t.path == d })
	})
}

// usableCache is the cache root if the profile opens it.
func (out *roots) usableCache() string {
	opened := slices.ContainsFunc(out.caps.ReadWrite, func(e policy.Entry) bool { return e.Path == out.cache })
	if opened && out.writes(out.cache) {
		return out.cache
	}
	return ""
}

// seen keeps the visible ones of paths.
func (out *roots) seen(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !out.visible(p) })
}

// inside is the path of TMPDIR as the child sees it.
func (out *roots) inside() string {
	if out.caps.PrivateTemp && len(out.shared) > 0 {
		return out.shared[0]
	}
	return out.temp
}

// writes reports whether a path lies in a writable root.
func (out *roots) writes(path string) bool {
	return slices.ContainsFunc(out.outermost, func(root string) bool { return within(path, root) })
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

// resolveBinds checks that sources and targets are of one kind and each target
// below temp.
func resolveBinds(binds []Bind, temp string, canonical func(what, path string) (string, *events.Error)) ([]Bind, *events.Error) {
	var out []Bind
	for _, b := range binds {
		source, e := canonical("source", b.Source)
		if e != nil {
			return nil, e
		}
		target, e := canonical("place", b.Target)
		if e != nil {
			return nil, e
		}
		if !within(target, temp) || target == temp {
			return nil, pathError("the place %s is not below %s", target, temp)
		}
		out = append(out, Bind{Source: source, Target: target})
	}
	// The caller's order carries no meaning, so it must not reach the hash.
	slices.SortFunc(out, func(a, b Bind) int { return strings.Compare(a.Target, b.Target) })
	return out, nil
}
