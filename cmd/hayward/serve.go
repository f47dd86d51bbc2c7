package main

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
)

// serveFlags are the flags of serve that are no keys of the configuration.
type serveFlags struct {
	idle     time.Duration
	onDemand bool
	readyFD  int
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon in the foreground",
		Long: `Run the daemon in the foreground until SIGINT or SIGTERM.

Other verbs start a daemon by themselves, so this is for service managers. It ends
its subagents before it leaves, unless --handover leaves them running for the next
daemon. Its log is on stderr.

Each flag but --idle is a key of the configuration as well, see: hayward config
show. What is in force, and where it comes from, says: hayward doctor.`,
		Example: `  hayward serve
  hayward serve --max-per-session 8 --max-total 64
  hayward serve --tcp 127.0.0.1:4222 --handover
  hayward serve --metrics :9464 --tracing http://127.0.0.1:4318`,
		Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error { return a.serve(ctx, cmd, f) }),
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.idle, "idle", 0, "leave after that long without a request and a live subagent (0: never)")
	for _, k := range config.Keys {
		if k.Scope == config.ScopeDaemon && k.Flag != "" {
			addFlag(flags, k)
		}
	}
	flags.BoolVar(&f.onDemand, "on-demand", false, "leave when idle, as configured")
	flags.IntVar(&f.readyFD, "ready-fd", 0, "descriptor to say on that the daemon is ready, or why it is not")
	for _, hidden := range []string{"on-demand", "ready-fd"} {
		if err := flags.MarkHidden(hidden); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

// addFlag adds the flag of a key.
func addFlag(flags *pflag.FlagSet, k *config.Key) {
	about := k.About
	if k.Default != "" && k.Kind != config.KindBool {
		about += " (default " + k.Default + ")"
	}
	switch {
	case k == config.BusSync:
		flags.Bool(k.Flag, false, "make every record survive a power cut")
	case k.Kind == config.KindBool:
		flags.Bool(k.Flag, false, about)
	case k.Kind == config.KindInt:
		flags.Int(k.Flag, 0, about)
	case k.Kind == config.KindCounts:
		flags.StringToInt(k.Flag, nil, about+" (repeatable)")
	case k.Kind == config.KindSize:
		flags.Var(byteSize{new(int64)}, k.Flag, about)
	case k.Kind == config.KindDuration:
		flags.Duration(k.Flag, 0, about)
	default:
		flags.String(k.Flag, "", about)
	}
}

func (a *app) serve(ctx context.Context, cmd *cobra.Command, f serveFlags) error {
	var ready *os.File
	if f.readyFD > 0 {
		ready = os.NewFile(uintptr(f.readyFD), "ready")
		syscall.CloseOnExec(f.readyFD)
		defer ready.Close()
	}
	err := a.serveUntil(ctx, cmd, f, ready)
	if ready != nil && err != nil {
		// Whoever started this may be gone, and the log has it as well.
		if b, encodeErr := events.MarshalRecord(events.AsError(err)); encodeErr == nil {
			_, _ = ready.Write(append(b, '\n'))
		}
	}
	return err
}

func (a *app) serveUntil(ctx context.Context, cmd *cobra.Command, f serveFlags, ready *os.File) error {
	// A daemon serves clients in every directory: no project's file counts, nor
	// does its environment.
	sources, err := a.sources("")
	if err != nil {
		return err
	}
	sources.Getenv = nil
	if a.settings, err = config.Load(sources); err != nil {
		return settingsError(err)
	}
	if err := a.takeFlags(cmd, config.ScopeDaemon); err != nil {
		return err
	}
	if f.idle < 0 {
		return usage("--idle must not be negative")
	}
	level, err := zapcore.ParseLevel(a.settings.String(config.DaemonLogLevel))
	if err != nil {
		return usage("daemon.log_level: %w", err)
	}
	o := a.daemonOptions()
	if o.Paths, err = a.paths(); err != nil {
		return err
	}
	o.Idle, o.TCP, o.Handover = f.idle, a.settings.String(config.DaemonTCP), a.settings.Bool(config.DaemonHandover)
	if f.onDemand {
		o.Idle = a.settings.Duration(config.DaemonIdle)
	}
	if err := a.observability(&o, f.onDemand); err != nil {
		return err
	}
	o.Log = newLog(a.stderr, level)
	for _, w := range a.settings.Warnings() {
		o.Log.Warn(w)
	}
	o.Ready = func() {
		if ready == nil {
			return
		}
		// Whoever started this may be gone; the daemon serves the others.
		_, _ = io.WriteString(ready, readyLine)
		_ = ready.Close()
	}
	tellManager(&o)
	// A signal is the ordinary end of a daemon, so it is not told why.
	plain, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, leave)()
	return runDaemon(plain, o)
}
