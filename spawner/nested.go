package spawner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox"
)

// A subagent asks for another one with no more rights than it has itself. What the
// coordinator reads and does for a spawn, it does with the rights of the user: so
// what a subagent asks for is bounded here before it is looked at.

// Asking is the subagent that asks for a nested one.
type Asking struct {
	Spec events.Spec
	// Above are the settings of the agents that it is nested in, the nearest first.
	Above []*events.AgentSpec
	Inheritance
	// Hidden are the directories that no subagent reaches, see [Config.Hidden].
	Hidden []string
}

// Before bounds what a subagent asks for, before it is resolved.
func (a Asking) Before(s events.Spawn) (events.Spawn, *events.Error) {
	refuse := func(member, why string) (events.Spawn, *events.Error) {
		return s, events.Errorf(events.CodeForbidden, events.LayerPermission, "spawn: %s: %s", member, why).WithDetail("member", member)
	}
	switch {
	case s.PromptFile != "":
		// The coordinator would read it, and may read more than the subagent.
		return refuse("prompt_file", "a subagent gives the prompt itself")
	case s.ResumeFrom != "":
		return refuse("resume_from", "a subagent cannot resume another one")
	case s.Stdin == events.StdinStream:
		return refuse("stdin", "a subagent has no way to feed it; give a prompt")
	}
	s.ParentSessionID = a.Spec.Request.ParentSessionID
	if s.Cwd == "" {
		s.Cwd = a.Cwd
	}
	if s.Workspace == "" && within(s.Cwd, a.Workspace) {
		s.Workspace = a.Workspace
	}
	// Git and the sandbox look for the user's own files there.
	s.Env = maps.Clone(s.Env)
	if s.Env == nil {
		s.Env = make(map[string]string)
	}
	s.Env["HOME"] = a.Home
	s.MaxRuntimeMS = atMost(s.MaxRuntimeMS, a.Spec.Request.MaxRuntimeMS)
	s.MaxMemoryBytes = atMost(s.MaxMemoryBytes, a.Spec.Request.MaxMemoryBytes)
	return s, nil
}

// Types are the agent types that a subagent can name: those of where its tree began,
// wherever it is now. What is in a project that is not trusted it may have written
// itself, or made a link to what it cannot read, so none of that is looked at.
func (a Asking) Types(of Agents) Agents {
	places := of.Places
	of.Places = func(string) (agents.Places, error) {
		p, err := places(a.Definitions)
		if a.Confined && !p.Trusted {
			p.Project = ""
		}
		return p, err
	}
	return of
}

// After narrows what the type was resolved to by what the spawner is.
func (a Asking) After(s events.Spawn, agent *events.AgentSpec) (events.Spawn, *events.AgentSpec, *events.Error) {
	if s.Isolation == events.IsolationWorktree && a.Confined {
		// Git would be run outside on a repository that the subagent controls.
		return s, agent, events.Errorf(events.CodeUnsupported, events.LayerGate, "spawn: no working tree is made for a subagent of a subagent").
			WithRemedy("spawn it without isolation: it then works in the directory of its spawner")
	}
	if s.Sandbox == "" {
		s.Sandbox = a.Base // the bounds have what else the profile says
	}
	if _, err := sandbox.ParseProfile(s.Sandbox); err != nil && a.Confined {
		// Others are in files that the subagent may have put there.
		return s, agent, events.Errorf(events.CodeUnsupported, events.LayerGate, "spawn: a subagent of a subagent has a built-in profile, not %s", s.Sandbox).
			WithRemedy("name none: it is kept within the sandbox of its spawner in any case")
	}
	s.MaxRuntimeMS = atMost(s.MaxRuntimeMS, a.Spec.Request.MaxRuntimeMS)
	s.MaxMemoryBytes = atMost(s.MaxMemoryBytes, a.Spec.Request.MaxMemoryBytes)
	above := a.Above
	if a.Spec.Agent != nil {
		above = append([]*events.AgentSpec{a.Spec.Agent}, above...)
	}
	var err *events.Error
	for _, by := range above {
		if agent, err = a.narrow(agent, by); err != nil {
			return s, agent, err
		}
	}
	return s, agent, nil
}

