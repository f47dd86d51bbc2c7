package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/plan"
)

const runHelp = `Run the subagents of a plan: those that need no other in parallel, the others when
what they need has completed. Progress is on stderr, the summary on stdout. The
plan - is read from stdin.

With --for-each the plan is one command for each item of a file, or of stdin, one
on each line. In the command, and in --cwd, --workspace, --add-dir, --env and
--label, {} stands for the item, {/} for the last part of it as a path and {//}
for the part before. Where neither the command nor --cwd nor --env takes the item
up, it is the command's last argument.

Each run is kept under its id. What did not complete can be run again, however the
run ended: --continue ID, or --continue --last for the youngest. What completed is
kept, what still runs is joined. hayward report shows a run again.

The first Ctrl-C ends the run gracefully, the second kills; either way hayward
returns once every process is gone. When the terminal is closed the run goes on.

The exit code is 0 when all completed, 1 when some did not or an on_done failed, 2
for a bad plan, 130 after an interrupt. --check gives 0 for a sound plan, whatever
it warns of.`

const runExamples = `  hayward run plan.toml
  hayward run --check plan.toml
  hayward run -j 4 --json plan.toml
  ls | hayward run -j 8 --for-each - -- wc -c {}
  find . -name go.mod -print0 | hayward run -0 --for-each - --cwd {//} -- go vet ./...
  hayward run --for-each dirs.txt --label part={//} -- make -C {}
  hayward run --list
  hayward run --continue --last`

// runFlags are the flags of run.
type runFlags struct {
	jobs     int
	failFast bool
	waitAll  bool
	check    bool
	list     bool
	goOn     bool
	last     bool
	noDaemon bool
	items    itemFlags
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run [flags] {PLAN.toml | - | --for-each FILE -- COMMAND...}",
		Short:   "Run a plan of subagents that need one another",
		Long:    runHelp,
		Example: runExamples,
		RunE: a.rawVerb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			a.warn(cmd, a.settings.Warnings())
			return a.runVerb(ctx, cmd, f, args)
		}),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			switch {
			case f.items.file != "":
				return nil, cobra.ShellCompDirectiveDefault
			case f.goOn:
				return a.completeRuns(args, prefix)
			}
			return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&f.jobs, "jobs", "j", 0, "subagents that run at once (0: what the plan says)")
	flags.BoolVar(&f.failFast, "fail-fast", false, "end the run at the first subagent that fails")
	flags.BoolVar(&f.waitAll, "wait-all", false, "run all that can be run, whatever fails (default: what the plan says)")
	flags.BoolVar(&f.check, "check", false, "only check the plan and draw its graph; warns of two writers in one directory")
	flags.BoolVar(&f.list, "list", false, "list the runs")
	flags.BoolVar(&f.goOn, "continue", false, "run again what has not completed of the run that is named")
	flags.BoolVar(&f.last, "last", false, "with --continue: the youngest run")
	flags.BoolVar(&f.noDaemon, "no-daemon", false, "run without a daemon; nothing is kept")
	f.items.add(flags)
	cmd.MarkFlagsMutuallyExclusive("fail-fast", "wait-all")
	cmd.MarkFlagsMutuallyExclusive("check", "list", "continue")
	cmd.MarkFlagsMutuallyExclusive("continue", "for-each")
	cmd.MarkFlagsMutuallyExclusive("continue", "no-daemon")
	return cmd
}

