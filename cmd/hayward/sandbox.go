package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/childbin"
	"github.com/hayward-dev/hayward/internal/paths"
	"github.com/hayward-dev/hayward/internal/tempdir"
	"github.com/hayward-dev/hayward/sandbox"
	"github.com/hayward-dev/hayward/spawner"
)

const sandboxHelp = `Show sandbox profiles, explain one, or run a command under one. No daemon is
needed or started.

The built-in profiles:
  workspace  reads everything but credentials, writes the workspace and temporary files (the default)
  devbox     the same, and writes everything below / but /boot, /data, /dev, /proc and /sys
  read-only  reads everything but credentials, writes temporary files only, no network
  strict     reads the system and the workspace, writes the workspace, no network
  off        no sandbox

Your own profiles stand in sandbox.toml in the configuration directory; those of
a workspace in .hayward/sandbox.toml, which can add profiles and change none:
  [profiles.my-strict]
  extends = "workspace"
  deny = ["**/.env", "**/secrets/**"]
  restrict_network = true`

func (a *app) sandboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Show sandbox profiles and run a command under one",
		Long:  sandboxHelp,
		Example: `  hayward sandbox list
  hayward sandbox explain strict
  hayward sandbox exec --profile strict -- make test`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.sandboxListCommand(), a.sandboxExplainCommand(), a.sandboxExecCommand())
	return cmd
}

// sandboxFlags say what a sandbox is to be compiled for.
type sandboxFlags struct {
	profile, workspace string
	addDirs, deny, env []string
	bestEffort         bool
	// run is false where nothing is run.
	run      bool
	loopback bool
}

func (f *sandboxFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.workspace, "workspace", "", "`DIR` that it may write (default: the git repository around the cwd, else the cwd)")
	flags.StringArrayVar(&f.addDirs, "add-dir", nil, "further `DIR` that it may write (repeatable)")
	flags.StringArrayVar(&f.deny, "deny", nil, denyUsage)
	flags.BoolVar(&f.loopback, "loopback", false, "where the profile closes the network, leave a loopback device")
}

const denyUsage = "path or `GLOB` to put out of reach, such as '**/.env' (repeatable)"

// compiled is a plan with what was made for it.
type compiled struct {
	plan    *sandbox.Plan
	spawn   events.Spawn
	binary  string
	tempDir string
	claimed *tempdir.Claimed
	// tempRoot is the root of tempDir if it was made for this command alone.
	tempRoot string
}

// close takes back what was made.
func (c *compiled) close() error {
	err := c.plan.Close()
	if rmErr := c.removeTemp(); err == nil {
		err = rmErr
	}
	return err
}

func (c *compiled) removeTemp() error {
	err := c.claimed.Remove()
	if err == nil && c.tempRoot != "" {
		err = os.Remove(c.tempRoot)
	}
	return err
}

// compileSandbox makes a plan as a spawn with the same flags would get it.
func (a *app) compileSandbox(f sandboxFlags) (*compiled, error) {
	p, err := a.paths()
	if err != nil {
		return nil, err
	}
	c := &compiled{}
	set, err := a.sandboxSpawn(c, f, p)
	if err != nil {
		return nil, err
	}
	if c.binary, err = childbin.Install(p.Bin()); err != nil {
		return nil, events.Errorf(events.CodeSandboxUnavailable, events.LayerSandbox, "%w", err)
	}
	for _, dir := range []string{p.State, p.Runtime, p.Config} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, events.Errorf(events.CodeStorageFailed, events.LayerSandbox, "%w", err)
		}
	}
	configured, err := tempdir.Root()
	root := ""
	if err == nil {
		root, err = tempdir.MakeRoot(configured)
	}
	if err == nil && root != configured {
		c.tempRoot = root
		a.say("hayward sandbox: warning: %s is not a directory of this user; %s is used", configured, root)
	}
	if err == nil {
		c.claimed, err = tempdir.Claim(root, "exec-")
	}
	if c.claimed == nil {
		return nil, events.Errorf(events.CodeSandboxFailed, events.LayerSandbox, "make a TMPDIR: %w", err)
	}
	if err != nil {
		a.say("hayward sandbox: warning: %s", oneLine(err.Error()))
	}
	c.tempDir = c.claimed.Path()
	s := c.spawn
	plan, refusal := sandbox.Compile(sandbox.Request{
		Profile: s.Sandbox, Profiles: set, BestEffort: f.bestEffort, Workspace: s.Workspace, Cwd: s.Cwd,
		Home: s.Env["HOME"], TempDir: c.tempDir, TempRoot: root, CacheRoot: p.Cache, ChildBinary: c.binary,
		AddDirs: s.AddDirs, Deny: f.deny, Path: s.Env["PATH"], Loopback: f.loopback,
		MakeHooks: f.run, Hidden: []string{p.State, p.Runtime}, Protected: []string{p.Config},
	}, sandbox.Probe())
	if refusal != nil {
		if err := c.removeTemp(); err != nil {
			refusal = refusal.WithDetail("cleanup", err.Error())
		}
		return nil, refusal
	}
	c.plan = plan
	return c, nil
}

