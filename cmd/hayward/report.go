package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/plan"
)

func (a *app) reportCommand() *cobra.Command {
	f := plan.ReportFlags{}
	var last bool
	cmd := &cobra.Command{
		Use:   "report {RUN | --last} [NAME...]",
		Short: "Show a run again: its table and what its subagents wrote",
		Long: `Show a run of hayward run, whether it has ended or not: the table of its subagents
and the end of what each of them wrote to stdout. With names only those are shown.
The run is named by its id or the last four or more characters of it.

The exit code is that of the run: 0 when all completed or while it runs, else 1.`,
		Example: `  hayward report --last
  hayward report 1f3a9c02 build test
  hayward report --last --full --stderr
  hayward report --last --json`,
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.report(ctx, f, last, args)
		}),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return a.completeRuns(args, prefix)
		},
	}
	cmd.Flags().BoolVar(&last, "last", false, "the youngest run")
	cmd.Flags().IntVarP(&f.Tail, "tail", "n", 10, "lines to show of each output")
	cmd.Flags().BoolVar(&f.Full, "full", false, "show the outputs as a whole")
	cmd.Flags().BoolVar(&f.Stderr, "stderr", false, "show what went to stderr instead")
	cmd.MarkFlagsMutuallyExclusive("tail", "full")
	return cmd
}

func (a *app) report(ctx context.Context, f plan.ReportFlags, last bool, args []string) error {
	if f.Tail < 0 {
		return usage("--tail must not be negative")
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	run := args
	if last {
		run, f.Names = nil, args
	} else if len(args) > 1 {
		run, f.Names = args[:1], args[1:]
	}
	rec, err := findRun(plan.Runs{Dir: p.Runs()}, run, last, "hayward report")
	if err != nil {
		return err
	}
	f.JSON = a.json
	var c *connection
	code := plan.ReportCommand(ctx, rec, f, func(ctx context.Context) (plan.Runner, error) {
		if c, err = a.connect(ctx); err != nil {
			return nil, err
		}
		return planRunner{c.Client, a.applySandbox}, nil
	}, plan.Stdio{Out: a.stdout, Err: a.stderr})
	a.began = true // it has said everything itself
	if c != nil {
		if err := c.close(); err != nil {
			return err
		}
	}
	return status(code)
}