// narrow keeps what a nested one may within what an agent above it may. The kernel
// bounds what either does here; what a model's side does with a tool, only this does.
func (a Asking) narrow(agent, above *events.AgentSpec) (*events.AgentSpec, *events.Error) {
	mode := agents.CapabilityMode(above.CapabilityMode)
	if agent == nil || agent.Runner == events.RunnerCommand {
		if mode == agents.CapabilityReadOnly || mode == agents.CapabilityReadWrite {
			return agent, events.Errorf(events.CodeSpawnNotAllowed, events.LayerPermission,
				"spawn: a subagent with the capability mode %s runs no commands, and so spawns none", mode)
		}
		if slices.ContainsFunc(above.DisallowedTools, agents.CommandsRule) {
			return agent, events.Errorf(events.CodeSpawnNotAllowed, events.LayerPermission,
				"spawn: a subagent that is denied the tool for commands spawns none")
		}
		return agent, nil
	}
	narrowed := *agent
	if both := agents.CapabilityMode(agent.CapabilityMode).Intersect(mode); string(both) != agent.CapabilityMode {
		narrowed.Origins = from(narrowed.Origins, "capability_mode", a.Spec.ID)
		narrowed.CapabilityMode = string(both)
	}
	for _, rule := range above.DisallowedTools {
		if !agents.SpawnsRule(rule) && !slices.Contains(narrowed.DisallowedTools, rule) {
			narrowed.DisallowedTools = append(slices.Clone(narrowed.DisallowedTools), rule)
		}
	}
	if (narrowed.Model == "" || narrowed.Model == "inherit") && above.Runner == narrowed.Runner && above.Model != "" {
		narrowed.Model = above.Model
		narrowed.Origins = from(narrowed.Origins, "model", a.Spec.ID)
	}
	return &narrowed, rehash(&narrowed)
}

// from notes that a setting is as it is for the spawner's sake.
func from(origins map[string]string, setting, spawner string) map[string]string {
	origins = maps.Clone(origins)
	if origins == nil {
		origins = make(map[string]string)
	}
	origins[setting] = "spawner " + spawner
	return origins
}

// atMost is a bound that is no wider than another; nil and 0 are none.
func atMost(bound, most *int64) *int64 {
	if most == nil || *most <= 0 || bound != nil && *bound > 0 && *bound <= *most {
		return bound
	}
	return most
}

