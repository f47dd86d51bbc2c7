package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/daemon"
	"github.com/hayward-dev/hayward/internal/deadlines"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	options daemon.Options
	level   string
	readyFD int
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon in the foreground",
		Long: `Run the daemon in the foreground until SIGINT or SIGTERM.

Other verbs start a daemon by themselves, so this is for service managers and for
settings of your own. It ends its subagents before it leaves, unless --handover
leaves them running for the next daemon. Its log is on stderr.`,
		Example: `  hayward serve
  hayward serve --max-per-session 8 --max-total 64
  hayward serve --tcp 127.0.0.1:4222 --handover`,
		Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, _ []string) error { return a.serve(ctx, f) }),
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.options.Idle, "idle", 0, "leave after that long without a request and a live subagent (0: never)")
	flags.StringVar(&f.options.TCP, "tcp", "", "listen on `HOST:PORT` as well, for other NATS clients")
	for _, l := range f.limits() {
		flags.IntVar(l.value, l.name, 0, l.usage+" (0: the default)")
	}
	flags.StringToIntVar(&f.options.Limits.PerType, "max-per-type", nil, "`TYPE=N`: subagents of a type that run at once, over all sessions (repeatable)")
	flags.StringVar((*string)(&f.options.Limits.AtLimit), "at-limit", "", "a spawn without a place: queue (the default) or fail")
	flags.IntVar(&f.options.Retention.PerSession, "keep-finished", 0, "finished subagents that a session keeps, once they were read (0: the default)")
	flags.DurationVar(&f.options.Retention.Age, "keep-for", 0, "how long finished subagents are kept, once they were read (0: the default)")
	flags.Var(byteSize{&f.options.MaxMemory}, "max-memory", "memory of a subagent whose spawn names no bound (default: no bound)")
	for _, d := range deadlines.All {
		flags.DurationVar(d.Of(&f.options.Deadlines), d.Name, 0, fmt.Sprintf("deadline: %s (0: %s)", d.Bounds, d.Default))
	}
	flags.BoolVar(&f.options.SyncAlways, "sync-always", false, "make every record survive a power cut")
	flags.BoolVar(&f.options.Handover, "handover", false, "leave subagents running at the end, for the next daemon")
	flags.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	flags.IntVar(&f.readyFD, "ready-fd", 0, "descriptor to say on that the daemon is ready, or why it is not")
	if err := flags.MarkHidden("ready-fd"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// limitFlag is a flag for one limit.
type limitFlag struct {
	name, usage string
	value       *int
}

func (f *serveFlags) limits() []limitFlag {
	l := &f.options.Limits
	return []limitFlag{
		{"max-per-session", "subagents of one session that run at once", &l.PerSession},
		{"max-total", "subagents that run at once", &l.Total},
		{"max-queued", "subagents that wait for a place", &l.QueueLength},
		{"max-depth", "how deep subagents may be nested", &l.Depth},
	}
}

// check refuses negative numbers.
func (f *serveFlags) check() error {
	for _, l := range f.limits() {
		if *l.value < 0 {
			return usage("--%s must not be negative", l.name)
		}
	}
	for _, d := range deadlines.All {
		if *d.Of(&f.options.Deadlines) < 0 {
			return usage("--%s must not be negative", d.Name)
		}
	}
	for t, n := range f.options.Limits.PerType {
		if n < 1 {
			return usage("--max-per-type %s=%d: there must be at least 1", t, n)
		}
	}
	if _, err := coordinator.ParseAtLimit(string(f.options.Limits.AtLimit)); err != nil {
		return usage("--at-limit: %w", err)
	}
	if f.options.Retention.PerSession < 0 || f.options.Retention.Age < 0 {
		return usage("--keep-finished and --keep-for must not be negative")
	}
	if f.options.Idle < 0 {
		return usage("--idle must not be negative")
	}
	return nil
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	var ready *os.File
	if f.readyFD > 0 {
		ready = os.NewFile(uintptr(f.readyFD), "ready")
		syscall.CloseOnExec(f.readyFD)
		defer ready.Close()
	}
	err := a.serveUntil(ctx, f, ready)
	if ready != nil && err != nil {
		// Whoever started this may be gone, and the log has it as well.
		if b, encodeErr := events.MarshalRecord(events.AsError(err)); encodeErr == nil {
			_, _ = ready.Write(append(b, '\n'))
		}
	}
	return err
}

func (a *app) serveUntil(ctx context.Context, f serveFlags, ready *os.File) error {
	level, err := zapcore.ParseLevel(f.level)
	if err != nil {
		return usage("--log-level: %w", err)
	}
	if err := f.check(); err != nil {
		return err
	}
	o := f.options
	if o.Paths, err = a.paths(); err != nil {
		return err
	}
	o.Version = buildVersion()
	o.Log = newLog(a.stderr, level)
	o.Ready = func() {
		if ready == nil {
			return
		}
		// Whoever started this may be gone; the daemon serves the others.
		_, _ = io.WriteString(ready, readyLine)
		_ = ready.Close()
	}
	// A signal is the ordinary end of a daemon, so it is not told why.
	plain, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, leave)()
	return runDaemon(plain, o)
}

// newLog logs to w, one line for each entry.
func newLog(w io.Writer, level zapcore.Level) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.TimeEncoderOfLayout(time.RFC3339Nano)
	config.EncodeLevel = zapcore.CapitalLevelEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.Lock(zapcore.AddSync(w)), level))
}
