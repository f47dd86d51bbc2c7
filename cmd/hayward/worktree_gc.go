package main

import (
	"context"
	"fmt"
	"strings"

	units "github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/worktree"
)

func (a *app) worktreeDiscardCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "discard ID",
		Short: "Throw away what a subagent left in its worktree",
		Long: `Throw away a subagent's worktree: its directory, its refs and its record. If its
changes were neither applied nor made a branch, or if its directory holds what
nothing else does, only with --force. What runs is never discarded.`,
		Example: `  hayward worktree discard docs
  hayward worktree discard --force 5f3a`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeWorktrees(1),
		RunE: a.onWorktree(func(ctx context.Context, cmd *cobra.Command, root worktree.Root, id string, _ []string) error {
			r, refusal := root.DiscardEnded(ctx, id, force)
			switch {
			case refusal != nil:
				return refusal
			case a.json:
				return a.printJSON(r)
			}
			a.say("%s: %s is discarded", cmd.CommandPath(), shortID(id))
			if r.Commit != "" && len(r.Lost) > 0 {
				a.say("%s: until git prunes it, git branch NAME %s brings its files back", cmd.CommandPath(), r.Commit)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also what is nowhere else")
	return cmd
}

// worktreeGC is what worktree gc --json prints.
type worktreeGC struct {
	DryRun bool              `json:"dry_run"`
	Items  []worktree.GCItem `json:"items"`
	// Directories and Refs count what was removed, or would be.
	Directories int   `json:"directories"`
	Refs        int   `json:"refs"`
	Bytes       int64 `json:"bytes"`
}

const gcHelp = `Remove what is proven to be held elsewhere, and say of each worktree what was done
and why. By class:

  clean       nothing was changed: directory, refs and record go
  branched    a branch of yours holds all of it: all goes
  applied     the directory goes; the refs go once your working tree holds every
              changed file as it was left and your branches hold every commit
  discarded   a discard that was cut off is finished
  incomplete  an empty directory of a spawn that was cut off goes
  changes     not applied: all stays; with --saved the directory goes, the refs stay
  live        its subagent runs, or its end was not seen yet: all stays
  unknown     nobody can tell: all stays

Before a directory goes each of its files is compared with the refs and with your
file of the same path, and each commit with your repository's; one that is only
there keeps it. With --ignored, files that git ignores do not.

The exit code is 1 when something could not be looked at.`

func (a *app) worktreeGCCommand() *cobra.Command {
	var o worktree.GCOptions
	var repositories []string
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove worktrees whose content is safe elsewhere",
		Long:  gcHelp,
		Example: `  hayward worktree gc --dry-run
  hayward worktree gc --ignored --older-than 24h
  hayward worktree gc --saved --refs --older-than 720h`,
		Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if o.OlderThan < 0 {
				return usage("--older-than must not be negative")
			}
			if o.Refs && o.OlderThan == 0 {
				return usage("--refs needs --older-than: only age tells that nobody needs them")
			}
			for _, dir := range repositories {
				common, refusal := worktree.CommonDir(dir)
				if refusal != nil {
					return refusal
				}
				o.Repositories = append(o.Repositories, common)
			}
			return a.collectWorktrees(ctx, cmd, o)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.DryRun, "dry-run", false, "tell what would be removed")
	flags.DurationVar(&o.OlderThan, "older-than", 0, "only of those that ended at least that long ago")
	flags.BoolVar(&o.Saved, "saved", false, "also directories of changes that were not applied; their refs stay")
	flags.BoolVar(&o.Ignored, "ignored", false, "also directories with files that git ignores")
	flags.BoolVar(&o.Refs, "refs", false, "also refs of what was applied, and of subagents without a record here")
	flags.StringArrayVar(&repositories, "repository", nil, "look for such refs in the repository around `DIR` too (repeatable)")
	return cmd
}

func (a *app) collectWorktrees(ctx context.Context, cmd *cobra.Command, o worktree.GCOptions) error {
	root, err := a.worktrees()
	if err != nil {
		return err
	}
	items, refusal := root.GC(ctx, o)
	if refusal != nil && len(items) == 0 {
		return refusal
	}
	all := worktreeGC{DryRun: o.DryRun, Items: items}
	code := exitDone
	t := &table{header: []string{"ID", "CLASS", "REMOVED", "WHY"}}
	for _, item := range items {
		var removed []string
		if item.Directory {
			removed = append(removed, "directory")
			all.Directories++
			all.Bytes += item.Bytes
		}
		if item.Refs {
			removed = append(removed, "refs")
			all.Refs++
		}
		why := item.Why
		if item.Error != nil {
			code = exitSubagent
			why += ": " + item.Error.Error()
		}
		t.add(shortID(item.ID), string(item.Class), strings.Join(removed, ", "), why)
	}
	if err := a.printCollected(cmd, t, all); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	return status(code)
}

func (a *app) printCollected(cmd *cobra.Command, t *table, all worktreeGC) error {
	if a.json {
		return a.printJSON(all)
	}
	if len(t.rows) > 0 {
		if err := a.printTable(t); err != nil {
			return err
		}
	}
	verb := "removed"
	if all.DryRun {
		verb = "would be removed"
	}
	size := ""
	if all.Bytes > 0 {
		size = fmt.Sprintf(" (%s)", units.BytesSize(float64(all.Bytes)))
	}
	a.say("%s: %s%s and the refs of %d %s", cmd.CommandPath(), counted(all.Directories, "directory", "directories"), size, all.Refs, verb)
	return nil
}
