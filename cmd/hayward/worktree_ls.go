package main

import (
	"context"
	"fmt"
	"time"

	units "github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/worktree"
)

// worktreeList is what worktree ls --json prints.
type worktreeList struct {
	Worktrees []worktree.Entry `json:"worktrees"`
}

func (a *app) worktreeListCommand() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the worktrees of subagents",
		Long: `List the worktrees of subagents, the oldest first: how far each is, what was
changed in it, what its directory takes on the disk (- where it is gone and only the
refs are left), and how long ago its subagent ended, or began if it runs.`,
		Example: `  hayward worktree ls
  hayward worktree ls --json
  hayward worktree ls -q`,
		Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return a.listWorktrees(ctx, quiet)
		}),
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print ids only")
	return cmd
}

func (a *app) listWorktrees(ctx context.Context, quiet bool) error {
	root, err := a.worktrees()
	if err != nil {
		return err
	}
	entries, refusal := root.Entries(ctx)
	switch {
	case refusal != nil:
		return refusal
	case a.json:
		return a.printJSON(worktreeList{entries})
	case quiet:
		for _, e := range entries {
			if err := a.printf("%s\n", e.ID); err != nil {
				return err
			}
		}
		return nil
	}
	t := &table{header: []string{"ID", "STATE", "CHANGES", "SIZE", "AGE", "REPOSITORY"}}
	for _, e := range entries {
		size := ""
		if e.Path != "" {
			size = units.BytesSize(float64(e.Bytes))
		}
		at := e.EndedAt
		if at.IsZero() {
			at = e.CreatedAt
		}
		age := ""
		if !at.IsZero() {
			age = shownDuration(time.Since(at).Milliseconds())
		}
		t.add(shortID(e.ID), shownWorktree(e), shownChanges(e.Changes), size, age, e.Repository)
	}
	return a.printTable(t)
}

// shownWorktree is the state of a worktree for people.
func shownWorktree(e worktree.Entry) string {
	switch {
	case e.Error != nil:
		return "unknown"
	case e.Problem != nil:
		return string(e.State) + ", incomplete"
	case e.BranchCommit != "" && e.State == worktree.StateEnded:
		return "branched"
	}
	return string(e.State)
}

func shownChanges(c *events.Changes) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s +%d -%d", counted(c.Files, "file", "files"), c.Insertions, c.Deletions)
}

// worktreePath is what worktree path --json prints.
type worktreePath struct {
	ID   string `json:"subagent_id"`
	Path string `json:"path"`
}

func (a *app) worktreePathCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "path ID",
		Short: "Print the directory of a subagent's worktree",
		Long: `Print the directory of a subagent's worktree. Its git directory was the
subagent's to write: look with git there only if you trust what ran.`,
		Example: `  cd "$(hayward worktree path docs)"
  ls "$(hayward worktree path 5f3a)"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeWorktrees(1),
		RunE: a.onWorktree(func(_ context.Context, _ *cobra.Command, root worktree.Root, id string, _ []string) error {
			path, refusal := root.PathOf(id)
			switch {
			case refusal != nil:
				return refusal
			case a.json:
				return a.printJSON(worktreePath{id, path})
			}
			return a.printf("%s\n", path)
		}),
	}
}

// worktreeDiff is what worktree diff --json prints.
type worktreeDiff struct {
	ID    string              `json:"subagent_id"`
	Files []worktree.FileDiff `json:"files"`
}

func (a *app) worktreeDiffCommand() *cobra.Command {
	var stat, names bool
	cmd := &cobra.Command{
		Use:   "diff ID",
		Short: "Show what a subagent changed in its worktree",
		Long: `Show what a subagent changed: the files it began with, your uncommitted changes
included, against those it left, or while it runs against the last snapshot (see hayward
worktree snapshot). Files
are compared as they are, without any conversion of line ends.`,
		Example: `  hayward worktree diff docs
  hayward worktree diff --stat 5f3a
  hayward worktree diff --json docs`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeWorktrees(1),
		RunE: a.onWorktree(func(ctx context.Context, _ *cobra.Command, root worktree.Root, id string, _ []string) error {
			if a.json {
				files, refusal := root.DiffFiles(ctx, id)
				if refusal != nil {
					return refusal
				}
				return a.printJSON(worktreeDiff{id, files})
			}
			o := worktree.DiffOptions{Color: a.colored()}
			o.Width, _ = terminal(a.stdout)
			switch {
			case stat:
				o.Format = worktree.DiffStat
			case names:
				o.Format = worktree.DiffNames
			}
			out := &noting{w: a.stdout}
			a.began = true
			refusal := root.Diff(ctx, id, o, out)
			if out.err != nil {
				return fmt.Errorf("write to stdout: %w", out.err)
			}
			return orNil(refusal)
		}),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "count the changed lines of each file")
	cmd.Flags().BoolVar(&names, "name-only", false, "print the names of changed files")
	cmd.MarkFlagsMutuallyExclusive("stat", "name-only")
	return cmd
}
