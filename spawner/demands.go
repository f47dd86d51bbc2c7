package spawner

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/outputschema"
)

// complete adds to a type's spec what is read from more than its definition.
func complete(spec *events.AgentSpec, d *agents.Definition, places agents.Places) *events.Error {
	refuse := func(err error) *events.Error {
		return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: the agent type %s: %w", d.Name, err).
			WithRemedy("see %s", d.Source)
	}
	hooks, err := d.HookSettings()
	if err != nil {
		return refuse(err)
	}
	spec.Hooks, spec.OutputSchema, spec.RequireNoDenials = hooks, d.OutputSchema, d.RequireNoDenials
	for _, name := range d.Skills {
		skill, err := agents.FindSkill(places, name)
		if err != nil {
			return refuse(err)
		}
		spec.Skills = append(spec.Skills, events.AgentSkill{Name: name, Dir: skill.Dir, Hash: skill.Hash})
	}
	return nil
}

// demand puts what the request demands of the result over what the type does, and
// refuses what its runner cannot do.
func demand(s events.Spawn, spec *events.AgentSpec) *events.Error {
	if len(s.OutputSchema) > 0 {
		spec.OutputSchema = s.OutputSchema
	}
	spec.RequireNoDenials = spec.RequireNoDenials || s.RequireNoDenials
	unsupported := func(what, remedy string) *events.Error {
		return events.Errorf(events.CodeUnsupported, events.LayerGate, "spawn: the agent type %s has %s, which the runner %s does not have", s.SubagentType, what, spec.Runner).
			WithRemedy("%s", remedy)
	}
	switch {
	case spec.Hooks != nil && spec.Runner != events.AgentClaude:
		return unsupported("hooks", "run it with claude, or leave the hooks out")
	case spec.Skills != nil && spec.Runner == events.RunnerCommand:
		return unsupported("skills", "leave them out")
	case spec.OutputSchema != nil && spec.Runner == events.RunnerCommand:
		return unsupported("output_schema", "run it with claude or codex")
	case spec.RequireNoDenials && spec.Runner == events.RunnerCommand:
		return unsupported("require_no_denials", "run it with claude")
	}
	if spec.OutputSchema != nil {
		if _, err := outputschema.Compile(spec.OutputSchema); err != nil {
			return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "spawn: output_schema: %w", err)
		}
	}
	return seal(spec)
}

// seal sets the hash of a defined type's settings.
func seal(spec *events.AgentSpec) *events.Error {
	if spec.Definition == "" {
		return nil
	}
	spec.Hash = ""
	b, err := events.MarshalRecord(spec)
	if err != nil {
		return events.Errorf(events.CodeInternal, events.LayerCoordinator, "spawn: %w", err)
	}
	sum := sha256.Sum256(b)
	spec.Hash = hex.EncodeToString(sum[:])
	return nil
}
