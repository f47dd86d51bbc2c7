package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/launch"
)

const sandboxExecHelp = `Run a command under a sandbox profile, without a daemon and without a record. The
command has this stdin, stdout and stderr, and signals are passed on to it. It has
no terminal of its own, so a shell has no job control. Under every profile but
off, what it leaves in the background ends with it.

The second Ctrl-C, or SIGTERM or SIGHUP, kills the command and all that it
started, whatever it ignores.

The exit code is the command's, 128+n when signal n ended it, 126 when the
sandbox could not be applied or the command cannot be executed, 127 when the
command does not exist.`

const sandboxExecExamples = `  hayward sandbox exec --profile strict -- make test
  hayward sandbox exec --profile workspace --deny '**/.env' -- sh -c 'cat .env'
  hayward sandbox exec --profile off -- env`

func (a *app) sandboxExecCommand() *cobra.Command {
	var f sandboxFlags
	cmd := &cobra.Command{
		Use:     "exec [flags] [--] COMMAND [ARGUMENT...]",
		Short:   "Run a command under a sandbox profile, without a daemon",
		Long:    sandboxExecHelp,
		Example: sandboxExecExamples,
		RunE: a.rawVerb(func(_ context.Context, cmd *cobra.Command, args []string) error {
			return a.sandboxExec(cmd, f, args)
		}),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&f.profile, "profile", "", "sandbox profile (default $HAYWARD_SANDBOX, else workspace)")
	flags.StringVar(&f.profile, "sandbox", "", "the same as --profile")
	flags.StringArrayVar(&f.env, "env", nil, "`K=V` to set, or K to take from here (repeatable)")
	flags.BoolVar(&f.bestEffort, "best-effort", false, "go on with what the kernel can enforce")
	if err := cmd.RegisterFlagCompletionFunc("profile", a.completeProfiles); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func (a *app) sandboxExec(cmd *cobra.Command, f sandboxFlags, command []string) (err error) {
	if len(command) == 0 {
		return events.Errorf(events.CodeMissingCommand, events.LayerGate, "there is no command").
			WithRemedy("put it behind --, as in: hayward sandbox exec --profile strict -- make test")
	}
	f.run = true
	c, err := a.compileSandbox(f)
	if events.HasCode(err, events.CodeWorkspaceRefused) || events.HasCode(err, events.CodeStorageFailed) {
		a.say("%s: %s", cmd.CommandPath(), oneLine(err.Error()))
		return exitStatus(exitSandbox)
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	exit, err := launch.Run(c.plan, launch.Command{
		Argv: command, Env: sandboxEnvironment(c), Cwd: c.spawn.Cwd, ChildBinary: c.binary,
		Stdin: a.stdin, Stdout: stream(a.stdout, os.Stdout), Stderr: stream(a.stderr, os.Stderr),
		Ready: func(r events.SandboxReport) {
			if len(r.Missing) > 0 {
				a.warn(cmd, missingWarnings(r.Missing))
			}
			if !r.Active && c.plan.Profile().Enforced() {
				a.warn(cmd, []string{"the sandbox is not complete: " + oneLine(describeGaps(r))})
			}
		},
		Quarantined: func(paths []string, err error) {
			for _, path := range paths {
				a.warn(cmd, []string{quarantined(path)})
			}
			if err != nil {
				a.warn(cmd, []string{oneLine(err.Error())})
			}
		},
	})
	a.began = true
	if err != nil {
		return err
	}
	return status(launch.Code(exit))
}

// sandboxEnvironment is the command's: what the sandbox sets, then what is taken
// from here, as for a spawn.
func sandboxEnvironment(c *compiled) []string {
	env := maps.Clone(c.plan.Env)
	maps.Copy(env, c.spawn.Env)
	env["HAYWARD_SANDBOX_PROFILE"] = c.plan.Profile().Name()
	env["HAYWARD_SANDBOX_NETWORK"] = string(c.plan.Network)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// stream is what a command gets of this process's own stream.
func stream(w any, standard *os.File) *os.File {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return standard
}

func missingWarnings(missing []string) []string {
	var out []string
	for _, m := range missing {
		out = append(out, m+" leads nowhere")
	}
	return out
}

func describeGaps(r events.SandboxReport) string {
	out := ""
	for _, name := range []string{"fds", "namespaces", "mounts", "caps", "no_new_privs", "landlock", "seccomp"} {
		if l := r.Layers[name]; l.State != events.LayerEnforced && !slices.Contains([]events.LayerState{""}, l.State) {
			out += name + " "
		}
	}
	return out
}
