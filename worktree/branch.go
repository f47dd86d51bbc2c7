package worktree

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// BranchResult says what a branch holds.
type BranchResult struct {
	ID         string `json:"subagent_id"`
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	Commit     string `json:"commit"`
	// Head is the subagent's last commit; empty if there was none. Uncommitted tells
	// that Commit is one on top of it with what it had not committed.
	Head        string `json:"head,omitempty"`
	Uncommitted bool   `json:"uncommitted"`
}

// Branch makes a branch in the user's repository: the subagent's HEAD and, if it
// left more than that, one commit on top with all of its files. That commit holds
// what the user had not committed when the subagent began, too. HEAD, index and
// working tree of the user stay as they are. A branch that exists is refused.
func (r Root) Branch(ctx context.Context, id, name string) (BranchResult, *events.Error) {
	res := BranchResult{ID: id, Branch: name}
	rec, unlock, err := r.hold(ctx, id)
	if err != nil {
		return res, err
	}
	defer unlock()
	res.Repository = rec.Repository
	g := userGit(rec.CommonDir, id)
	ref := "refs/heads/" + name
	if err := g.Run(ctx, Call{}, "check-ref-format", ref); err != nil || !validRef(ref) || strings.HasPrefix(name, "-") || name == "HEAD" {
		return res, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "worktree %s: %q cannot be the name of a branch", id, name)
	}
	refs, err := ListRefs(ctx, rec.CommonDir, id)
	if err != nil {
		return res, err
	}
	asBegun(rec, refs)
	end := refs["subagents/"+RefTree]
	if end == "" {
		return res, workFailed(id, "make a branch", errors.New("the repository does not have its refs any more"))
	}
	if rec.Problem != nil {
		return res, workFailed(id, "make a branch", errors.New("what it left was not saved completely: "+rec.Problem.Message))
	}
	res.Head = refs["subagents/"+RefHead]
	if res.Commit, err = r.branchCommit(ctx, rec, refs["base/"+RefTree], res.Head, end); err != nil {
		return res, err
	}
	res.Uncommitted = res.Commit != res.Head
	create := "create " + ref + "\x00" + res.Commit + "\x00"
	if err := g.Run(ctx, Call{Stdin: strings.NewReader(create)}, "update-ref", "-z", "--stdin", "--create-reflog"); err != nil {
		if _, exists := g.Line(ctx, "rev-parse", "--verify", "--quiet", ref); exists == nil {
			return res, events.Errorf(events.CodeWorktreeFailed, events.LayerWorkspace, "worktree %s: there is a branch %s already", id, name).
				WithRemedy("name another one")
		}
		return res, err
	}
	rec.BranchCommit = res.Commit
	return res, r.Write(rec)
}

// branchCommit is the commit that a branch shall be at.
func (r Root) branchCommit(ctx context.Context, rec Record, base, head, end string) (string, *events.Error) {
	g := userGit(rec.CommonDir, rec.ID)
	dir, err := os.MkdirTemp(r.Dir(rec.ID), ".branch-")
	if err != nil {
		return "", workFailed(rec.ID, "make a branch", err)
	}
	defer os.RemoveAll(dir) // ours, and empty but for an index
	g.Index = filepath.Join(dir, "index")
	if err := g.Run(ctx, Call{}, "read-tree", end+"^{tree}"); err != nil {
		return "", err
	}
	if head != "" {
		if err := r.gitForm(ctx, rec, g, base, head, end); err != nil {
			return "", err
		}
	}
	tree, failure := g.Line(ctx, "write-tree")
	if failure != nil {
		return "", failure
	}
	args := []string{"commit-tree", tree, "-m", "Uncommitted work of subagent " + rec.ID}
	if head != "" {
		have, failure := g.Line(ctx, "rev-parse", "--verify", head+"^{tree}")
		if failure != nil {
			return "", failure
		}
		if have == tree {
			return head, nil
		}
		args = append(args, "-p", head)
	}
	return g.Line(ctx, args...)
}

// gitForm puts line ends into the index as git keeps them. The snapshot holds the
// bytes of files; where a repository keeps LF and the user's files have CRLF, a
// file that the subagent changed must not differ in every line.
func (r Root) gitForm(ctx context.Context, rec Record, g Git, base, head, end string) *events.Error {
	diff, failure := diffTrees(ctx, g, head, end)
	if failure != nil {
		return failure
	}
	began := map[string]treeEntry{}
	if base != "" {
		if began, failure = listTree(ctx, g, base); failure != nil {
			return failure
		}
	}
	b, err := openBlobs(g, filepath.Join(r.Dir(rec.ID), blobsDir), rec.ObjectFormat)
	if err != nil {
		return workFailed(rec.ID, "make a branch", err)
	}
	defer b.close() // ours alone
	regular := func(e treeEntry) bool { return e.mode == blobMode || e.mode == execMode }
	diff = slices.DeleteFunc(diff, func(c treeChange) bool { return !regular(c.from) || !regular(c.to) || c.from.oid == c.to.oid })
	var need []string
	for _, c := range diff {
		need = append(need, c.from.oid, c.to.oid)
		if was, ok := began[c.path]; ok && regular(was) {
			need = append(need, was.oid)
		}
	}
	if failure := b.fetch(ctx, need); failure != nil {
		return failure
	}
	var put strings.Builder
	for _, c := range diff {
		oid, err := b.withoutCR(c, began[c.path])
		if err != nil {
			return workFailed(rec.ID, "look at "+c.path, err)
		}
		if oid == "" {
			continue
		}
		if oid != c.from.oid {
			if _, failure := g.Line(ctx, "hash-object", "-w", "-t", "blob", "--no-filters", b.file(oid)); failure != nil {
				return failure
			}
		}
		put.WriteString(c.to.mode + " " + oid + "\t" + c.path + "\x00")
	}
	if put.Len() == 0 {
		return nil
	}
	return g.Run(ctx, Call{Stdin: strings.NewReader(put.String())}, "update-index", "-z", "--index-info")
}

// withoutCR returns the id of a file with LF for CRLF if the repository keeps it
// so and the user had it with CRLF from the beginning; else nothing.
func (b *blobs) withoutCR(c treeChange, began treeEntry) (string, error) {
	kept, err := os.ReadFile(b.file(c.from.oid))
	if err != nil || bytes.Contains(kept, []byte("\r\n")) {
		return "", err
	}
	left, err := os.ReadFile(b.file(c.to.oid))
	if err != nil || !onlyCRLF(left) {
		return "", err
	}
	if began.oid != "" && b.has(began.oid) {
		was, err := os.ReadFile(b.file(began.oid))
		if err != nil || !onlyCRLF(was) {
			return "", err
		}
	}
	f, err := os.CreateTemp(b.dir, "lf-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(bytes.ReplaceAll(left, []byte("\r\n"), []byte("\n")))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return b.adopt(f.Name())
}

// onlyCRLF reports whether text ends every line, one at least, with CRLF.
func onlyCRLF(text []byte) bool {
	n := bytes.Count(text, []byte("\n"))
	return n > 0 && bytes.IndexByte(text[:min(len(text), sniff)], 0) < 0 && bytes.Count(text, []byte("\r\n")) == n
}
