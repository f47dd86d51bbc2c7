package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

func (a *app) rmCommand() *cobra.Command {
	var r events.RemoveRequest
	cmd := &cobra.Command{
		Use:     "rm ID...",
		Aliases: []string{"remove"},
		Short:   "Remove finished subagents with their files",
		Long: `Remove finished subagents: their records and their run directories, with output and
transcript. What runs is never removed, nor what a running one uses; an end that
nobody has read only with --force.

The exit code is 4 when an id is unknown, 125 when one was not removed.`,
		Example: `  hayward rm docs
  hayward rm --force 5f3a 77c0
  hayward rm --dry-run $(hayward ps -aq --session build)`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeIDs(true),
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, ids []string) error {
			return a.remove(ctx, cmd, r, ids)
		}),
	}
	cmd.Flags().StringVar(&r.ParentSessionID, "session", "", "look in this session only")
	cmd.Flags().BoolVarP(&r.Force, "force", "f", false, "also what nobody has read")
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "tell what would be removed")
	return cmd
}

func (a *app) remove(ctx context.Context, cmd *cobra.Command, r events.RemoveRequest, ids []string) error {
	var pages []events.RemoveRequest
	for page := range slices.Chunk(ids, events.MaxQueryIDs) {
		r.IDs = page
		if err := r.Validate(); err != nil {
			return err
		}
		pages = append(pages, r)
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	all := events.RemoveReply{Results: []events.RemoveResult{}}
	for _, page := range pages {
		reply, err := c.Remove(ctx, page)
		if err != nil {
			return c.done(err)
		}
		all.Results = append(all.Results, reply.Results...)
		all.Removed += reply.Removed
		all.Warnings = append(all.Warnings, reply.Warnings...)
	}
	return c.done(a.showRemovals(cmd, all))
}

// whyKept says why a subagent was not removed, and what to do.
var whyKept = map[events.RemoveOutcome]string{
	events.RemoveLive:   "has not ended (hayward cancel ends it)",
	events.RemoveUnread: "was read by nobody (read it with hayward completions, or use --force)",
	events.RemoveInUse:  "is used by one that runs",
}

func (a *app) showRemovals(cmd *cobra.Command, r events.RemoveReply) error {
	a.warn(cmd, r.Warnings)
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else if len(r.Results) > 0 {
		t := &table{header: []string{"ID", "NAME", "OUTCOME", "STATUS", "SESSION"}}
		for _, res := range r.Results {
			t.add(shortID(res.SubagentID), res.Name, string(res.Outcome), string(res.Status), res.ParentSessionID)
		}
		if err := a.printTable(t); err != nil {
			return err
		}
	}
	code := exitDone
	kept := func(as int) {
		if code != exitUnknown {
			code = as
		}
	}
	for _, res := range r.Results {
		switch {
		case res.Outcome == events.RemoveNotFound:
			a.say("%s: there is no subagent %q (see: hayward ps -a)", cmd.CommandPath(), oneLine(res.SubagentID))
			kept(exitUnknown)
		case res.Error != nil:
			a.say("%s: %s: %s", cmd.CommandPath(), shortID(res.SubagentID), oneLine(res.Error.Error()))
			kept(exitOwn)
		case whyKept[res.Outcome] != "":
			a.say("%s: %s %s", cmd.CommandPath(), shortID(res.SubagentID), whyKept[res.Outcome])
			kept(exitOwn)
		}
	}
	return status(code)
}

// pruneFlags are the flags of prune.
type pruneFlags struct {
	session   string
	olderThan time.Duration
	keep      int
	dryRun    bool
}

func (a *app) pruneCommand() *cobra.Command {
	var f pruneFlags
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove finished subagents by age or number",
		Long: `Remove finished subagents that somebody has read: those that ended at least
--older-than ago, and of each session all but the --keep latest. With neither, what
the daemon would remove by itself goes now. What runs, what a running one uses and
what nobody has read stays.`,
		Example: `  hayward prune --dry-run
  hayward prune --older-than 24h
  hayward prune --session build --keep 10`,
		Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.prune(ctx, cmd, f)
		}),
	}
	cmd.Flags().StringVar(&f.session, "session", "", "of this session only")
	cmd.Flags().DurationVar(&f.olderThan, "older-than", 0, "those that ended at least that long ago")
	cmd.Flags().IntVar(&f.keep, "keep", 0, "all but that many, the latest, of each session")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "list what would be removed")
	return cmd
}

func (a *app) prune(ctx context.Context, cmd *cobra.Command, f pruneFlags) error {
	r := events.PruneRequest{ParentSessionID: f.session, DryRun: f.dryRun}
	if cmd.Flags().Changed("older-than") {
		ms := f.olderThan.Milliseconds()
		r.OlderThanMS = &ms
	}
	if cmd.Flags().Changed("keep") {
		r.Keep = &f.keep
	}
	switch {
	case f.olderThan < 0:
		return usage("--older-than must not be negative")
	case f.keep < 0:
		return usage("--keep must not be negative")
	}
	if err := r.Validate(); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	all, err := pruneAll(ctx, c, r)
	if len(all.Results) > 0 || err == nil { // what is gone is told whatever came after
		err = errors.Join(err, a.showRemovals(cmd, all))
	}
	if err != nil || a.json {
		return c.done(err)
	}
	verb := "removed"
	if f.dryRun {
		verb = "would be removed"
	}
	a.say("%s: %d %s", cmd.CommandPath(), all.Removed, verb)
	if all.More {
		a.say("%s: and more than are listed", cmd.CommandPath())
	}
	if all.Unread > 0 {
		a.say("%s: %d stay because nobody has read them (see: hayward completions)", cmd.CommandPath(), all.Unread)
	}
	return c.done(nil)
}

// pruneAll asks again while there is more, as long as something goes: what
// cannot be removed is not asked for without end. A dry run lists one page.
func pruneAll(ctx context.Context, c *connection, r events.PruneRequest) (events.RemoveReply, error) {
	all := events.RemoveReply{Results: []events.RemoveResult{}}
	for {
		reply, err := c.Prune(ctx, r)
		if err != nil {
			return all, err
		}
		all.Results = append(all.Results, reply.Results...)
		all.Removed += reply.Removed
		all.Warnings = append(all.Warnings, reply.Warnings...)
		all.Unread, all.More = reply.Unread, reply.More
		if !reply.More || r.DryRun || reply.Removed == 0 {
			return all, nil
		}
	}
}
