package spawner

import (
	"errors"
	"io/fs"
	"os"
	slashpath "path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/adapter"
	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox"
)

// homeName is the private home of an agent, in the run directory, where it stays
// for a later run, and below TMPDIR, where the agent finds it.
const homeName = "home"

// relayURL is where an agent reaches the gateway; the child puts the address in.
const relayURL = "http://" + events.RelayAddress

// agentPaths are the gateway's paths for each agent's model API.
var agentPaths = map[string]string{events.AgentClaude: "/anthropic", events.AgentCodex: "/openai"}

// secrets are the keys that the child must not read. Profile off keeps nothing from
// anybody.
func (c *child) secrets(profiles sandbox.Profiles) []string {
	profile, err := sandbox.FindProfile(profiles, c.spec.Request.Sandbox)
	if err != nil || profile.Enforced() { // compiling it says what is wrong with it
		return c.s.cfg.Secrets
	}
	return nil
}

// runsAgent reports whether an agent runs in c.
func (c *child) runsAgent() bool {
	return c.spec.Agent != nil && c.spec.Agent.Runner != events.RunnerCommand
}

// makeHome makes the agent's home and its place below TMPDIR.
func (c *child) makeHome() ([]sandbox.Bind, *events.Error) {
	if !c.runsAgent() {
		return nil, nil
	}
	fail := func(err error) *events.Error {
		return events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: make the agent's home: %w", c.spec.ID, err)
	}
	c.home = filepath.Join(c.dir.Path(), homeName)
	if err := os.Mkdir(c.home, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fail(err)
	}
	if st, err := os.Lstat(c.home); err != nil || !st.IsDir() {
		return nil, fail(errors.Join(err, unix.ENOTDIR))
	}
	place, err := openBelow(c.tempDir, homeName)
	if err != nil {
		return nil, fail(err)
	}
	defer place.Close()
	return []sandbox.Bind{{Source: c.home, Target: place.Name()}}, nil
}

// setUpAgent turns the agent's spec into a command and seeds its home. The plan is
// compiled by then.
func (c *child) setUpAgent() *events.Error {
	if !c.runsAgent() {
		return nil
	}
	a, req := c.spec.Agent, c.spec.Request
	home := c.home
	if c.plan.SysProcAttr().Cloneflags&unix.CLONE_NEWNS != 0 {
		home = c.plan.Inside(filepath.Join(c.tempDir, homeName))
	}
	systemPrompt, err := c.putSkills(home, a.SystemPrompt)
	if err != nil {
		return err
	}
	r := adapter.Request{
		Agent: a.Runner, Command: req.Command, SystemPrompt: systemPrompt,
		Tools: a.Tools, DisallowedTools: a.DisallowedTools, CapabilityMode: a.CapabilityMode, PermissionMode: a.PermissionMode,
		Model: a.Model, Effort: a.Effort, MaxTurns: a.MaxTurns,
		Home: home, Confined: c.plan.Profile().Enforced() && !req.SandboxBestEffort,
		ReadOnlyFiles:  c.plan.Profile().Base() == sandbox.ReadOnly || a.CapabilityMode == string(agents.CapabilityReadOnly) && !slices.Contains(c.plan.Writable, req.Workspace),
		TrustedProject: a.TrustedProject, UID: os.Geteuid(),
		RequireNoDenials: a.RequireNoDenials, OutputSchema: []byte(a.OutputSchema), Hooks: []byte(a.Hooks),
	}
	if c.resumes() {
		r.Resume, r.SessionUsage = c.spec.Resume.Session.ChildSessionID, c.usageBefore
	}
	if a.Access == events.AccessGateway {
		r.Relay = adapter.Relay{URL: relayURL + agentPaths[a.Runner], Token: c.s.cfg.ModelCredential(c.spec.ID, c.spec.Run)}
	}
	for _, m := range a.MCPServers {
		if m.Config != nil {
			r.MCPServers = append(r.MCPServers, adapter.MCPServer{Name: m.Name, Config: []byte(m.Config)})
		}
	}
	own, err := c.ownServer()
	if err != nil {
		return err
	}
	if own != nil {
		r.MCPServers = append(r.MCPServers, adapter.MCPServer{Name: own.Name, Config: []byte(own.Config)})
		r.Tools = withServer(r.Tools)
	}
	if r.Resume != "" && r.Agent == events.AgentCodex {
		used, err := codexSessionUsage(c.home, r.Resume)
		switch {
		case err == nil:
			r.SessionUsage = used
		case !errors.Is(err, fs.ErrNotExist): // that there is none is codex's to say
			return events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: %w", c.spec.ID, err)
		}
	}
	setup, err := adapter.New(r)
	if err != nil {
		return err
	}
	c.agent = &setup
	if err := seed(c.home, setup.Files); err != nil {
		return events.Errorf(events.CodeStartFailed, events.LayerWorkspace, "start %s: fill the agent's home: %w", c.spec.ID, err)
	}
	return nil
}

// seed writes files into a home. An earlier run may have left anything in it.
func seed(home string, files []adapter.File) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		if err := root.MkdirAll(slashpath.Dir(f.Path), 0o700); err != nil {
			return err
		}
		if err := root.RemoveAll(f.Path); err != nil {
			return err
		}
		if err := root.WriteFile(f.Path, f.Data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// agentEnvironment changes a command's environment into its agent's.
func (c *child) agentEnvironment(env map[string]string) {
	if c.agent == nil {
		return
	}
	for _, name := range c.agent.Unset {
		delete(env, name)
	}
	for name, value := range c.agent.Env {
		env[name] = value
	}
}

// asAgent changes a command's spec into its agent's.
func (c *child) asAgent(s *events.ChildSpec) {
	if c.agent == nil {
		return
	}
	s.Argv, s.Adapter = c.agent.Argv, &c.agent.Adapter
	s.Prompt = task(c.spec.Agent, s.Prompt, c.resumes())
	s.Relay = c.spec.Agent.Access == events.AccessGateway
}
