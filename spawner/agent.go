package spawner

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/adapter"
	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
)

// Agents resolves the agent types of spawns.
type Agents struct {
	// Places says where the definitions for a working directory are.
	Places func(dir string) (agents.Places, error)
	// Runner runs types that name none: claude or codex.
	Runner string
	// HasKey reports why the gateway cannot reach the model of a runner, or nil.
	HasKey func(runner string) error
}

// logins are the variables with which an agent reaches its model by itself. Given
// to a spawn on purpose, they are within the agent's reach.
var logins = map[string][]string{
	events.AgentClaude: {"CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"},
	events.AgentCodex:  {"CODEX_API_KEY", "OPENAI_API_KEY"},
}

// Resolve reads what the type of a spawn means and fills in what the type decides.
// The result is nil for a plain command. It reads files, so it does not belong on
// the drain loop.
func (a Agents) Resolve(s events.Spawn) (events.Spawn, *events.AgentSpec, *events.Error) {
	var spec *events.AgentSpec
	switch {
	case s.SubagentType != "" && !strings.EqualFold(s.SubagentType, TypeCommand):
		var err *events.Error
		if s, spec, err = a.resolveType(s); err != nil {
			return s, nil, err
		}
	case adapter.Of(s.Command) != "" && !s.Raw:
		spec = &events.AgentSpec{Runner: adapter.Of(s.Command), Model: s.Model}
	default:
		return s, nil, nil
	}
	if err := demand(s, spec); err != nil {
		return s, nil, err
	}
	if spec.Runner == events.RunnerCommand {
		return s, spec, nil
	}
	if s.Prompt == "" && s.PromptFile == "" && len(s.Command) <= 1 {
		return s, nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: an agent needs a prompt").
			WithRemedy("give it with --prompt")
	}
	var err *events.Error
	spec.Access, err = a.modelAccess(s, spec.Runner)
	return s, spec, err
}

// modelAccess says how the model is reached. A credential in the request is there
// on purpose, so it is used.
func (a Agents) modelAccess(s events.Spawn, runner string) (string, *events.Error) {
	for _, name := range logins[runner] {
		if s.Env[name] != "" {
			return events.AccessLogin, nil
		}
	}
	if err := a.HasKey(runner); err != nil {
		return "", events.Errorf(events.CodeNoModelAccess, events.LayerGate, "spawn: %s has no way to its model: %w", runner, err).
			WithRemedy("give the gateway a key, or give the agent its own credential with --env %s", logins[runner][0])
	}
	return events.AccessGateway, nil
}

// resolveType resolves a defined type.
func (a Agents) resolveType(s events.Spawn) (events.Spawn, *events.AgentSpec, *events.Error) {
	dir := s.Cwd
	if dir == "" {
		dir = s.Workspace
	}
	places, err := a.Places(dir)
	if err != nil {
		return s, nil, events.Errorf(events.CodeCwdMissing, events.LayerGate, "spawn: find the agent types: %w", err)
	}
	d, refusal := agents.Load(places).Find(s.SubagentType)
	if refusal != nil {
		return s, nil, refusal
	}
	if d.Disabled {
		return s, nil, events.Errorf(events.CodeForbidden, events.LayerPermission, "spawn: the agent type %s is disabled by %s", d.Name, d.Source)
	}
	persona, role, refusal := companions(places, d.Name, s.Persona)
	if refusal != nil {
		return s, nil, refusal
	}
	request := agents.Request{Model: s.Model, Isolation: s.Isolation, Sandbox: s.Sandbox}
	if s.CapabilityMode != "" {
		if request.CapabilityMode, err = agents.ParseCapabilityMode(s.CapabilityMode); err != nil {
			return s, nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: capability_mode: %w", err)
		}
	}
	rt := agents.Resolve(d, persona, role, request)
	spec, refusal := specOf(d, rt)
	if refusal != nil {
		return s, nil, refusal
	}
	if refusal = complete(spec, d, places); refusal != nil {
		return s, nil, refusal
	}
	spec.TrustedProject = places.Trusted
	s.SubagentType = d.Name
	s.Isolation, s.Sandbox = rt.Isolation.Value, rt.Sandbox.Value
	s.RunInBackground = s.RunInBackground || d.Background
	if s.Sandbox == "" && rt.CapabilityMode.Value == agents.CapabilityReadOnly {
		// What must not change files is held to it by the kernel as well.
		s.Sandbox = "read-only"
		spec.Origins["sandbox"] = "capability mode " + string(agents.CapabilityReadOnly)
	}
	limit(&s.MaxRuntimeMS, d.Limits.MaxRuntime.Milliseconds())
	limit(&s.IdleTimeoutMS, d.Limits.IdleTimeout.Milliseconds())
	limit(&s.MaxMemoryBytes, d.Limits.MaxMemory)
	if len(d.Env) > 0 {
		env := maps.Clone(d.Env)
		maps.Copy(env, s.Env)
		s.Env = env
	}
	return a.choose(s, d, spec)
}

// Doubts says which of the types that a request allows its subagent to spawn are not
// there now. They may be there later, so that is no error.
func (a Agents) Doubts(s events.Spawn) []string {
	var doubts []string
	var defined *agents.Set
	for _, name := range s.MaySpawn {
		if name == events.AnyType || strings.EqualFold(name, TypeCommand) {
			continue
		}
		if defined == nil {
			places, err := a.Places(cmp.Or(s.Cwd, s.Workspace))
			if err != nil {
				return nil // the spawn itself says so
			}
			defined = agents.Load(places)
		}
		if _, err := defined.Find(name); err != nil {
			doubts = append(doubts, "may_spawn: "+err.Error())
		}
	}
	return doubts
}

