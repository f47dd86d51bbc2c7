package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/mcp"
	"github.com/hayward-dev/hayward/sandbox"
)

const mcpHelp = `Serve the Model Context Protocol on stdin and stdout, for a parent agent that
starts this program: tools to spawn, query, cancel and list subagents, and to read
what has ended.

Each connection has a session of its own, unless --session or $HAYWARD_SESSION
names one, and sees no other. Subagents start in this directory or below, and in
each --add-dir, which they may write as well. They run in the configured sandbox;
the model may name that one, strict and read-only, and each --allow-sandbox.

When the client leaves, its subagents go on, unless --cancel-on-exit.
Everything but the protocol goes to stderr.`

const mcpExamples = `  claude mcp add hayward -- hayward mcp
  codex mcp add hayward -- hayward mcp --cancel-on-exit
  HAYWARD_SESSION=review hayward mcp`

// mcpFlags are the flags of mcp.
type mcpFlags struct {
	session      string
	addDirs      []string
	sandboxes    []string
	callLimit    time.Duration
	cancelOnExit bool
}

func (a *app) mcpCommand() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:     "mcp",
		Short:   "Serve a parent agent over MCP on stdin and stdout",
		Long:    mcpHelp,
		Example: mcpExamples,
		Args:    cobra.NoArgs,
		RunE: a.rawVerb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.serveMCP(ctx, cmd, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "the session of this connection (default $HAYWARD_SESSION, else one of its own)")
	flags.String("sandbox", "", "sandbox profile of subagents that name none (default $HAYWARD_SANDBOX, else workspace)")
	flags.Bool("sandbox-best-effort", false, "go on with what the kernel can enforce")
	flags.StringArrayVar(&f.sandboxes, "allow-sandbox", nil, "further sandbox `PROFILE` that the model may name (repeatable)")
	flags.StringArrayVar(&f.addDirs, "add-dir", nil, "further `DIR` that subagents may start in and write (repeatable)")
	flags.BoolVar(&f.cancelOnExit, "cancel-on-exit", false, "cancel what this connection spawned when it ends")
	flags.DurationVar(&f.callLimit, "call-limit", mcp.DefaultCallLimit, "answer each call within that long, with what there is by then")
	return cmd
}

