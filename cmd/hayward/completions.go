package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

// completionsFlags are the flags of completions.
type completionsFlags struct {
	session  string
	lease    time.Duration
	ack      []string
	suppress []string
	peek     bool
	most     int
}

func (a *app) completionsCommand() *cobra.Command {
	var f completionsFlags
	cmd := &cobra.Command{
		Use:   "completions",
		Short: "Take the finished subagents of a session that nobody has read",
		Long: `Take the finished subagents of a session that nobody has read, in the order in
which they ended. They count as read once they are printed.

With --lease they are hidden from other readers that long and come back unless
--ack names them. --peek changes nothing. --ack alone only acknowledges.`,
		Example: `  hayward completions --session build --json
  hayward completions --session build --lease 1m --ack "$done"
  hayward completions --peek`,
		Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.completions(ctx, cmd, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "the session (default $HAYWARD_SESSION, else default)")
	flags.DurationVar(&f.lease, "lease", 0, "hide them that long instead of marking them as read")
	flags.StringSliceVar(&f.ack, "ack", nil, "`IDS` to mark as read")
	flags.StringSliceVar(&f.suppress, "suppress", nil, "`IDS` to leave out this time")
	flags.BoolVar(&f.peek, "peek", false, "look without taking")
	flags.IntVar(&f.most, "max", events.MaxPage, "at most that many")
	return cmd
}

func (a *app) completions(ctx context.Context, cmd *cobra.Command, f completionsFlags) error {
	switch {
	case f.lease < 0:
		return usage("--lease must not be negative")
	case f.peek && f.lease > 0:
		return usage("--peek and --lease exclude each other")
	}
	r := events.Completions{
		ParentSessionID: a.session(f.session), LeaseMS: milliseconds(f.lease), Peek: f.peek, Max: &f.most,
	}
	flags := cmd.Flags()
	if len(f.ack) > 0 && !flags.Changed("max") && !flags.Changed("lease") && !flags.Changed("suppress") && !f.peek {
		r.Max = new(int) // to acknowledge is not to take more
	}
	probe := r
	if err := probe.Validate(); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	if r.AckIDs, err = fullIDs(ctx, c, r.ParentSessionID, f.ack); err != nil {
		return c.done(err)
	}
	if r.SuppressIDs, err = fullIDs(ctx, c, r.ParentSessionID, f.suppress); err != nil {
		return c.done(err)
	}
	reply, err := c.Completions(ctx, r)
	if err != nil {
		return c.done(err)
	}
	a.warn(cmd, reply.Value.Warnings)
	if err := a.showCompletions(reply.Value); err != nil {
		return c.done(err)
	}
	if f.peek || f.lease > 0 {
		return c.done(nil) // taken by --ack only
	}
	if err := reply.Ack(ctx); err != nil {
		a.say("%s: warning: %s; they stay unread", cmd.CommandPath(), oneLine(err.Error()))
	}
	return c.done(nil)
}

// fullIDs turns names and endings of ids into ids. Ids and dedupe ids stay.
func fullIDs(ctx context.Context, c *connection, session string, refs []string) ([]string, error) {
	out := slices.Clone(refs)
	var short []string
	for _, r := range refs {
		if base, _, _ := strings.Cut(r, "."); !events.ValidID(base) {
			short = append(short, r)
		}
	}
	if len(short) == 0 {
		return out, nil
	}
	r, err := queryPages(ctx, c, queryFlags{session: session}, short)
	if err != nil {
		return nil, err
	}
	if len(r.Unknown) > 0 {
		return nil, events.Errorf(events.CodeUnknownID, events.LayerCoordinator, "there is no subagent %q in session %s", r.Unknown[0], session)
	}
	if len(r.Snapshots) != len(short) {
		return nil, events.Errorf(events.CodeInternal, events.LayerCoordinator, "%d subagents were asked for and %d are known", len(short), len(r.Snapshots))
	}
	for i, ref := range out {
		if n := slices.Index(short, ref); n >= 0 {
			out[i] = r.Snapshots[n].SubagentID
		}
	}
	return out, nil
}

func (a *app) showCompletions(r events.CompletionsReply) error {
	if a.json {
		return a.printJSON(r)
	}
	t := &table{header: snapshotHeader}
	for _, done := range r.Completions {
		t.addSnapshot(done.Snapshot, "")
	}
	if err := a.printTable(t); err != nil {
		return err
	}
	if r.More {
		return a.printf("and more\n")
	}
	return nil
}

func (a *app) outstandingCommand() *cobra.Command {
	var session, prompt string
	cmd := &cobra.Command{
		Use:   "outstanding",
		Short: "Show what still holds a prompt open",
		Long: `Show what still holds a prompt of a session open: its foreground subagents that
live, whether background ones live, and how many ended ones nobody has read.`,
		Example: `  hayward outstanding --session build --parent-prompt turn-7 --json`,
		Args:    cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			r := events.Outstanding{ParentSessionID: a.session(session), ParentPromptID: prompt}
			if prompt == "" {
				return usage("--parent-prompt is required")
			}
			if err := r.Validate(); err != nil {
				return err
			}
			c, err := a.connect(ctx)
			if err != nil {
				return err
			}
			reply, err := c.Outstanding(ctx, r)
			if err == nil {
				a.warn(cmd, reply.Value.Warnings)
				err = a.showOutstanding(reply.Value)
			}
			return c.done(err)
		}),
	}
	cmd.Flags().StringVar(&session, "session", "", "the session (default $HAYWARD_SESSION, else default)")
	cmd.Flags().StringVar(&prompt, "parent-prompt", "", "the prompt")
	return cmd
}

func (a *app) showOutstanding(r events.OutstandingReply) error {
	if a.json {
		return a.printJSON(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "live foreground  %d\n", len(r.LiveIDs))
	for _, id := range r.LiveIDs {
		fmt.Fprintf(&b, "  %s\n", id)
	}
	fmt.Fprintf(&b, "live background  %s\n", yesNo(r.BackgroundLive))
	fmt.Fprintf(&b, "unread           %d\n", r.Unread)
	fmt.Fprintf(&b, "usage settled    %s\n", yesNo(r.UsageSettled))
	return a.write([]byte(b.String()))
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