// limit takes a bound of the definition where the request names none.
func limit(to **int64, bound int64) {
	if *to == nil && bound > 0 {
		*to = &bound
	}
}

// choose decides what runs it.
func (a Agents) choose(s events.Spawn, d *agents.Definition, spec *events.AgentSpec) (events.Spawn, *events.AgentSpec, *events.Error) {
	switch {
	case d.Runner == events.RunnerCommand && d.Command == nil:
		return s, nil, events.Errorf(events.CodeForbidden, events.LayerPermission,
			"spawn: the command of the agent type %s is not run: its project is not trusted", d.Name).WithRemedy("look at %s, then: hayward trust", d.Source)
	case d.Runner == events.RunnerCommand && len(s.Command) > 0:
		return s, nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: the agent type %s has a command of its own", d.Name)
	case d.Runner == events.RunnerCommand:
		s.Command, spec.Runner = d.Command, events.RunnerCommand
		return s, spec, nil
	}
	of := adapter.Of(s.Command)
	switch {
	case len(s.Command) > 0 && of == "":
		return s, nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: %s is not an agent that can run the type %s", s.Command[0], d.Name).
			WithRemedy("leave the command out, or name claude or codex")
	case of != "" && d.Runner != "" && of != d.Runner:
		return s, nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: the agent type %s is run by %s, not by %s", d.Name, d.Runner, of)
	case of != "":
		spec.Runner = of
	case d.Runner != "":
		spec.Runner = d.Runner
	default:
		spec.Runner = a.Runner
	}
	if len(s.Command) == 0 {
		s.Command = []string{spec.Runner}
	}
	return s, spec, nil
}

// companions finds the persona and the role of a spawn.
func companions(p agents.Places, typ, personaName string) (*agents.Persona, *agents.Role, *events.Error) {
	var persona *agents.Persona
	if personaName != "" {
		var faults []agents.Fault
		if persona, faults = agents.FindPersona(p, personaName); persona == nil {
			return nil, nil, faulty("persona "+personaName, faults)
		}
	}
	for _, name := range []string{typ, personaName} {
		if name == "" {
			continue
		}
		role, faults := agents.FindRole(p, name)
		if role != nil {
			return persona, role, nil
		}
		if e := faulty("role "+name, faults); e != nil {
			return nil, nil, e
		}
	}
	return persona, nil, nil
}

// faulty is the first error among faults, or nil.
func faulty(what string, faults []agents.Fault) *events.Error {
	for _, f := range faults {
		if f.Severity == agents.SeverityError {
			return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: %s: %w", what, errors.New(f.String()))
		}
	}
	return nil
}

// specOf is a definition with what was resolved.
func specOf(d *agents.Definition, rt agents.Runtime) (*events.AgentSpec, *events.Error) {
	spec := &events.AgentSpec{
		Definition: d.Source.String(), Persona: rt.Persona, Role: rt.Role,
		SystemPrompt: rt.Prompt, Instructions: rt.Instructions, InitialPrompt: d.InitialPrompt,
		Model: rt.Model.Value, Effort: rt.Effort.Value,
		CapabilityMode: string(rt.CapabilityMode.Value), PermissionMode: string(rt.PermissionMode.Value), MaxTurns: rt.MaxTurns.Value,
		Tools: d.Tools, DisallowedTools: d.DisallowedTools, Spawns: spawnsOf(d),
		Origins: map[string]string{
			"model": rt.Model.From, "effort": rt.Effort.From, "capability_mode": rt.CapabilityMode.From,
			"permission_mode": rt.PermissionMode.From, "max_turns": rt.MaxTurns.From, "isolation": rt.Isolation.From, "sandbox": rt.Sandbox.From,
		},
	}
	for name, text := range map[string]string{"prompt": spec.SystemPrompt, "instructions": spec.Instructions, "initial_prompt": spec.InitialPrompt} {
		if len(text) > events.MaxPrompt {
			return nil, events.Errorf(events.CodeTooLarge, events.LayerGate, "spawn: the %s of the agent type %s has %d bytes, the limit is %d", name, d.Name, len(text), events.MaxPrompt)
		}
	}
	for _, server := range d.MCPServers {
		m := events.AgentMCPServer{Name: server.Name}
		if server.Config != nil {
			b, err := events.MarshalRecord(server.Config)
			if err != nil {
				return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: MCP server %s of the agent type %s: %w", server.Name, d.Name, err)
			}
			m.Config = b
		}
		spec.MCPServers = append(spec.MCPServers, m)
	}
	return spec, rehash(spec)
}

// spawnsOf is what a definition lets its subagents spawn. An open list does not mean
// the type itself: that has to be named.
func spawnsOf(d *agents.Definition) *events.Spawns {
	s := d.Spawns()
	switch {
	case s.Blocked, d.Runner == events.RunnerCommand && d.Tools == nil:
		return nil
	case s.Any:
		return &events.Spawns{Any: true, Except: append(slices.Clone(s.Except), d.Name)}
	}
	return &events.Spawns{Types: s.Types}
}

// task is what the agent is told: the persona's instructions, the definition's
// first prompt, the prompt of the spawn.
func task(spec *events.AgentSpec, prompt string, resumed bool) string {
	if resumed { // the rest was said before
		return prompt
	}
	parts := []string{}
	for _, p := range []string{spec.Instructions, spec.InitialPrompt, prompt} {
		if strings.TrimSpace(p) != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "\n\n")
}
