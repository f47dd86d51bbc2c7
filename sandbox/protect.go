package sandbox

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// homes are the directories in which credentials are looked for: that of the
// request and that of the user, which may differ.
func homes(request string) []string {
	var out []string
	add := func(home string) {
		if home = canonicalHome(home); home != "" && home != "/" && !slices.Contains(out, home) {
			out = append(out, home)
		}
	}
	add(request)
	if u, err := user.Current(); err == nil {
		add(u.HomeDir)
	}
	return out
}

// openRepository lets a commit be made in a linked work tree.
func (out *roots) openRepository() {
	if out.caps.ClosedWorkspace || !out.caps.Protect || out.owns(out.workspace) {
		return
	}
	r, err := findRepository(out.workspace)
	if err != nil {
		out.missing = append(out.missing, fmt.Sprintf("%s: %v", filepath.Join(out.workspace, ".git"), err))
	}
	for _, dir := range r.open {
		out.caps.ReadWrite = append(out.caps.ReadWrite, policy.Entry{Path: dir, Origin: "repository"})
	}
	out.repository = r
}

// protect finds what is to be denied and closed, and the ancestors to pin.
func (out *roots) protect(r Request) *events.Error {
	if e := out.deny(r); e != nil {
		return e
	}
	closed := append(slices.Clone(r.Protected), r.Closed...)
	if r.Original != "" && !slices.ContainsFunc(out.writable, func(t tree) bool { return within(t.path, r.Original) }) {
		closed = append(closed, r.Original)
	}
	if out.caps.Protect {
		dirs := []string{out.workspace}
		for _, home := range homes(r.Home) {
			if out.writes(home) && home != out.workspace {
				dirs = append(dirs, home)
			}
		}
		for _, path := range policy.RunLater(dirs, out.caps.AllowWrite) {
			// Nobody outside uses the repository in the child's own directory.
			if !out.owns(path) || !within(path, filepath.Join(out.own, ".git")) {
				closed = append(closed, path)
			}
		}
		if !out.caps.ClosedWorkspace {
			out.gaps = append(out.gaps, GapMade)
		}
		switch {
		case out.wide:
			out.gaps = append(out.gaps, GapNested)
		case !out.caps.ClosedWorkspace:
			out.repository.closed = append(out.repository.closed, out.closeNested()...)
		}
		for _, path := range out.repository.closed {
			if !slices.ContainsFunc(out.caps.AllowWrite, func(e policy.Entry) bool { return within(path, e.Path) }) {
				closed = append(closed, path)
			}
		}
	}
	if out.caps.ClosedWorkspace {
		closed = append(closed, out.workspace)
	}
	if r.Within != nil {
		closed = append(closed, r.Within.Closed...)
	}
	open := false
	var resolved []string
	for _, path := range closed {
		canonical, err := policy.Canonical(path)
		if policy.LeadsNowhere(err) && r.MakeHooks && filepath.Base(path) == "hooks" && out.writes(path) && out.leadsToCommands(path) && makeHooks(path) {
			canonical, err = policy.Canonical(path)
		}
		switch {
		case policy.LeadsNowhere(err):
			open = open || out.writes(path)
			if out.writes(path) && out.leadsToCommands(path) {
				out.absent = append(out.absent, path)
			}
			if slices.Contains(r.Protected, path) && out.writes(path) {
				out.missing = append(out.missing, path)
			}
		case err != nil:
			return pathError("find what is protected: %w", err)
		default:
			// Whoever can write the directory of a link can put another in its place.
			open = open || canonical != path && out.writes(path)
			resolved = append(resolved, canonical)
		}
	}
	for _, path := range topmost(resolved) {
		if out.writes(path) && !out.covered(path) {
			out.closed = append(out.closed, path)
		}
	}
	if open {
		out.gaps = append(out.gaps, GapProtected)
	}
	for _, path := range pins(out.outermost, slices.Concat(out.hidden, out.closed, out.placed)) {
		if !out.covered(path) && !slices.Contains(out.closed, path) {
			out.pins = append(out.pins, path)
		}
	}
	return nil
}

// leadsToCommands reports whether a name that does not exist would, once it does,
// make the next plain use of an existing repository run something.
func (out *roots) leadsToCommands(path string) bool {
	if filepath.Base(filepath.Dir(path)) != ".git" && !slices.Contains(out.repository.closed, path) {
		return false
	}
	st, err := os.Stat(filepath.Dir(path))
	return err == nil && st.IsDir()
}

// byPlace reports whether what an entry denies would leave it with a directory that
// is moved. An entry such as **/NAME finds it again. What the spawner's sandbox
// denies is held in place as it is there.
func byPlace(m policy.Match, within *policy.Bounds) bool {
	if m.Entry.Origin == spawnersSandbox {
		return within != nil && slices.ContainsFunc(within.Denied, func(d policy.Denied) bool { return d.Placed && d.Path == m.Path })
	}
	name, anywhere := strings.CutPrefix(m.Entry.Path, "**/")
	return !(m.Entry.Pattern && anywhere && !strings.Contains(name, "/"))
}

