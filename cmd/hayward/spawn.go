package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
)

const spawnHelp = `Run a command, or an agent of a type, as a sandboxed subagent.

In the foreground it behaves like the command: stdout and stderr come as they are
written, a pipe or file on stdin is forwarded, and the exit code is the command's.
The first Ctrl-C ends it gracefully, the second kills it; either way hayward
returns once every process of it is gone. When the terminal is closed it goes on.

With --detach it runs in the background and its id is printed at once.
With --json the object with the result is all that is printed.

The defaults of --session, --sandbox, --isolation, --max-runtime and --idle-timeout
can be configured, see: hayward config show --origin`

const spawnExamples = `  hayward spawn -- go test ./...
  hayward spawn --json -- sh -c 'echo hi'
  tar c src | hayward spawn -- sh -c 'tar t | wc -l'
  hayward spawn -d --name lint --label kind=check -- make lint
  hayward spawn --sandbox off --max-runtime 10m -- ./deploy
  hayward spawn --prompt @task.md -- my-agent
  hayward spawn --type explore --output-schema @found.schema.json --prompt @task.md`

// spawnFlags are the flags of spawn.
type spawnFlags struct {
	session     string
	parent      string
	reopen      bool
	name        string
	kind        string
	model       string
	persona     string
	capability  string
	schema      string
	noDenials   bool
	raw         bool
	maySpawn    []string
	prompt      string
	description string
	detach      bool
	workspace   string
	addDirs     []string
	deny        []string
	cwd         string
	env         []string
	labels      []string
	inputs      []string
	id          string
	noDaemon    bool
}

func (a *app) spawnCommand() *cobra.Command {
	var f spawnFlags
	cmd := &cobra.Command{
		Use:     "spawn [flags] [--] COMMAND [ARGUMENT...]",
		Short:   "Run a command as a sandboxed subagent",
		Long:    spawnHelp,
		Example: spawnExamples,
		RunE: a.rawVerb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.spawn(ctx, cmd, f, args)
		}),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // the shell knows commands and files
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the command is the command's
	flags.StringVar(&f.session, "session", "", "session that owns it (default $HAYWARD_SESSION, else default)")
	flags.StringVar(&f.parent, "parent-prompt", "", "prompt of the session that it belongs to")
	flags.BoolVar(&f.reopen, "reopen", false, "open --parent-prompt again if it was cancelled")
	flags.StringVar(&f.name, "name", "", "name, unique among what runs in the session")
	flags.StringVar(&f.kind, "type", "", "subagent type, see hayward agents (default: command)")
	flags.StringVar(&f.model, "model", "", "model of an agent, in place of its definition's")
	flags.StringVar(&f.persona, "persona", "", "persona of an agent")
	flags.StringVar(&f.capability, "capability-mode", "", "what an agent may do: read-only, read-write, execute or all")
	flags.StringArrayVar(&f.maySpawn, "may-spawn", nil, "`TYPE` that it may spawn itself, or * for any (repeatable; an agent: within its definition)")
	flags.StringVar(&f.schema, "output-schema", "", "JSON Schema that an agent's result must meet: `JSON` or @FILE")
	flags.BoolVar(&f.noDenials, "require-no-denials", false, "fail if an agent is denied a tool call")
	flags.BoolVar(&f.raw, "raw", false, "run claude or codex as any other command")
	flags.StringVar(&f.prompt, "prompt", "", "prompt: `TEXT`, @FILE, or - for stdin; a command reads it on stdin")
	flags.StringVar(&f.description, "description", "", "what it is for, in a few words")
	flags.BoolVarP(&f.detach, "detach", "d", false, "run in the background and print the id")
	flags.BoolVar(&f.detach, "background", false, "the same as --detach")
	flags.String("sandbox", "", "sandbox profile (default $HAYWARD_SANDBOX, else workspace)")
	flags.Bool("sandbox-best-effort", false, "go on with what the kernel can enforce")
	flags.String("isolation", "", "file space: none or worktree (default none)")
	flags.StringVar(&f.workspace, "workspace", "", "`DIR` that it may write (default: the git repository around the cwd, else the cwd)")
	flags.StringArrayVar(&f.addDirs, "add-dir", nil, "further `DIR` that it may write (repeatable)")
	flags.StringArrayVar(&f.deny, "deny", nil, denyUsage)
	flags.StringVar(&f.cwd, "cwd", "", "`DIR` to run in (default: this one)")
	flags.StringArrayVar(&f.env, "env", nil, "`K=V` to set, or K to take from here (repeatable)")
	flags.StringArrayVar(&f.labels, "label", nil, "`K=V` to select it by (repeatable)")
	flags.StringArrayVar(&f.inputs, "input", nil, "`NAME=ID` of a finished subagent whose output is the file in $HAYWARD_INPUT_NAME (repeatable)")
	flags.Duration("max-runtime", 0, "end it after that long")
	flags.Var(byteSize{new(int64)}, "max-memory", "end it when its processes use more memory than that, such as 512M (0: no bound)")
	flags.Duration("idle-timeout", 0, "end it after that long without output")
	flags.StringVar(&f.id, "id", "", "its id, a UUID (default: a new one)")
	flags.BoolVar(&f.noDaemon, "no-daemon", false, "run without a daemon; nothing is kept")
	return cmd
}

