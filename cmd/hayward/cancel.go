package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

// cancelFlags are the flags of cancel.
type cancelFlags struct {
	session string
	parent  string
	labels  []string
	kill    bool
	dryRun  bool
	timeout time.Duration
	actor   string
}

func (a *app) cancelCommand() *cobra.Command {
	var f cancelFlags
	cmd := &cobra.Command{
		Use:     "cancel {ID... | --parent-prompt P | --session S | --label K=V}",
		Aliases: []string{"stop", "kill"},
		Short:   "End subagents",
		Long: `End subagents and return once no process of them is left.

They get SIGTERM and a grace period, then SIGKILL; with --kill, or called as kill,
SIGKILL at once. After --parent-prompt, later spawns of that prompt are refused.
--session alone selects all of a session, otherwise it says where to look.

The exit code is 4 when an id is unknown, 124 when processes were left at the
deadline.`,
		Example: `  hayward cancel docs
  hayward kill 5f3a
  hayward cancel --parent-prompt turn-7 --json
  hayward cancel --label kind=check --dry-run`,
		ValidArgsFunction: a.completeIDs(false),
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, ids []string) error {
			if cmd.CalledAs() == "kill" {
				f.kill = true
			}
			return a.cancel(ctx, cmd, f, ids)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "all of this session, or with another target where to look")
	flags.StringVar(&f.parent, "parent-prompt", "", "all of this prompt (session: --session, $HAYWARD_SESSION, else default)")
	flags.StringArrayVar(&f.labels, "label", nil, "all with this `K=V` (repeatable: with all of them)")
	flags.BoolVar(&f.kill, "kill", false, "skip the graceful steps")
	flags.BoolVar(&f.dryRun, "dry-run", false, "list what would be cancelled")
	flags.DurationVar(&f.timeout, "timeout", 0, "wait at most that long for the end (default 30s)")
	flags.StringVar(&f.actor, "actor", "", "who asks, for the record")
	return cmd
}

func (a *app) cancelRequest(f cancelFlags, ids []string) (events.Cancel, error) {
	r := events.Cancel{
		ParentSessionID: f.session, Kill: f.kill, DryRun: f.dryRun, Actor: f.actor,
		Reason: events.ReasonUser, TimeoutMS: milliseconds(f.timeout),
	}
	if f.timeout < 0 {
		return r, usage("--timeout must not be negative")
	}
	labels, err := pairs("--label", f.labels)
	if err != nil {
		return r, err
	}
	r.Target = events.CancelTarget{IDs: ids, ParentPromptID: f.parent}
	if len(labels) > 0 {
		r.Target.Label = labels
	}
	others := len(ids) > 0 || len(labels) > 0 || f.parent != ""
	if !others && f.session == "" {
		return r, usage("nothing to cancel: name ids, --parent-prompt, --session or --label")
	}
	r.Target.Session = !others
	if f.parent != "" {
		r.ParentSessionID = a.session(f.session)
	}
	if err := r.Validate(); err != nil {
		return r, err
	}
	return r, nil
}

func (a *app) cancel(ctx context.Context, cmd *cobra.Command, f cancelFlags, ids []string) error {
	request, err := a.cancelRequest(f, ids)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	reply, err := c.Cancel(ctx, request)
	if err != nil {
		return c.done(err)
	}
	a.warn(cmd, reply.Value.Warnings)
	err = a.showCancel(cmd, reply.Value)
	if ackErr := reply.Ack(ctx); ackErr != nil {
		a.say("%s: warning: %s", cmd.CommandPath(), oneLine(ackErr.Error()))
	}
	return c.done(err)
}

func (a *app) showCancel(cmd *cobra.Command, r events.CancelReply) error {
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else if len(r.Results) > 0 {
		t := &table{header: []string{"ID", "NAME", "OUTCOME", "STATUS"}}
		for _, res := range r.Results {
			t.add(shortID(res.SubagentID), res.Name, string(res.Outcome), string(res.Status))
		}
		if err := a.printTable(t); err != nil {
			return err
		}
	} else {
		a.say("%s: nothing to cancel", cmd.CommandPath())
	}
	code := exitDone
	for _, res := range r.Results {
		switch res.Outcome {
		case events.CancelNotFound:
			a.say("%s: there is no subagent %q (see: hayward ps)", cmd.CommandPath(), oneLine(res.SubagentID))
			code = exitUnknown
		case events.CancelDraining:
			a.say("%s: %s still has processes", cmd.CommandPath(), res.SubagentID)
			if code == exitDone {
				code = exitDeadline
			}
		}
	}
	return status(code)
}