func (a *app) serveMCP(ctx context.Context, cmd *cobra.Command, f mcpFlags) error {
	if err := a.takeFlags(cmd, config.ScopeClient); err != nil {
		return err
	}
	a.warn(cmd, a.settings.Warnings())
	if f.callLimit < time.Second || f.callLimit > 10*time.Minute {
		return usage("--call-limit is %v, not between 1s and 10m", f.callLimit)
	}
	o, err := a.mcpOptions(ctx, f)
	if err != nil {
		return err
	}
	// What is left to do at the end is bounded by the server itself; only an answer
	// that nobody reads is not.
	ctx, stop := interruptible(ctx)
	defer stop()
	served := make(chan error, 1)
	in := newInterruptibleReader(a.stdin)
	go func() {
		served <- mcp.NewServer(o).Run(ctx, &sdk.IOTransport{Reader: in, Writer: keepOpen{a.stdout}})
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(mcpLeave)
	defer timer.Stop()
	select {
	case err := <-served:
		return err
	case <-timer.C:
		return events.Errorf(events.CodeTimeout, events.LayerCoordinator, "the client takes no answer, and did not for %v", mcpLeave)
	}
}

// mcpLeave bounds the end after a signal: the last answers, and the cancel of
// --cancel-on-exit.
const mcpLeave = 80 * time.Second

// keepOpen is stdout for a transport that would close it.
type keepOpen struct {
	w interface{ Write([]byte) (int, error) }
}

func (k keepOpen) Write(p []byte) (int, error) { return k.w.Write(p) }
func (keepOpen) Close() error                  { return nil }

func (a *app) mcpOptions(ctx context.Context, f mcpFlags) (mcp.Options, error) {
	o := mcp.Options{
		Version: buildVersion(), CallLimit: f.callLimit, CancelOnExit: f.cancelOnExit,
		Log: func(format string, args ...any) { a.say("hayward mcp: "+format, args...) },
		Connect: func(ctx context.Context) (*client.Client, error) {
			c, err := a.connect(ctx)
			if err != nil {
				return nil, err
			}
			return c.Client, nil
		},
		Prepare: a.applySpawn,
	}
	var err error
	if o.Dir, err = os.Getwd(); err != nil {
		return o, events.Errorf(events.CodeCwdMissing, events.LayerWorkspace, "find the working directory: %w", err)
	}
	for _, d := range f.addDirs {
		abs, err := filepath.Abs(d)
		if err != nil || d == "" {
			return o, usage("--add-dir %q is no directory", d)
		}
		o.AddDirs = append(o.AddDirs, abs)
	}
	o.Session, o.Minted = a.mcpSession(f.session)
	if !events.ValidScope(o.Session) {
		return o, usage("%q is not a session: 1 to 128 of A-Z a-z 0-9 _ . : -", o.Session)
	}
	o.Sandbox = a.settings.String(config.SandboxProfile)
	for _, p := range slices.Concat([]string{o.Sandbox}, mcpSandboxes, f.sandboxes) {
		if !slices.ContainsFunc(o.Sandboxes, func(q string) bool { return sameProfile(p, q) }) {
			o.Sandboxes = append(o.Sandboxes, p)
		}
	}
	places, err := a.agentPlaces()
	if err != nil {
		return o, err
	}
	set := agents.Load(places)
	a.sayFaults(set.Faults)
	for _, d := range set.Definitions {
		if !d.Disabled {
			o.Types = append(o.Types, d)
		}
	}
	if id, _ := client.Inside(a.getenv); id != "" {
		o.Inside, o.MaySpawn = true, events.ParseSpawns(a.getenv(events.VariableMaySpawn))
		// What is spawned in here has this profile or a narrower one, whatever it is.
		if !a.settings.Value(config.SandboxProfile).IsSet() {
			o.Sandbox = a.getenv("HAYWARD_SANDBOX_PROFILE")
			o.Sandboxes = slices.DeleteFunc(append([]string{o.Sandbox}, o.Sandboxes[1:]...), func(p string) bool { return p == "" })
		}
		return o, nil
	}
	o.Limits = a.mcpLimits(ctx)
	return o, nil
}

// mcpSandboxes are the profiles that are not wider than any other.
var mcpSandboxes = []string{sandbox.Strict, sandbox.ReadOnly}

// mcpSession is the session of a connection; minted tells that it is its alone. A
// session in a file is not used: every connection would be in it.
func (a *app) mcpSession(flag string) (session string, minted bool) {
	v := a.settings.Value(config.Session)
	switch {
	case v.Origin.Layer == config.LayerPin:
		return v.Text, false
	case flag != "":
		return flag, false
	case v.Origin.Layer == config.LayerEnvironment:
		return v.Text, false
	}
	return "mcp-" + events.NewID(), true
}

// mcpLimits are the limits in force: those of the daemon that runs, else those that
// one would start with.
func (a *app) mcpLimits(ctx context.Context) map[string]int64 {
	c, err := a.connectIfRunning(ctx)
	if err == nil {
		status, err := c.Status(ctx)
		if err = c.done(err); err == nil {
			return status.Limits
		}
	}
	s := a.settings
	limits := map[string]int64{
		"per_session": int64(s.Int(config.LimitPerSession)), "total": int64(s.Int(config.LimitTotal)),
		"max_memory_bytes": s.Bytes(config.LimitMemory),
	}
	for _, k := range config.Deadlines {
		if k.Leaf() == "max_runtime" {
			limits["max_runtime_ms"] = s.Duration(k).Milliseconds()
		}
	}
	return limits
}