func (a *app) spawn(ctx context.Context, cmd *cobra.Command, f spawnFlags, command []string) error {
	if err := a.takeFlags(cmd, config.ScopeClient); err != nil {
		return err
	}
	a.warn(cmd, a.settings.Warnings())
	request, err := a.spawnRequest(f, command)
	if err != nil {
		return err
	}
	if f.noDaemon && f.detach {
		return usage("--detach needs a daemon: without one, nothing would be left to run it")
	}
	if f.noDaemon && request.Isolation == events.IsolationWorktree {
		return usage("--isolation worktree needs a daemon: without one, nothing is kept of what the subagent leaves")
	}
	// What is wrong with it can be said before a daemon is started.
	if err := request.Validate(); err != nil {
		return err
	}
	if f.detach {
		ctx, stop := interruptible(ctx)
		defer stop()
		return wrapVerb(ctx, a.spawnDetached(ctx, cmd, request))
	}
	if id, _ := client.Inside(a.getenv); id != "" && !f.noDaemon {
		return a.spawnInside(ctx, cmd, request)
	}
	return a.spawnForeground(ctx, cmd, f, request)
}

func (a *app) spawnDetached(ctx context.Context, cmd *cobra.Command, request events.Spawn) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	request.RunInBackground = true
	reply, err := c.Spawn(ctx, request)
	err = a.explainProfile(err)
	if err == nil {
		a.warn(cmd, reply.Value.Warnings)
		if a.json {
			err = a.printJSON(reply.Value)
		} else {
			err = a.printf("%s\n", reply.Value.SubagentID)
		}
	}
	return c.done(err)
}

// spawnRequest turns flags into a request.
func (a *app) spawnRequest(f spawnFlags, command []string) (events.Spawn, error) {
	s := events.Spawn{
		ParentSessionID: a.session(f.session), ID: f.id, Name: f.name, Description: f.description,
		SubagentType: f.kind, Command: command, ParentPromptID: f.parent, Reopen: f.reopen, Deny: f.deny,
		Model: f.model, Persona: f.persona, CapabilityMode: f.capability, Raw: f.raw, MaySpawn: f.maySpawn,
		RequireNoDenials: f.noDenials,
	}
	if len(command) == 0 && f.kind == "" {
		return s, events.Errorf(events.CodeMissingCommand, events.LayerGate, "there is no command").
			WithRemedy("put it behind --, as in: hayward spawn -- make test")
	}
	a.applySpawn(&s)
	var err error
	if s.Env, err = a.explicitEnv(f.env); err != nil {
		return s, err
	}
	if s.OutputSchema, err = outputSchema(f.schema); err != nil {
		return s, err
	}
	if s.Labels, err = pairs("--label", f.labels); err != nil {
		return s, err
	}
	if s.Inputs, err = pairs("--input", f.inputs); err != nil {
		return s, err
	}
	if err := resolveDirs(&s, f); err != nil {
		return s, err
	}
	s.Prompt, s.PromptFile, err = a.promptOf(f.prompt)
	return s, err
}

