package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// rebuild makes a new directory of what the refs of the source's end hold.
func (m *resumer) rebuild(ctx context.Context) error {
	if err := whole(m.source, m.refs, m.from); err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"rebuilt refs", m.holdEnd},
		{"rebuilt git directory", m.makeEndGit},
		{"rebuilt files", m.checkOut},
		{"rebuilt baseline", m.takeBaseline},
	} {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := step(s.name); err != nil {
			return err
		}
		if err := s.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end is what a ref of the source's end points at, empty for none.
func (m *resumer) end(name string) string { return m.refs["subagents/"+name] }

// ownRefs are the branches, tags and stash that the source made or moved.
func (m *resumer) ownRefs() map[string]string {
	own := make(map[string]string)
	for name, oid := range m.refs {
		rest, ok := strings.CutPrefix(name, "subagents/")
		if ok && (strings.HasPrefix(rest, RefHeads) || strings.HasPrefix(rest, "tags/") || rest == refStash) {
			own["refs/"+rest] = oid
		}
	}
	return own
}

// holdEnd sets the refs of the new subagent's beginning. One of them holds all that
// the source left, so that its refs may go meanwhile.
func (m *resumer) holdEnd(ctx context.Context) error {
	r := *m.repo
	r.id = m.req.ID
	for name, oid := range m.refs {
		if strings.HasPrefix(name, "subagents/") {
			commit, err := m.clean("").Line(ctx, "rev-parse", "--verify", "-q", oid+"^{commit}")
			switch {
			case err == nil:
				r.refs = append(r.refs, userRef{name: "refs/" + name, oid: commit, kind: "commit"})
			case ExitStatus(err) != 1: // a tag of something else is no commit's
				return err
			}
		}
	}
	tree, e := m.clean("").Line(ctx, "rev-parse", "--verify", m.refs["base/"+RefTree]+"^{tree}")
	if e != nil {
		return e
	}
	held, err := r.held(ctx, m.clean(""), tree, m.now())
	if err != nil {
		return err
	}
	l, e := LockRepository(ctx, m.repo.commonDir, m.req.ID)
	if e != nil {
		return e
	}
	defer l.Unlock()
	return m.takeRefs(ctx, held)
}

// makeEndGit makes a git directory as the source left its own: HEAD, branches, tags,
// stash and what was staged.
func (m *resumer) makeEndGit(ctx context.Context) error {
	own := m.ownRefs()
	r := *m.repo
	r.id = m.req.ID
	base := m.refs["base/"+RefHead]
	r.head = cmp.Or(m.end(RefHead), base)
	r.refs = slices.Clone(m.repo.refs)
	if b := m.tree.Branch; b != "" && base != "" { // where the source began, not where the user is now
		r.refs = slices.DeleteFunc(r.refs, func(ref userRef) bool { return ref.name == b })
		r.refs = append(r.refs, userRef{name: b, oid: base, kind: "commit"})
	}
	// What the source made is compared with what it began with, not with itself.
	if err := os.WriteFile(filepath.Join(m.dir, carriedRefs), []byte(r.refList()), 0o600); err != nil {
		return err
	}
	r.refs = slices.DeleteFunc(r.refs, func(ref userRef) bool { return own[ref.name] != "" })
	for name, oid := range own {
		r.refs = append(r.refs, userRef{name: name, oid: oid})
	}
	slices.SortFunc(r.refs, func(a, b userRef) int { return strings.Compare(a.name, b.name) }) // as git looks them up
	r.branch = m.headBranch(r.head, r.refs)
	index, err := m.readTree(ctx, filepath.Join(m.dir, "staged.index"), m.end(RefIndex))
	if err != nil {
		return err
	}
	dir := filepath.Join(m.tree.Path, ".git")
	if err := r.makeOwnGit(dir, m.excludes, index); err != nil {
		return err
	}
	if oid := own["refs/"+refStash]; oid != "" {
		log := strings.Repeat("0", len(oid)) + " " + oid + " Hayward <hayward@localhost> " + m.now() + "\tstash of " + m.source + "\n"
		path := filepath.Join(dir, "logs/refs/stash")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(log), 0o644)); err != nil {
			return err
		}
	}
	if err := m.packTags(ctx, dir); err != nil {
		return err
	}
	return m.packOwnTags(ctx, dir, own)
}

