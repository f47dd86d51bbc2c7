package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/plan"
)

func (a *app) runCommand() *cobra.Command {
	var jobs int
	var noDaemon bool
	cmd := &cobra.Command{
		Use:   "run PLAN.toml",
		Short: "Run a plan of subagents that need one another",
		Long: `Run the subagents of a plan: those that need no other in parallel, the others when
what they need has completed. Progress is on stderr, the summary on stdout.

The first Ctrl-C ends the run gracefully, the second kills; either way hayward
returns once every process is gone. When the terminal is closed the run goes on.

The exit code is 0 when all completed, 1 when some did not, 2 for a bad plan,
130 after an interrupt.`,
		Example: `  hayward run plan.toml
  hayward run -j 4 --json plan.toml`,
		Args: cobra.ExactArgs(1),
		RunE: a.rawVerb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			a.warn(cmd, a.settings.Warnings())
			return a.runPlan(ctx, plan.Flags{Path: args[0], Jobs: jobs}, noDaemon)
		}),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().IntVarP(&jobs, "jobs", "j", 0, "subagents that run at once (0: what the plan says)")
	cmd.Flags().BoolVar(&noDaemon, "no-daemon", false, "run without a daemon; nothing is kept")
	return cmd
}

func (a *app) runPlan(ctx context.Context, f plan.Flags, noDaemon bool) error {
	f.JSON = a.json
	f.Env = client.BaseEnvironment(a.environ)
	f.LookupEnv = a.lookupEnv
	var c *connection
	code := plan.Command(ctx, f, func(ctx context.Context) (plan.Runner, error) {
		var err error
		if c, err = a.reach(ctx, noDaemon); err != nil {
			return nil, err
		}
		return planRunner{c.Client, a.applySandbox}, nil
	}, plan.Stdio{Out: a.stdout, Err: a.stderr})
	a.began = true // it has said everything itself
	if c != nil {
		if err := c.close(); err != nil {
			return fmt.Errorf("leave: %w", err)
		}
	}
	return status(code)
}

// planRunner is the client as a run uses it: a run keeps what it was told, so a
// reply is acknowledged as soon as it is here.
type planRunner struct {
	c *client.Client
	// defaults gives a spawn what is configured and the plan leaves open.
	defaults func(*events.Spawn)
}

var _ plan.Runner = planRunner{}

func taken[T any](ctx context.Context, r client.Reply[T], err error) (T, error) {
	if err != nil {
		return r.Value, err
	}
	// Unacknowledged, the end would stay unread in the session of this run alone,
	// and the run has it all the same.
	_ = r.Ack(ctx)
	return r.Value, nil
}

func (p planRunner) Spawn(ctx context.Context, s events.Spawn) (events.SpawnReply, error) {
	p.defaults(&s)
	r, err := p.c.Spawn(ctx, s)
	return taken(ctx, r, err)
}

func (p planRunner) Query(ctx context.Context, q events.Query) (events.QueryReply, error) {
	r, err := p.c.Query(ctx, q)
	return taken(ctx, r, err)
}

func (p planRunner) Cancel(ctx context.Context, q events.Cancel) (events.CancelReply, error) {
	r, err := p.c.Cancel(ctx, q)
	return taken(ctx, r, err)
}

func (p planRunner) Logs(ctx context.Context, r events.FileRequest) (events.FileReply, error) {
	return p.c.Logs(ctx, r)
}
