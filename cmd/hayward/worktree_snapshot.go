package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/worktree"
)

// worktreeSnapshot is what worktree snapshot --json prints.
type worktreeSnapshot struct {
	ID      string          `json:"subagent_id"`
	Ref     string          `json:"ref"`
	Changes *events.Changes `json:"changes,omitempty"`
}

func (a *app) worktreeSnapshotCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot ID",
		Short: "Save what is in a worktree now",
		Long: `Save what is in the worktree of a subagent that runs, so that diff shows it, or of
one whose end could not be saved completely. The end replaces what a snapshot saved.`,
		Example: `  hayward worktree snapshot docs && hayward worktree diff docs
  hayward worktree snapshot 5f3a`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeWorktrees(1),
		RunE: a.onWorktree(func(ctx context.Context, cmd *cobra.Command, root worktree.Root, id string, _ []string) error {
			rec, refusal := root.Renew(ctx, id)
			switch {
			case refusal != nil:
				return refusal
			case a.json:
				return a.printJSON(worktreeSnapshot{id, worktree.EndRef(id, worktree.RefTree), rec.Changes})
			}
			a.say("%s: saved, %s", cmd.CommandPath(), shownChanges(rec.Changes))
			return nil
		}),
	}
}