func (a *app) runVerb(ctx context.Context, cmd *cobra.Command, f runFlags, args []string) error {
	if f.last && !f.goOn {
		return usage("--last goes with --continue; to see the youngest run: hayward report --last")
	}
	if f.jobs < 0 || f.jobs > plan.MaxJobs {
		return usage("-j %d is not between 1 and %d", f.jobs, plan.MaxJobs)
	}
	if f.items.file == "" {
		if flag := f.items.stray(cmd.Flags()); flag != "" {
			return usage("--%s goes with --for-each; a plan file has a key for it", flag)
		}
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	runs := plan.Runs{Dir: p.Runs()}
	command := plan.Flags{Runs: runs, Jobs: f.jobs}
	if f.failFast || f.waitAll {
		command.FailFast = &f.failFast
	}
	switch {
	case f.list:
		if len(args) > 0 {
			return usage("--list takes no argument; to see one run: hayward report %s", args[0])
		}
		return runs.PrintList(a.stdout, a.json)
	case f.goOn:
		if command.Continue, err = findRun(runs, args, f.last, "hayward run --continue"); err != nil {
			return err
		}
	default:
		var bad *plan.Error
		command.Plan, err = a.readPlan(cmd, f, args)
		if errors.As(err, &bad) {
			return a.badPlan(cmd, bad, f.check)
		}
		if err != nil {
			return err
		}
	}
	if f.check {
		a.began = true
		return command.Plan.PrintCheck(a.stdout, a.stderr, a.json)
	}
	if f.noDaemon {
		command.Runs, command.Fleeting = plan.Runs{}, true // nothing is kept
	}
	return a.runPlan(ctx, command, f.noDaemon)
}

// readPlan reads what is to be run: a file, stdin, or a command for each item.
func (a *app) readPlan(cmd *cobra.Command, f runFlags, args []string) (*plan.Plan, error) {
	if f.items.file != "" {
		return a.forEach(cmd, f.items, args)
	}
	switch {
	case len(args) == 0:
		return nil, usage("there is no plan: name a file, or - for stdin, or use --for-each")
	case len(args) > 1:
		return nil, usage("a run has one plan; %d are named", len(args))
	case args[0] != "-":
		return plan.Load(args[0])
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, events.Errorf(events.CodeCwdMissing, events.LayerWorkspace, "find the working directory: %w", err)
	}
	a.sayReading("a plan")
	p, err := plan.Read("stdin", dir, a.stdin)
	if err == nil {
		p.Digest = "" // there is no file to compare with later
	}
	return p, err
}

// sayReading tells a person at a terminal why nothing happens.
func (a *app) sayReading(what string) {
	if term.IsTerminal(int(a.stdin.Fd())) {
		a.say("reading %s from the terminal; end it with Ctrl-D", what)
	}
}

// badPlan says what is wrong with a plan, every fault on a line of its own.
func (a *app) badPlan(cmd *cobra.Command, bad *plan.Error, check bool) error {
	faults := make([]string, len(bad.Faults))
	for i, fault := range bad.Faults {
		faults[i] = oneLine(fault.String())
		a.say("%s: %s", cmd.CommandPath(), faults[i])
	}
	if a.json {
		var said any = failure{Error: usage("%s", strings.Join(faults, "; "))}
		if check {
			said = bad
		}
		if err := a.printJSON(said); err != nil {
			return err
		}
	}
	return status(plan.ExitBadPlan)
}

func (a *app) runPlan(ctx context.Context, f plan.Flags, noDaemon bool) error {
	f.JSON = a.json
	f.Env = client.BaseEnvironment(a.environ)
	f.Environ = a.environ
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

// findRun opens the run that is named or, with last, the youngest.
func findRun(runs plan.Runs, args []string, last bool, verb string) (*plan.Record, error) {
	switch {
	case last && len(args) > 0:
		return nil, usage("--last and %s name two runs", args[0])
	case last:
		return runs.Last()
	case len(args) == 0:
		return nil, usage("no run is named: %s ID, or --last; hayward run --list shows them", verb)
	case len(args) > 1:
		return nil, usage("%d runs are named; one at a time", len(args))
	}
	return runs.Find(args[0])
}

// completeRuns completes the ids of runs, youngest first.
func (a *app) completeRuns(args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	p, err := a.paths()
	if err != nil || len(args) > 0 {
		return nil, none
	}
	records, err := plan.Runs{Dir: p.Runs()}.List()
	if err != nil {
		return nil, none
	}
	var offers []string
	for i := len(records) - 1; i >= 0; i-- {
		if r := records[i]; len(r.ID) >= len(prefix) && r.ID[:len(prefix)] == prefix {
			offers = append(offers, r.ID+"\t"+oneLine(r.Plan.Name)+", "+r.StartedAt.Local().Format(time.DateTime))
		}
	}
	return offers, none
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
