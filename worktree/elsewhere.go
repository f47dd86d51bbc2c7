package worktree

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/filetx"
)

// leftovers are what a subagent left, and whether it is anywhere but in its refs.
type leftovers struct {
	// clean: it changed no file and made no commit, branch or stash.
	clean bool
	// branched: a branch of the user's holds all of it.
	branched bool
	// missing lists what only the refs hold. Empty: they may go.
	missing []string
}

// examine compares what a subagent left with what the user has outside
// refs/hayward: files with the working tree as it is now, commits with the
// user's refs.
func (r Root) examine(ctx context.Context, rec Record) (leftovers, *events.Error) {
	g := userGit(rec.CommonDir, rec.ID)
	refs, err := ListRefs(ctx, rec.CommonDir, rec.ID)
	if err != nil {
		return leftovers{}, err
	}
	asBegun(rec, refs)
	base, end := refs["base/"+RefTree], refs["subagents/"+RefTree]
	if base == "" && end == "" {
		return leftovers{clean: true}, nil // nothing is held
	}
	if base == "" || end == "" {
		return leftovers{missing: []string{"the baseline or the end is missing"}}, nil
	}
	if rec.BranchCommit != "" {
		left, err := beyondUsers(ctx, g, []string{rec.BranchCommit}, nil)
		if err != nil {
			return leftovers{}, err
		}
		if len(left) == 0 {
			return leftovers{branched: true}, nil
		}
	}
	var w leftovers
	var tips []string
	for name, oid := range refs {
		rest, ok := strings.CutPrefix(name, "subagents/")
		switch {
		case !ok || rest == RefTree || rest == RefIndex:
		case strings.HasPrefix(rest, "tags/"):
			w.missing = append(w.missing, "its "+rest)
		default:
			tips = append(tips, oid)
		}
	}
	var known []string
	if head := refs["base/"+RefHead]; head != "" {
		known = append(known, head)
	}
	commits, err := beyondUsers(ctx, g, tips, known)
	if err != nil {
		return leftovers{}, err
	}
	if n := len(commits); n > 0 {
		w.missing = append(w.missing, fmt.Sprintf("%s of its own, such as %s", counted(n, "commit"), commits[0]))
	}
	diff, err := diffTrees(ctx, g, base, end)
	if err != nil {
		return leftovers{}, err
	}
	staged, err := stagedApart(ctx, g, refs)
	if err != nil {
		return leftovers{}, err
	}
	was, err := modesOf(ctx, g, base)
	if err != nil {
		return leftovers{}, err
	}
	is, err := modesOf(ctx, g, end)
	if err != nil {
		return leftovers{}, err
	}
	w.clean = len(diff) == 0 && len(w.missing) == 0 && !staged && maps.Equal(was, is)
	if files := notInPlace(rec, diff); len(files) > 0 {
		w.missing = append(w.missing, fmt.Sprintf("%s that the working tree does not have as it left them, such as %s", counted(len(files), "file"), shownPath(files[0])))
	}
	return w, nil
}

// stagedApart reports whether a subagent that made no commit staged something.
func stagedApart(ctx context.Context, g Git, refs map[string]string) (bool, *events.Error) {
	was, is := refs["base/"+RefIndex], refs["subagents/"+RefIndex]
	if was == "" || is == "" || refs["base/"+RefHead] != refs["subagents/"+RefHead] {
		return false, nil
	}
	diff, err := diffTrees(ctx, g, was, is)
	return len(diff) > 0, err
}

// beyondUsers lists commits that are reachable from the tips, but neither from
// the known ones nor from any ref outside refs/hayward; a thousand at most.
func beyondUsers(ctx context.Context, g Git, tips, known []string) ([]string, *events.Error) {
	if len(tips) == 0 {
		return nil, nil
	}
	args := []string{"rev-list", "--max-count=1000"}
	args = append(append(args, tips...), "--not")
	args = append(append(args, known...), "--exclude=refs/hayward/*", "--all")
	out, err := g.Output(ctx, args...)
	return strings.Fields(string(out)), err
}

// notInPlace lists the changed paths that the user's working tree does not hold
// as the subagent left them. A removal is nothing that could be lost.
func notInPlace(rec Record, diff []treeChange) []string {
	var files []string
	tree, err := filetx.Open(rec.Repository, rec.ObjectFormat)
	if err == nil {
		defer tree.Close()
	}
	for _, c := range diff {
		if c.to.mode == "" {
			continue
		}
		if tree != nil && filetx.CheckPath(c.path) == nil {
			if s, err := tree.State(c.path); err == nil && s.Same(c.to.state()) {
				continue
			}
		}
		files = append(files, c.path)
	}
	return files
}

// asBegun fills in the refs of an end that were never written because nothing
// differed from the beginning.
func asBegun(rec Record, refs map[string]string) {
	if refs["subagents/"+RefTree] != "" || rec.SnapshotAt.IsZero() || rec.Problem != nil || rec.Changes == nil || rec.Changes.Files != 0 {
		return
	}
	for _, name := range []string{RefHead, RefIndex, RefTree} {
		if oid := refs["base/"+name]; oid != "" {
			refs["subagents/"+name] = oid
		}
	}
}
