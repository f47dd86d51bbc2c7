package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/gateway"
	"github.com/hayward-dev/hayward/internal/daemon"
	"github.com/hayward-dev/hayward/internal/deadlines"
	"github.com/hayward-dev/hayward/internal/trust"
	"github.com/hayward-dev/hayward/sandbox"
	"github.com/hayward-dev/hayward/worktree"
)

// sources say where the configuration is for a working directory.
func (a *app) sources(cwd string) (config.Sources, error) {
	p, err := a.paths()
	if err != nil {
		return config.Sources{}, err
	}
	projects := trust.Open(p.Trusted())
	trusted := func(dir string) bool {
		ok, err := projects.Trusts(dir)
		if err != nil {
			a.say("hayward: warning: %v", err)
		}
		// Only what is at the top was looked at when the project was trusted.
		top, topErr := trust.ProjectOf(dir)
		canonical, dirErr := filepath.EvalSymlinks(dir)
		return ok && errors.Join(err, topErr, dirErr) == nil && top == canonical
	}
	s := config.Sources{SystemDir: a.systemDir, UserDir: p.Config, Trusted: trusted, Getenv: a.getenv}
	if cwd != "" {
		s.ProjectDir = config.FindProject(cwd, a.getenv("HOME"))
	}
	return s, nil
}

// workingDir is this directory, or empty when it is gone: then no project is
// around it.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// withSettings makes a verb read the configuration before its body.
func (a *app) withSettings(cmd *cobra.Command) *cobra.Command {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		err := a.readSettings(cmd)
		if err != nil {
			return &verbError{err}
		}
		return nil
	}
	return cmd
}

func (a *app) readSettings(cmd *cobra.Command) error {
	cwd := workingDir()
	if f := cmd.Flags().Lookup("cwd"); f != nil && f.Value.String() != "" {
		if abs, err := filepath.Abs(f.Value.String()); err == nil { // else the verb says what is wrong with it
			cwd = abs
		}
	}
	s, err := a.sources(cwd)
	if err != nil {
		return err
	}
	a.settings, err = config.Load(s)
	return settingsError(err)
}

// settingsError is what a faulty configuration is to every verb.
func settingsError(err error) error {
	var bad *config.Error
	if !errors.As(err, &bad) {
		return err
	}
	return usage("%w", bad).WithRemedy("see: hayward config check")
}

// takeFlags puts the flags that were given over the configuration. Zeros count
// as not given.
func (a *app) takeFlags(cmd *cobra.Command, scope config.Scope) error {
	for _, k := range config.Keys {
		f := cmd.Flags().Lookup(k.Flag)
		if k.Scope != scope || k.Flag == "" || f == nil || !f.Changed {
			continue
		}
		text := f.Value.String()
		switch {
		case k.Kind == config.KindSize: // 0 is no bound
			text = cmp.Or(text, "0")
		case text == "" || text == "0" || text == "0s" || text == "[]":
			continue
		case k == config.BusSync:
			text = map[string]string{"true": config.SyncAlways, "false": config.SyncInterval}[text]
		}
		if err := a.settings.SetFlag(k, k.Flag, text); err != nil {
			return usage("%w", err)
		}
	}
	return nil
}

// applySandbox gives a spawn that names no sandbox the configured one, and every
// spawn a pinned one. What is not set is left to the daemon.
func (a *app) applySandbox(s *events.Spawn) {
	c := a.settings
	if v := c.Value(config.SandboxProfile); v.IsSet() && (s.Sandbox == "" || v.Origin.Layer == config.LayerPin) {
		s.Sandbox = v.Text
	}
	if v := c.Value(config.SandboxBestEffort); v.IsSet() && (!s.SandboxBestEffort || v.Origin.Layer == config.LayerPin) {
		s.SandboxBestEffort = c.Bool(config.SandboxBestEffort)
	}
}

// applySpawn is applySandbox and the keys of the verb spawn.
func (a *app) applySpawn(s *events.Spawn) {
	a.applySandbox(s)
	c := a.settings
	if c.Value(config.SpawnIsolation).IsSet() {
		s.Isolation = c.String(config.SpawnIsolation)
	}
	s.MaxRuntimeMS = milliseconds(c.Duration(config.SpawnMaxRuntime))
	if c.Value(config.SpawnMaxMemory).IsSet() {
		n := c.Bytes(config.SpawnMaxMemory)
		s.MaxMemoryBytes = &n
	}
	s.IdleTimeoutMS = milliseconds(c.Duration(config.SpawnIdleTimeout))
	a.applyResume(s)
}

// explainProfile adds to the refusal of a profile where its name came from.
func (a *app) explainProfile(err error) error {
	e := new(events.Error)
	if !errors.As(err, &e) || e.Code != events.CodeUnknownProfile || a.settings == nil {
		return err
	}
	v := a.settings.Value(config.SandboxProfile)
	if !v.IsSet() || v.Origin.Layer == config.LayerFlag {
		return err
	}
	return e.WithDetail("from", v.Origin.String())
}

