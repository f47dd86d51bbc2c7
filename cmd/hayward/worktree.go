package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/worktree"
)

const worktreeHelp = `Look at what subagents with --isolation worktree did, and bring it back. No daemon
is needed or started.

Such a subagent works in a directory of its own that begins as a copy of the
repository with all that is not committed. What it leaves is kept in refs of the
repository below refs/hayward, whatever becomes of the directory: apply merges it
into the working tree, branch makes a branch of it, discard throws it away.`

func (a *app) worktreeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worktree",
		Short: "See and bring back what subagents did in worktrees",
		Long:  worktreeHelp,
		Example: `  hayward worktree ls
  hayward worktree diff docs
  hayward worktree apply docs
  hayward worktree gc --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.worktreeListCommand(), a.worktreePathCommand(), a.worktreeDiffCommand(), a.worktreeSnapshotCommand(), a.worktreeApplyCommand(),
		a.worktreeBranchCommand(), a.worktreeDiscardCommand(), a.worktreeGCCommand(),
	)
	return cmd
}

// worktrees is the root of all worktrees of this state directory.
func (a *app) worktrees() (worktree.Root, error) {
	if inside := a.inside(); inside != "" {
		return worktree.Root{}, insideError(inside, errors.New("its worktree is brought back from outside"))
	}
	p, err := a.paths()
	if err != nil {
		return worktree.Root{}, err
	}
	s, err := a.sources("")
	if err != nil {
		return worktree.Root{}, err
	}
	c, err := config.Load(s)
	if err != nil {
		return worktree.Root{}, settingsError(err)
	}
	root, refusal := worktree.Look(cmp.Or(c.String(config.WorktreeDir), p.Worktrees()))
	return root, orNil(refusal)
}

// orNil keeps a typed nil from becoming an error.
func orNil(err *events.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// worktreeID finds the worktree that a whole id, the name of a subagent of the
// daemon that runs, or the end of an id means.
func (a *app) worktreeID(ctx context.Context, root worktree.Root, ref string) (string, error) {
	if events.ValidID(ref) {
		return ref, nil
	}
	ids, err := root.List()
	if err != nil {
		return "", err
	}
	have := make(map[string]bool, len(ids))
	for _, id := range ids {
		have[id] = true
	}
	for _, s := range a.known(ctx, true) {
		if s.Name == ref && have[s.SubagentID] {
			return s.SubagentID, nil
		}
	}
	var found []string
	for _, id := range ids {
		if len(ref) >= 4 && strings.HasSuffix(id, strings.ToLower(ref)) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", events.Errorf(events.CodeUnknownID, events.LayerGate, "there is no worktree of a subagent %q", oneLine(ref)).
			WithRemedy("see: hayward worktree ls")
	case 1:
		return found[0], nil
	}
	return "", events.Errorf(events.CodeAmbiguousID, events.LayerGate, "%q is the end of %d ids", oneLine(ref), len(found)).
		WithRemedy("write more of it")
}

// onWorktree makes the body of a verb whose first argument is a worktree.
func (a *app) onWorktree(body func(ctx context.Context, cmd *cobra.Command, root worktree.Root, id string, rest []string) error) func(*cobra.Command, []string) error {
	return a.verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		root, err := a.worktrees()
		if err != nil {
			return err
		}
		id, err := a.worktreeID(ctx, root, args[0])
		if err != nil {
			return err
		}
		return body(ctx, cmd, root, id, args[1:])
	})
}

// completeWorktrees completes the names and ids of subagents with a worktree, the
// youngest first.
func (a *app) completeWorktrees(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		none := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		root, err := a.worktrees()
		if err != nil || (most > 0 && len(given) >= most) {
			return nil, none
		}
		ids, refusal := root.List()
		if refusal != nil {
			return nil, none
		}
		names := make(map[string]string)
		if len(ids) > 0 {
			for _, s := range a.known(cmd.Context(), true) {
				names[s.SubagentID] = s.Name
			}
		}
		var offers []string
		for i := len(ids) - 1; i >= 0; i-- {
			about := "unknown"
			if rec, err := root.Read(ids[i]); err == nil {
				about = string(rec.State) + " " + rec.Repository
			}
			for _, ref := range []string{names[ids[i]], ids[i]} {
				if ref != "" && strings.HasPrefix(ref, prefix) {
					offers = append(offers, ref+"\t"+oneLine(about))
				}
			}
		}
		return offers, none
	}
}