// sandboxSpawn fills in where it runs, with which environment and profile.
func (a *app) sandboxSpawn(c *compiled, f sandboxFlags, p paths.Paths) (sandbox.Profiles, error) {
	s := events.Spawn{Sandbox: f.profile, Env: client.BaseEnvironment(a.environ)}
	if s.Sandbox == "" {
		s.Sandbox = a.getenv("HAYWARD_SANDBOX")
	}
	explicit, err := a.explicitEnv(f.env)
	if err != nil {
		return sandbox.Profiles{}, err
	}
	for k, v := range explicit {
		s.Env[k] = v
	}
	if err := resolveDirs(&s, spawnFlags{workspace: f.workspace, addDirs: f.addDirs}); err != nil {
		return sandbox.Profiles{}, err
	}
	resolved, set, refusal := spawner.ResolvePlace(s, p.Profiles())
	if refusal != nil {
		return sandbox.Profiles{}, refusal
	}
	c.spawn = resolved
	return set, nil
}

// loadProfiles reads the profiles that a workspace sees.
func (a *app) loadProfiles(workspace string) (sandbox.Profiles, error) {
	p, err := a.paths()
	if err != nil {
		return sandbox.Profiles{}, err
	}
	s := events.Spawn{}
	if err := resolveDirs(&s, spawnFlags{workspace: workspace}); err != nil {
		return sandbox.Profiles{}, err
	}
	s, _, refusal := spawner.ResolvePlace(s, p.Profiles())
	if refusal != nil {
		return sandbox.Profiles{}, refusal
	}
	set, refusal := sandbox.LoadProfiles(p.Profiles(), s.Workspace)
	if refusal != nil {
		return sandbox.Profiles{}, refusal
	}
	return set, nil
}

// listedProfile is one row of sandbox list.
type listedProfile struct {
	Name    string `json:"name"`
	Extends string `json:"extends,omitempty"`
	Network string `json:"network"`
	Reads   string `json:"reads"`
	Writes  string `json:"writes"`
	// From is empty for a built-in profile.
	From string `json:"from,omitempty"`
}

func (a *app) sandboxListCommand() *cobra.Command {
	var workspace string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the sandbox profiles",
		Long:    "List the built-in sandbox profiles, those of sandbox.toml in the configuration\ndirectory, and those that the workspace adds.",
		Example: "  hayward sandbox list\n  hayward sandbox list --workspace ~/src/project --json",
		Args:    cobra.NoArgs,
		RunE: a.verb(func(_ context.Context, cmd *cobra.Command, _ []string) error {
			set, err := a.loadProfiles(workspace)
			if err != nil {
				return err
			}
			for _, c := range set.Conflicts {
				a.warn(cmd, []string{c.String()})
			}
			var list []listedProfile
			for _, name := range set.Known() {
				if p, ok := set.Find(name); ok {
					list = append(list, describeProfile(p))
				}
			}
			if a.json {
				return a.printJSON(map[string]any{"profiles": list, "conflicts": set.Conflicts})
			}
			t := &table{header: []string{"NAME", "EXTENDS", "NETWORK", "READS", "WRITES", "FROM"}}
			for _, l := range list {
				t.add(l.Name, l.Extends, l.Network, l.Reads, l.Writes, l.From)
			}
			return a.printTable(t)
		}),
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "`DIR` whose profiles are added (default: the git repository around the cwd, else the cwd)")
	return cmd
}

func describeProfile(p sandbox.Profile) listedProfile {
	l := listedProfile{Name: p.Name(), Network: "open"}
	caps := sandbox.Describe(p)
	if caps.RestrictNetwork {
		l.Network = "none"
	}
	l.Reads = "everything"
	if !caps.DefaultRead {
		l.Reads = "system, workspace"
	} else if p.Enforced() {
		l.Reads = "all but credentials"
	}
	l.Writes = map[string]string{
		sandbox.Workspace: "workspace, temp, cache", sandbox.Devbox: "most of the system", sandbox.ReadOnly: "temp",
		sandbox.Strict: "workspace, private temp, cache", sandbox.Off: "everything",
	}[p.Base()]
	if c := p.Custom(); c != nil {
		l.Extends, l.From = c.Extends, filepath.Base(c.File)
		if c.Project {
			l.From = "workspace"
		}
		if len(c.ReadWrite) > 0 {
			l.Writes += ", more"
		}
		if len(c.Deny) > 0 {
			l.Reads += ", less what it denies"
		}
	}
	return l
}