// resolveDirs makes the directories absolute.
func resolveDirs(s *events.Spawn, f spawnFlags) error {
	cwd := f.cwd
	if cwd == "" {
		cwd = "."
	}
	var err error
	if s.Cwd, err = filepath.Abs(cwd); err != nil {
		return events.Errorf(events.CodeCwdMissing, events.LayerWorkspace, "find the working directory: %w", err)
	}
	if f.workspace != "" {
		if s.Workspace, err = filepath.Abs(f.workspace); err != nil {
			return usage("--workspace: %w", err)
		}
	}
	for _, d := range f.addDirs {
		if d == "" {
			return usage("--add-dir is empty")
		}
		abs, err := filepath.Abs(d)
		if err != nil {
			return usage("--add-dir %s: %w", d, err)
		}
		s.AddDirs = append(s.AddDirs, abs)
	}
	return nil
}

// explicitEnv reads --env: K=V, or K alone for the value it has here.
func (a *app) explicitEnv(list []string) (map[string]string, error) {
	env := make(map[string]string)
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			if v, ok = a.lookupEnv(k); !ok {
				return nil, usage("--env %s: there is no such variable here; set it with --env %s=VALUE", k, k)
			}
		}
		env[k] = v
	}
	return env, nil
}

// pairs reads a repeated K=V flag.
func pairs(flag string, list []string) (map[string]string, error) {
	m := make(map[string]string)
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, usage("%s %q is not of the form K=V", flag, kv)
		}
		if _, twice := m[k]; twice {
			return nil, usage("%s gives %s twice", flag, k)
		}
		m[k] = v
	}
	return m, nil
}

// promptOf reads --prompt. A file that is too long to be sent is named instead,
// and read by the daemon when the subagent starts.
func (a *app) promptOf(flag string) (text, file string, err error) {
	switch {
	case flag == "-":
		b, err := io.ReadAll(io.LimitReader(a.stdin, events.MaxPrompt+1))
		if err != nil {
			return "", "", fmt.Errorf("read the prompt from stdin: %w", err)
		}
		if len(b) > events.MaxPrompt {
			return "", "", events.Errorf(events.CodeTooLarge, events.LayerGate, "the prompt on stdin has over %d bytes", events.MaxPrompt).
				WithRemedy("put it into a file and use --prompt @FILE")
		}
		return string(b), "", nil
	case strings.HasPrefix(flag, "@"):
		return promptFile(flag[1:])
	}
	return flag, "", nil
}

func promptFile(name string) (text, file string, err error) {
	abs, err := filepath.Abs(name)
	if err == nil {
		var f *os.File
		if f, err = os.Open(abs); err == nil {
			defer f.Close()
			var b []byte
			if b, err = io.ReadAll(io.LimitReader(f, events.MaxPrompt+1)); err == nil && len(b) <= events.MaxPrompt {
				return string(b), "", nil
			}
		}
	}
	if err != nil {
		return "", "", events.Errorf(events.CodePromptFile, events.LayerWorkspace, "read the prompt: %w", err)
	}
	return "", abs, nil
}

// stdinSource returns what a foreground command reads, or nil: a pipe, a socket
// or a file is forwarded; a terminal, a device such as /dev/null and nothing at
// all are not.
func (a *app) stdinSource() io.ReadCloser {
	info, err := a.stdin.Stat()
	if err != nil {
		return nil // closed
	}
	mode := info.Mode()
	if mode.IsRegular() || mode&(os.ModeNamedPipe|os.ModeSocket) != 0 {
		return newInterruptibleReader(a.stdin)
	}
	return nil
}