// rehash makes the hash of an agent's settings anew.
func rehash(spec *events.AgentSpec) *events.Error {
	spec.Hash = ""
	b, err := events.MarshalRecord(spec)
	if err != nil {
		return events.Errorf(events.CodeInternal, events.LayerCoordinator, "spawn: %w", err)
	}
	sum := sha256.Sum256(b)
	spec.Hash = hex.EncodeToString(sum[:])
	return nil
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Spawns says what a subagent may spawn itself: what the definition of its type
// allows, narrowed by what the request names; without a definition what the request
// names.
func Spawns(s events.Spawn, agent *events.AgentSpec) *events.Spawns {
	asked := events.SpawnsOf(s.MaySpawn)
	switch {
	case agent == nil || agent.Definition == "":
		return asked
	case asked == nil:
		return agent.Spawns
	}
	return agent.Spawns.And(asked)
}

// showProgram lets a child that may spawn run hayward, whatever its profile opens.
func (c *child) showProgram(r *sandbox.Request) {
	if c.spec.Spawns != nil && c.s.cfg.Program != "" {
		r.Readable = append(slices.Clone(r.Readable), c.s.cfg.Program)
	}
}

// doorName is the socket below TMPDIR at which programs inside ask the coordinator.
const doorName = "hayward.sock"

// door is its path as the child sees it, empty for one that may spawn nothing.
func (c *child) door() string {
	if c.spec.Spawns == nil {
		return ""
	}
	path := filepath.Join(c.tempDir, doorName)
	if c.plan.SysProcAttr().Cloneflags&unix.CLONE_NEWNS != 0 {
		return c.plan.Inside(path)
	}
	return path
}

// doorEnvironment tells the command of the door. What the request says of it does not
// count.
func (c *child) doorEnvironment(env map[string]string) {
	delete(env, events.VariableBus)
	delete(env, events.VariableMaySpawn)
	if path := c.door(); path != "" {
		env[events.VariableBus], env[events.VariableMaySpawn] = path, c.spec.Spawns.String()
	}
}

// endNested waits until nothing lives any more of what the child spawned: it may
// work in the child's own directory, which is about to be saved. What is asked after
// has a stop ladder of its own, so it asks until that has ended it. It returns false
// if the coordinator or the spawner closed first: the next coordinator ends them.
func (c *child) endNested() bool {
	if c.spec.Spawns == nil || c.s.cfg.Exited == nil {
		return true
	}
	var told time.Time
	for {
		left, err := c.tellExited()
		switch {
		case err == nil && left == 0:
			return true
		case c.s.ctx.Err() != nil || events.HasCode(err, events.CodeShuttingDown):
			return false
		case time.Since(told) >= c.s.cfg.Deadlines.KillProof:
			told = time.Now()
			c.log.Error("subagents that this one spawned live on", zap.Int("left", left), zap.Error(err))
		}
		select {
		case <-c.s.ctx.Done():
			return false
		case <-time.After(lookAgain):
		}
	}
}

// tellExited asks once. The coordinator answers when the ladder is over; the rest is
// for one that does not.
func (c *child) tellExited() (left int, err error) {
	d := c.s.cfg.Deadlines
	ctx, cancel := context.WithTimeout(c.s.ctx, d.Grace+2*d.KillProof+time.Second)
	defer cancel()
	return c.s.cfg.Exited(ctx, c.spec.ID, c.spec.Run)
}

// agentServer is the name of Hayward's own MCP server in an agent.
const agentServer = "hayward"

// ownServer is Hayward's own MCP server for an agent that may spawn, nil for others.
func (c *child) ownServer() (*events.AgentMCPServer, *events.Error) {
	if c.spec.Spawns == nil || c.s.cfg.Program == "" {
		return nil, nil
	}
	env := map[string]string{
		events.VariableSubagent: c.spec.ID, events.VariableBus: c.door(), events.VariableMaySpawn: c.spec.Spawns.String(),
		"HAYWARD_SANDBOX_PROFILE": c.plan.Profile().Name(),
	}
	// A CLI hands few variables on to its servers.
	for _, name := range []string{"HOME", "PATH", "LANG", "TMPDIR"} {
		for _, from := range []map[string]string{c.spec.Request.Env, c.plan.Env} {
			if v := from[name]; v != "" {
				env[name] = v
			}
		}
	}
	config, err := events.MarshalRecord(map[string]any{"command": c.s.cfg.Program, "args": []string{"mcp"}, "env": env})
	if err != nil {
		return nil, events.Errorf(events.CodeInternal, events.LayerCoordinator, "start %s: %w", c.spec.ID, err)
	}
	return &events.AgentMCPServer{Name: agentServer, Config: config}, nil
}

// withServer adds Hayward's own server to those of an agent, and its tools to the
// only ones that it has, if it names them.
func withServer(tools []string) []string {
	if tools == nil || slices.ContainsFunc(tools, func(t string) bool { return strings.HasPrefix(t, "mcp__"+agentServer) }) {
		return tools
	}
	return append(slices.Clone(tools), "mcp__"+agentServer)
}