// daemonOptions are the options of a daemon as configured.
func (a *app) daemonOptions() daemon.Options {
	c := a.settings
	o := daemon.Options{
		Version: buildVersion(),
		Limits: coordinator.Limits{
			PerSession: c.Int(config.LimitPerSession), Total: c.Int(config.LimitTotal),
			QueueLength: c.Int(config.LimitQueue), Depth: c.Int(config.LimitDepth),
			PerType: c.Counts(config.LimitPerType), AtLimit: coordinator.AtLimit(c.String(config.AtLimit)),
		},
		Retention: coordinator.Retention{PerSession: c.Int(config.KeepFinished), Age: c.Duration(config.KeepFor)},
		MaxMemory: c.Bytes(config.LimitMemory),
		Worktrees: daemon.Worktrees{
			Dir: c.String(config.WorktreeDir), Setup: c.String(config.WorktreeSetup), SetupDeadline: c.Duration(config.WorktreeSetupTimeout),
			Limits: worktree.Limits{MaxCount: c.Int(config.WorktreeMaxCount), MaxTotal: c.Bytes(config.WorktreeMaxTotal)},
		},
		Resume:     resumePolicy(c),
		SyncAlways: c.String(config.BusSync) == config.SyncAlways,
		Origins:    make(map[string]string),
		Settle:     enforcePins(c),
		MaxCostUSD: c.Number(config.GatewayMaxCost), Prices: c.Prices(config.GatewayPrices),

		AgentRunner: c.String(config.AgentRunner), MaxTokens: int64(c.Int(config.GatewayMaxTokens)), Getenv: a.getenv,
		MaxTreeTokens: int64(c.Int(config.GatewayMaxTreeTokens)), MaxPromptTokens: int64(c.Int(config.GatewayMaxPromptTokens)),
		Upstreams: []gateway.Upstream{
			{
				Name: "anthropic", Base: c.String(config.AnthropicURL), KeyFile: c.String(config.AnthropicKeyFile),
				KeyEnv: c.String(config.AnthropicKeyEnv), Credential: "anthropic-api-key",
			},
			{
				Name: "openai", Base: c.String(config.OpenAIURL), KeyFile: c.String(config.OpenAIKeyFile),
				KeyEnv: c.String(config.OpenAIKeyEnv), Credential: "openai-api-key",
			},
		},
	}
	for i, d := range deadlines.All {
		*d.Of(&o.Deadlines) = c.Duration(config.Deadlines[i])
	}
	for name, v := range shownLimits(c) {
		o.Origins[name] = v.Origin.String()
	}
	for t := range o.Limits.PerType {
		o.Origins["per_type."+t] = c.Value(config.LimitPerType).Origin.String()
	}
	return o
}

// shownLimits are the limits and deadlines by the names that status has for them.
func shownLimits(c *config.Config) map[string]config.Value {
	shown := make(map[string]config.Value)
	for _, k := range []*config.Key{config.LimitPerSession, config.LimitTotal, config.LimitQueue, config.LimitDepth} {
		shown[k.Leaf()] = c.Value(k)
	}
	shown["at_limit"] = c.Value(config.AtLimit)
	shown["keep_finished"], shown["keep_for_ms"] = c.Value(config.KeepFinished), c.Value(config.KeepFor)
	shown["max_memory_bytes"] = c.Value(config.LimitMemory)
	for _, k := range config.Deadlines {
		shown[k.Leaf()+"_ms"] = c.Value(k)
	}
	return shown
}

// enforcePins gives spawns of any client what is pinned, and refuses those that ask
// for something else.
func enforcePins(c *config.Config) func(*events.Spawn) *events.Error {
	pinned := func(k *config.Key) bool { return c.Value(k).Origin.Layer == config.LayerPin }
	refuse := func(k *config.Key) *events.Error {
		v := c.Value(k)
		return events.Errorf(events.CodeForbidden, events.LayerPermission, "spawn: %s is %s, %s", k.Name, v.Text, v.Origin).
			WithRemedy("ask for that, or for nothing")
	}
	return func(s *events.Spawn) *events.Error {
		if k := config.SandboxProfile; pinned(k) {
			if s.Sandbox != "" && !sameProfile(s.Sandbox, c.String(k)) {
				return refuse(k)
			}
			s.Sandbox = c.String(k)
		}
		if k := config.SandboxBestEffort; pinned(k) {
			if s.SandboxBestEffort && !c.Bool(k) {
				return refuse(k)
			}
			s.SandboxBestEffort = c.Bool(k)
		}
		if k := config.SpawnIsolation; pinned(k) {
			if asked, _ := events.ParseIsolation(s.Isolation); s.Isolation != "" && asked != c.String(k) {
				return refuse(k)
			}
			s.Isolation = c.String(k)
		}
		return nil
	}
}

// sameProfile compares names as the sandbox does.
func sameProfile(a, b string) bool {
	p, errA := sandbox.ParseProfile(a)
	q, errB := sandbox.ParseProfile(b)
	if errA != nil || errB != nil { // custom ones, whose names differ by more than this
		fold := strings.NewReplacer("_", "-")
		return strings.EqualFold(fold.Replace(a), fold.Replace(b))
	}
	return p.Name() == q.Name()
}
