package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

// queryFlags are the flags of query and wait.
type queryFlags struct {
	session string
	wait    bool
	any     bool
	timeout time.Duration
}

func (a *app) queryCommand() *cobra.Command {
	var f queryFlags
	cmd := &cobra.Command{
		Use:   "query ID...",
		Short: "Show subagents as they are",
		Long: `Show subagents as they are, in the order asked. It marks nothing as read.

The exit code is 4 when an id is unknown, 124 when --timeout passed before --wait
was satisfied, 1 when one of those shown failed or was cancelled.`,
		Example: `  hayward query docs
  hayward query --json 5f3a 77c0
  hayward query --wait --any --timeout 5m docs lint`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeIDs(true),
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, ids []string) error {
			return a.query(ctx, cmd, f, ids)
		}),
	}
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until all have ended")
	f.add(cmd)
	return cmd
}

func (a *app) waitCommand() *cobra.Command {
	f := queryFlags{wait: true}
	cmd := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait until subagents have ended",
		Long: `Wait until all of the subagents, or any with --any, have ended, and show them.

At --timeout they are shown as they are then, with exit code 124. Otherwise the
exit code is 4 when an id is unknown, 1 when one failed or was cancelled.`,
		Example: `  hayward wait docs
  hayward wait --any --timeout 10m docs lint
  id=$(hayward spawn -d -- make) && hayward wait --json "$id"`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeIDs(false),
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, ids []string) error {
			return a.query(ctx, cmd, f, ids)
		}),
	}
	f.add(cmd)
	return cmd
}

func (f *queryFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.session, "session", "", "look in this session only")
	cmd.Flags().BoolVar(&f.any, "any", false, "when waiting, until any has ended")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "wait at most that long (0: until the end)")
}

func (a *app) query(ctx context.Context, cmd *cobra.Command, f queryFlags, ids []string) error {
	switch {
	case f.timeout < 0:
		return usage("--timeout must not be negative")
	case f.any && !f.wait:
		return usage("--any goes with --wait")
	case f.any && len(ids) > events.MaxQueryIDs:
		return usage("--any takes at most %d ids, there are %d", events.MaxQueryIDs, len(ids))
	case f.timeout > 0 && !f.wait:
		return usage("--timeout goes with --wait")
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	reply, err := queryPages(ctx, c, f, ids)
	if err != nil {
		return c.done(err)
	}
	a.warn(cmd, reply.Warnings)
	reply.Snapshots, reply.Unknown = distinct(reply.Snapshots, func(s events.Snapshot) string { return s.SubagentID }), distinct(reply.Unknown, strings.Clone)
	return c.done(a.showQuery(cmd, reply))
}

// distinct leaves out what is there before: an id, its ending and a name may be
// of the same subagent.
func distinct[T any](list []T, key func(T) string) []T {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(v T) bool {
		again := seen[key(v)]
		seen[key(v)] = true
		return again
	})
}

// queryPages asks for more ids than one query takes. Waiting for all is waiting
// for one page after the other.
func queryPages(ctx context.Context, c *connection, f queryFlags, ids []string) (events.QueryReply, error) {
	all := events.QueryReply{Snapshots: []events.Snapshot{}}
	deadline := time.Now().Add(f.timeout)
	for page := range slices.Chunk(ids, events.MaxQueryIDs) {
		q := events.Query{ParentSessionID: f.session, IDs: page}
		if f.any {
			q.Mode = events.QueryAny
		}
		ask := func() (events.QueryReply, error) {
			r, err := c.Query(ctx, q)
			return r.Value, err
		}
		if f.wait {
			ask = func() (events.QueryReply, error) {
				left := time.Duration(0)
				if f.timeout > 0 {
					left = max(time.Until(deadline), time.Millisecond)
				}
				r, err := c.Wait(ctx, q, left)
				return r.Value, err
			}
		}
		r, err := ask()
		if err != nil {
			return all, err
		}
		all.Snapshots = append(all.Snapshots, r.Snapshots...)
		all.Unknown = append(all.Unknown, r.Unknown...)
		all.Warnings = append(all.Warnings, r.Warnings...)
		all.TimedOut = all.TimedOut || r.TimedOut
	}
	return all, nil
}

func (a *app) showQuery(cmd *cobra.Command, r events.QueryReply) error {
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else if len(r.Snapshots) > 0 {
		t := &table{header: snapshotHeader}
		for _, s := range r.Snapshots {
			t.addSnapshot(s, "")
		}
		if err := a.printTable(t); err != nil {
			return err
		}
	}
	for _, id := range r.Unknown {
		a.say("%s: there is no subagent %q (see: hayward ps -a)", cmd.CommandPath(), oneLine(id))
	}
	for _, s := range r.Snapshots {
		if s.Error != nil {
			a.say("%s: %s: %s", cmd.CommandPath(), shortID(s.SubagentID), oneLine(s.Error.Error()))
		}
	}
	switch {
	case len(r.Unknown) > 0:
		return status(exitUnknown)
	case r.TimedOut:
		a.say("%s: the timeout passed before they had ended", cmd.CommandPath())
		return status(exitDeadline)
	case slices.ContainsFunc(r.Snapshots, func(s events.Snapshot) bool { return s.Status.Terminal() && s.Status != events.StatusCompleted }):
		return status(exitSubagent)
	}
	return nil
}
