package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/load"
)

// loadClient is the hidden verb of a client process of a load.
const loadClient = "load-client"

type loadFlags struct {
	scenario load.Scenario
	hold     time.Duration
	timeout  time.Duration
	picture  string
	ends     string
	shares   map[load.Kind]*int
}

func (a *app) loadCommand() *cobra.Command {
	f := loadFlags{shares: make(map[load.Kind]*int)}
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Drive the daemon with many subagents, and count what became of each",
		Long: `Spawn many subagents from several client processes at once, read their ends with a
lease and an acknowledgement, and compare what the clients saw with what the
subagents noted themselves and with the process table.

It prints counts, the time that each stage took, and the memory of the processes.
The exit code is 1 if an end was lost, doubled or wrong, or a process was left.

--kill-coordinator ends the daemon by SIGKILL; the next is started on demand, with
the settings of a daemon on demand.`,
		Example: `  hayward load
  hayward load --children 1000 --concurrency 64 --kill-coordinator 3 --cancel-storm 2 --json
  hayward load --children 300 --fail 10 --crash 5 --fork 5 --flood 2 --picture load.svg`,
		Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, _ []string) error { return a.load(ctx, f) }),
	}
	flags := cmd.Flags()
	flags.IntVar(&f.scenario.Children, "children", 100, "subagents to spawn")
	flags.IntVar(&f.scenario.Concurrency, "concurrency", 16, "subagents that may be unread at once")
	flags.IntVar(&f.scenario.Clients, "clients", 4, "client processes, each with a session of its own")
	flags.DurationVar(&f.hold, "hold", 0, "how long each subagent holds before it ends")
	for _, k := range load.Kinds {
		f.shares[k] = flags.Int(string(k), 0, kindUsage[k])
	}
	flags.IntVar(&f.scenario.CancelStorms, "cancel-storm", 0, "how often every client cancels its prompt several times at once")
	flags.IntVar(&f.scenario.KillCoordinator, "kill-coordinator", 0, "how often the daemon is ended by SIGKILL")
	flags.StringVar(&f.scenario.Sandbox, "sandbox", "", "sandbox profile of the subagents (default workspace)")
	flags.StringVar(&f.scenario.Session, "session", "", "`NAME` that begins those of the clients' sessions (default: new ones)")
	flags.DurationVar(&f.timeout, "timeout", 15*time.Minute, "give up after that long")
	flags.StringVar(&f.picture, "picture", "", "write an SVG with the latencies and the live subagents to `FILE`")
	flags.StringVar(&f.ends, "ends", "", "write each end to `FILE`, a JSON object on each line")
	return cmd
}

// kindUsage describes the share of each kind.
var kindUsage = map[load.Kind]string{
	load.Fail:   "percent of them that end with exit code 7",
	load.Crash:  "percent of them that end with SIGSEGV",
	load.Fork:   "percent of them that leave processes behind",
	load.Flood:  "percent of them that print 8 MiB as fast as they can",
	load.Output: "percent of them that print 20 000 lines",
}

func (a *app) load(ctx context.Context, f loadFlags) error {
	f.scenario.HoldMS = f.hold.Milliseconds()
	f.scenario.Share = make(map[load.Kind]int)
	for k, percent := range f.shares {
		f.scenario.Share[k] = *percent
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("load: find this program: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("load: it was not over within %v", f.timeout))
	defer cancel()
	report, driveErr := load.Run(ctx, f.scenario, load.Deps{
		Connect: func(ctx context.Context) (*client.Client, error) {
			c, err := a.connect(ctx)
			if err != nil {
				return nil, err
			}
			return c.Client, nil
		},
		Command: func(ctx context.Context) *exec.Cmd {
			cmd := exec.CommandContext(ctx, exe, loadClient)
			cmd.Env = a.environ
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			cmd.WaitDelay = 10 * time.Second
			return cmd
		},
		Stderr:   a.stderr,
		Progress: a.loadProgress(),
	})
	if report.Scenario.Children == 0 {
		return driveErr // it never began
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		err = report.Print(a.stdout)
	}
	if f.picture != "" {
		err = errors.Join(err, writeTo(f.picture, "picture", report.Picture))
	}
	if f.ends != "" {
		err = errors.Join(err, writeTo(f.ends, "ends", report.WriteEnds))
	}
	if err = errors.Join(driveErr, err); err != nil {
		return err
	}
	if !report.Good() {
		return status(exitSubagent)
	}
	return nil
}

// loadProgress shows how far a load is, on a terminal.
func (a *app) loadProgress() func(delivered, of int) {
	f, ok := a.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func(delivered, of int) {
		end := ""
		if delivered == of {
			end = "\n"
		}
		fmt.Fprintf(f, "\r%d of %d ended and read%s", delivered, of, end)
	}
}

func writeTo(path, what string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("load: write the %s: %w", what, err)
	}
	return errors.Join(write(f), f.Close())
}

func (a *app) loadClientCommand() *cobra.Command {
	return &cobra.Command{
		Use: loadClient, Hidden: true, Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			c, err := a.connect(ctx)
			if err != nil {
				return err
			}
			return c.done(load.Serve(ctx, c.Client, a.stdin, a.stdout))
		}),
	}
}
