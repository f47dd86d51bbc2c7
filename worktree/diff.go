package worktree

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// DiffFormat says how a diff is written.
type DiffFormat string

// The formats.
const (
	DiffPatch DiffFormat = ""
	DiffStat  DiffFormat = "stat"
	DiffNames DiffFormat = "name-only"
)

// DiffOptions say which diff to write.
type DiffOptions struct {
	Format DiffFormat
	Color  bool
	// Width of a stat; 0 is git's own.
	Width int
}

// FileDiff is one path that a subagent changed.
type FileDiff struct {
	Path string `json:"path"`
	// Status is A, D, M, or T for another type of file.
	Status  string `json:"status"`
	OldMode string `json:"old_mode,omitempty"`
	NewMode string `json:"new_mode,omitempty"`
	OldOID  string `json:"old_oid,omitempty"`
	NewOID  string `json:"new_oid,omitempty"`
	// Binary files count no lines.
	Binary     bool `json:"binary,omitzero"`
	Insertions int  `json:"insertions"`
	Deletions  int  `json:"deletions"`
}

// plainDiff makes git write differences of bytes, by no program and no
// attribute of anybody.
var plainDiff = []string{"--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=none", "--src-prefix=a/", "--dst-prefix=b/"}

// Diff writes what a subagent changed, from what it began with to what it left,
// or while it runs to its last snapshot.
func (r Root) Diff(ctx context.Context, id string, o DiffOptions, w io.Writer) *events.Error {
	rec, base, end, err := r.diffEnds(ctx, id)
	if err != nil {
		return err
	}
	args := append([]string{"diff-tree", "-r"}, plainDiff...)
	switch o.Format {
	case DiffPatch:
		args = append(args, "-p", "--full-index")
	case DiffStat:
		args = append(args, "--stat")
		if o.Width > 0 {
			args = append(args, "--stat-width="+strconv.Itoa(o.Width))
		}
	case DiffNames:
		args = append(args, "--name-only")
	}
	color := "--color=never"
	if o.Color {
		color = "--color=always"
	}
	g := userGit(rec.CommonDir, id)
	g.Config = []string{"core.quotePath=true"}
	return g.Run(ctx, Call{Stdout: w}, append(args, color, base+"^{tree}", end+"^{tree}")...)
}

// DiffFiles lists what a subagent changed.
func (r Root) DiffFiles(ctx context.Context, id string) ([]FileDiff, *events.Error) {
	rec, base, end, err := r.diffEnds(ctx, id)
	if err != nil {
		return nil, err
	}
	g := userGit(rec.CommonDir, id)
	changes, err := diffTrees(ctx, g, base, end)
	if err != nil {
		return nil, err
	}
	out, err := g.Output(ctx, append(append([]string{"diff-tree", "-r", "-z", "--numstat"}, plainDiff...), base+"^{tree}", end+"^{tree}")...)
	if err != nil {
		return nil, err
	}
	lines := make(map[string][2]string)
	for _, f := range fields(out) {
		if part := strings.SplitN(f, "\t", 3); len(part) == 3 {
			lines[part[2]] = [2]string{part[0], part[1]}
		}
	}
	all := []FileDiff{}
	for _, c := range changes {
		d := FileDiff{Path: shownPath(c.path), Status: "M", OldMode: c.from.mode, NewMode: c.to.mode, OldOID: c.from.oid, NewOID: c.to.oid}
		switch {
		case c.from.mode == "":
			d.Status = "A"
		case c.to.mode == "":
			d.Status = "D"
		case c.from.mode[:2] != c.to.mode[:2]:
			d.Status = "T"
		}
		n := lines[c.path]
		var e1, e2 error
		d.Insertions, e1 = strconv.Atoi(n[0])
		d.Deletions, e2 = strconv.Atoi(n[1])
		d.Binary = e1 != nil || e2 != nil // git writes a dash
		all = append(all, d)
	}
	return all, nil
}

// diffEnds are the two commits that a diff compares.
func (r Root) diffEnds(ctx context.Context, id string) (rec Record, base, end string, err *events.Error) {
	if rec, err = r.Read(id); err != nil {
		return rec, "", "", err
	}
	if rec.State == StateMaking {
		return rec, "", "", stillLive(id)
	}
	if base, end, err = r.ends(ctx, rec); err != nil && rec.State == StateLive {
		err = events.Errorf(events.CodeBusy, events.LayerWorkspace, "worktree %s: its subagent has not ended and there is no snapshot yet", id).
			WithRemedy("hayward wait %s; its files are in %s", id, r.Tree(rec))
	}
	return rec, base, end, err
}

// Renew takes a snapshot of a tree whose subagent has not ended, or whose end
// could not be saved completely. Others have none to take: what their refs hold is
// their end.
func (r Root) Renew(ctx context.Context, id string) (Record, *events.Error) {
	rec, err := r.Read(id)
	switch {
	case err != nil:
		return rec, err
	case rec.State == StateLive, rec.State == StateEnded && rec.Problem != nil:
		return r.Snapshot(ctx, id)
	}
	return rec, workFailed(id, "take a snapshot", errors.New("it is "+string(rec.State)+", its refs hold what it left"))
}