// deny finds what the profile and the group of credentials put out of reach.
func (out *roots) deny(r Request) *events.Error {
	explicit, err := policy.Expand(out.caps.Deny, policy.DefaultLimits)
	if err != nil {
		return events.Errorf(events.CodeSandboxFailed, events.LayerWorkspace, "find what to deny: %w", err).
			WithRemedy("name less, or directories instead of what is in them")
	}
	group, err := policy.Expand(policy.Credentials(homes(r.Home), out.caps.AllowCredentials), policy.DefaultLimits)
	if err != nil {
		return pathError("find the credentials: %w", err)
	}
	out.missing = append(out.missing, explicit.Missing...)
	if e := out.hardLinks(explicit.Matches, true); e != nil {
		return e
	}
	if e := out.hardLinks(group.Matches, false); e != nil {
		return e
	}
	outer, err := policy.Expand(spawnerDenies(r.Within), policy.DefaultLimits)
	if err != nil {
		return pathError("find what the spawner's sandbox denies: %w", err)
	}
	for _, m := range slices.Concat(explicit.Matches, group.Matches, outer.Matches) {
		if e := out.mayDeny(m, r.Cwd); e != nil {
			return e
		}
		out.denied = append(out.denied, tree{m.Path, m.Info.IsDir(), m.Entry.Origin, policy.IdentityOf(m.Info)})
		if byPlace(m, r.Within) {
			out.placed = append(out.placed, m.Path)
		}
	}
	out.denied = topmostTrees(out.denied)
	out.denied = slices.DeleteFunc(out.denied, func(t tree) bool {
		return slices.ContainsFunc(out.hidden, func(h string) bool { return within(t.path, h) })
	})
	out.hidden = slices.DeleteFunc(out.hidden, func(h string) bool { return out.covered(h) })
	if slices.ContainsFunc(out.caps.Deny, func(e policy.Entry) bool { return e.Pattern }) || len(explicit.Missing) > 0 {
		out.gaps = append(out.gaps, GapDenyNew)
	}
	if slices.ContainsFunc(out.denied, func(t tree) bool { return !t.dir }) {
		out.gaps = append(out.gaps, GapDenyReplace)
	}
	if slices.ContainsFunc(explicit.Matches, func(m policy.Match) bool { return within(m.Path, out.workspace) }) {
		out.gaps = append(out.gaps, GapDenyHistory)
	}
	return nil
}

// mayDeny refuses to cover what the child works in, and what cannot be covered.
func (out *roots) mayDeny(m policy.Match, cwd string) *events.Error {
	if within(m.Path, "/proc") || m.Path == "/" {
		return refused("%s of %s cannot be denied", m.Path, m.Entry.Origin)
	}
	for _, path := range []string{out.workspace, out.temp, out.cache, cwd} {
		if path != "" && within(path, m.Path) {
			return refused("%s, which the child works in, lies in %s, which %s denies", path, m.Path, m.Entry.Origin).
				WithRemedy("work elsewhere, or with a profile that does not deny it")
		}
	}
	return nil
}

// hardLinks finds further names of denied files in the workspace and denies them
// as well. A name that is not found would open what an entry denies.
func (out *roots) hardLinks(matches []policy.Match, explicit bool) *events.Error {
	type file struct {
		name         string
		names, found uint64
	}
	linked := make(map[policy.Identity]*file)
	for _, m := range matches {
		if m.Info.Mode().IsRegular() && policy.Links(m.Info) > 1 {
			id := policy.IdentityOf(m.Info)
			if linked[id] == nil {
				linked[id] = &file{name: m.Path, names: policy.Links(m.Info)}
			}
			linked[id].found++
		}
	}
	if len(linked) == 0 {
		return nil
	}
	twins, err := policy.Twins(out.workspace, matches, policy.DefaultLimits)
	if err != nil {
		return pathError("%w", err)
	}
	for _, t := range twins {
		linked[policy.IdentityOf(t.Info)].found++
		out.denied = append(out.denied, tree{t.Path, false, t.Entry.Origin + " (hard link)", policy.IdentityOf(t.Info)})
	}
	for _, f := range linked {
		switch {
		case f.found >= f.names:
		case explicit:
			return events.Errorf(events.CodeSandboxFailed, events.LayerWorkspace,
				"%s is to be denied and has %d names, of which %d were found", f.name, f.names, f.found).
				WithRemedy("remove its other hard links (find / -samefile %s), or replace it by a copy", f.name)
		case !slices.Contains(out.gaps, GapDenyHardLink):
			out.gaps = append(out.gaps, GapDenyHardLink)
		}
	}
	return nil
}

// covered reports whether a path lies in a denied directory.
func (out *roots) covered(path string) bool {
	return slices.ContainsFunc(out.denied, func(t tree) bool { return within(path, t.path) })
}

func byPath(a, b tree) int { return strings.Compare(a.path, b.path) }

// topmostTrees sorts trees and leaves out what lies in another.
func topmostTrees(trees []tree) []tree {
	slices.SortFunc(trees, byPath)
	taken := make(map[string]bool, len(trees))
	var out []tree
	for _, t := range trees {
		covered := taken[t.path]
		for d := filepath.Dir(t.path); !covered && d != "/"; d = filepath.Dir(d) {
			covered = taken[d]
		}
		if !covered {
			taken[t.path] = true
			out = append(out, t)
		}
	}
	return out
}
