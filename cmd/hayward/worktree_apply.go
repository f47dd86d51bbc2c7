package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/worktree"
)

func (a *app) worktreeApplyCommand() *cobra.Command {
	var o worktree.ApplyOptions
	cmd := &cobra.Command{
		Use:   "apply ID",
		Short: "Merge what a subagent changed into the working tree",
		Long: `Merge what a subagent changed into the working tree that it was made from: a
three-way merge of what it began with, what the working tree holds now, and what it
left. Either everything is applied or, if there is a conflict, nothing; the
conflicts are listed with the object ids of their three versions. Index, HEAD,
branches and stash are not touched: the changes arrive as uncommitted ones.

An apply that was cut off is finished or taken back by the next one.

The exit code is 1 when there are conflicts.`,
		Example: `  hayward worktree apply docs
  hayward worktree apply --dry-run 5f3a
  hayward worktree apply --json docs`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeWorktrees(1),
		RunE: a.onWorktree(func(ctx context.Context, cmd *cobra.Command, root worktree.Root, id string, _ []string) error {
			r, refusal := root.Apply(ctx, id, o)
			if refusal != nil {
				return refusal
			}
			return a.showApply(cmd, r)
		}),
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "tell what would be applied")
	return cmd
}

func (a *app) showApply(cmd *cobra.Command, r worktree.ApplyResult) error {
	a.warn(cmd, r.Warnings)
	code := exitDone
	if len(r.Conflicts) > 0 {
		code = exitSubagent
	}
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
		return status(code)
	}
	var b strings.Builder
	if len(r.Conflicts) == 0 {
		for _, f := range r.Files {
			fmt.Fprintf(&b, "%-8s  %s\n", f.Action, oneLine(f.Path))
		}
	}
	for _, c := range r.Conflicts {
		writeConflict(&b, c)
	}
	if b.Len() > 0 {
		if err := a.write([]byte(b.String())); err != nil {
			return err
		}
	}
	a.say("%s: %s", cmd.CommandPath(), applySummary(r))
	return status(code)
}

// conflictText says for people what a kind of conflict is.
var conflictText = map[worktree.ConflictKind]string{
	worktree.ConflictContent:      "both changed the same lines",
	worktree.ConflictBinary:       "both changed a file that is not text",
	worktree.ConflictAddAdd:       "both made it, with different content",
	worktree.ConflictMode:         "both made it, one of them executable",
	worktree.ConflictDeleteModify: "you removed what the subagent changed",
	worktree.ConflictModifyDelete: "you changed what the subagent removed",
	worktree.ConflictType:         "a file on one side is a symbolic link on the other",
	worktree.ConflictDirectory:    "a file on one side is a directory on the other",
	worktree.ConflictSpecial:      "you have a device, pipe or socket there",
	worktree.ConflictRepository:   "the subagent left a repository there",
}

func writeConflict(b *strings.Builder, c worktree.Conflict) {
	fmt.Fprintf(b, "conflict  %s: %s\n", oneLine(c.Path), conflictText[c.Kind])
	for _, side := range []struct {
		name string
		v    *worktree.Version
	}{{"base", c.Base}, {"yours", c.Ours}, {"its", c.Theirs}} {
		what := "nothing"
		if v := side.v; v != nil {
			what = strings.Join(strings.Fields(v.Mode+" "+v.OID+" "+oneLine(v.Path)), " ")
		}
		fmt.Fprintf(b, "  %-6s  %s\n", side.name, what)
	}
}

// applySummary is the line below the list.
func applySummary(r worktree.ApplyResult) string {
	changed := 0
	for _, f := range r.Files {
		if f.Action != worktree.ActionNone {
			changed++
		}
	}
	files := counted(changed, "file", "files")
	switch {
	case len(r.Conflicts) > 0:
		return fmt.Sprintf("%s, nothing was applied (git cat-file blob shows a version; hayward worktree branch %s NAME makes a branch to merge)",
			counted(len(r.Conflicts), "conflict", "conflicts"), shortID(r.ID))
	case r.Already:
		return "it was applied before"
	case r.DryRun:
		return files + " would change in " + r.Repository
	}
	s := files + " changed in " + r.Repository
	if changed == 0 {
		s = "nothing to change in " + r.Repository
	}
	if !r.Removed && len(r.Kept) > 0 {
		s += "; the worktree stays, it has " + strings.Join(r.Kept, "; ")
	}
	return s
}

func (a *app) worktreeBranchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "branch ID NAME",
		Short: "Make a branch of what a subagent left",
		Long: `Make a branch in the repository: the subagent's commits and, if it left more than
they hold, one commit on top with all of its files, which has what you had not
committed when it began as well. A branch that exists is refused; HEAD stays.`,
		Example: `  hayward worktree branch docs docs-by-subagent
  git merge docs-by-subagent`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeWorktrees(1),
		RunE: a.onWorktree(func(ctx context.Context, cmd *cobra.Command, root worktree.Root, id string, rest []string) error {
			r, refusal := root.Branch(ctx, id, rest[0])
			switch {
			case refusal != nil:
				return refusal
			case a.json:
				return a.printJSON(r)
			}
			if err := a.printf("%s\n", r.Commit); err != nil {
				return err
			}
			a.say("%s: %s is at %s in %s", cmd.CommandPath(), oneLine(r.Branch), r.Commit[:12], r.Repository)
			return nil
		}),
	}
}