// packOwnTags gives the git directory the tags that the source made: no commit holds
// them, and they are saved again with what the new subagent makes.
func (m *resumer) packOwnTags(ctx context.Context, dir string, own map[string]string) error {
	made := repository{index: m.repo.index}
	for name, oid := range own {
		kind, e := m.clean("").Line(ctx, "cat-file", "-t", oid)
		if e != nil {
			return e
		}
		made.refs = append(made.refs, userRef{name: name, oid: oid, kind: kind})
	}
	return made.copyTags(ctx, m.clean(""), dir)
}

// packTags gives the git directory the user's tags that no commit holds, and notes the
// pack.
func (m *resumer) packTags(ctx context.Context, dir string) error {
	if err := m.repo.copyTags(ctx, m.clean(""), dir); err != nil {
		return err
	}
	packs, err := os.ReadDir(filepath.Join(dir, "objects/pack"))
	if err != nil {
		return err
	}
	for _, p := range packs {
		path := filepath.Join(m.dir, tagPacks, p.Name())
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// headBranch is the branch that HEAD was on. Only its commit is in the refs, so it is
// the branch the source began on, or the one that it made or moved, if that is where
// HEAD is; else HEAD is detached.
func (m *resumer) headBranch(head string, refs []userRef) string {
	at := make(map[string]string, len(refs))
	for _, r := range refs {
		at[r.name] = r.oid
	}
	if b := m.tree.Branch; b != "" && (at[b] == head || head == "") {
		return b
	}
	var found string
	for name, oid := range m.ownRefs() {
		if strings.HasPrefix(name, "refs/heads/") && oid == head {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	if found == "" && m.from.ID == "" && at[m.repo.branch] == head {
		found = m.repo.branch // the record is gone with the directory
	}
	return found
}

// readTree returns an index of a commit's tree, which it leaves at path.
func (m *resumer) readTree(ctx context.Context, path, commit string) ([]byte, error) {
	g := m.clean(path)
	if commit == "" {
		if e := g.Run(ctx, Call{}, "read-tree", "--empty"); e != nil {
			return nil, e
		}
	} else if e := g.Run(ctx, Call{}, "read-tree", commit+"^{tree}"); e != nil {
		return nil, e
	}
	return os.ReadFile(path)
}

// checkOut writes the files as the source left them, to the byte, with their
// permissions.
func (m *resumer) checkOut(ctx context.Context) error {
	path := filepath.Join(m.dir, "end.index")
	defer os.Remove(path)
	defer os.Remove(filepath.Join(m.dir, "staged.index"))
	body, err := m.readTree(ctx, path, m.end(RefTree))
	if err != nil {
		return err
	}
	if e := m.clean(path).Run(ctx, Call{}, "checkout-index", "--all", "--force", "--quiet"); e != nil {
		return e
	}
	modes, e := modesOf(ctx, m.clean(""), m.end(RefTree))
	if e != nil {
		return e
	}
	x, err := parseIndex(body, m.repo.format)
	if err != nil {
		return err
	}
	top, err := os.OpenFile(m.tree.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer top.Close()
	for i := range x.entries {
		if f := &x.entries[i]; f.mode&^0o777 == modeRegular {
			if err := setMode(top, f.path, uint32(modes.Mode(f.path, f.mode&0o100 != 0))); err != nil {
				return fmt.Errorf("give %s its permissions: %w", f.path, err)
			}
		}
	}
	return nil
}

// setMode gives a file below a directory of ours its permissions, if it has
// others.
func setMode(top *os.File, path string, mode uint32) error {
	st, err := statBeneath(top, path)
	if err != nil || st.Mode&0o7777 == mode || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return err
	}
	return chmodBeneath(top, path, mode)
}

// takeBaseline makes what the end of the tree will be compared with: the source's
// baseline, with the stat data of the files that are still like it.
func (m *resumer) takeBaseline(ctx context.Context) error {
	base := m.refs["base/"+RefTree]
	path := m.root.baseIndex(m.req.ID)
	if _, err := m.readTree(ctx, path, base); err != nil {
		return err
	}
	// It says by its exit status that some files differ, which is what they are for.
	if e := m.clean(path).Run(ctx, Call{}, "update-index", "-q", "--refresh"); e != nil && ExitStatus(e) != 1 {
		return e
	}
	modes, e := modesOf(ctx, m.clean(""), base)
	if e != nil {
		return e
	}
	return os.WriteFile(filepath.Join(m.dir, modesFile), []byte(modes.Message("")), 0o600)
}
