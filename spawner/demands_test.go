package spawner

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
)

func TestDemands(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	for name, c := range map[string]struct {
		spawn events.Spawn
		spec  events.AgentSpec
		says  string
	}{
		"nothing":              {spec: events.AgentSpec{Runner: events.RunnerCommand}},
		"all of claude":        {events.Spawn{OutputSchema: schema, RequireNoDenials: true}, events.AgentSpec{Runner: events.AgentClaude, Hooks: schema}, ""},
		"schema of codex":      {events.Spawn{OutputSchema: schema}, events.AgentSpec{Runner: events.AgentCodex}, ""},
		"hooks of codex":       {spec: events.AgentSpec{Runner: events.AgentCodex, Hooks: schema}, says: "has hooks, which the runner codex does not have"},
		"hooks of a command":   {spec: events.AgentSpec{Runner: events.RunnerCommand, Hooks: schema}, says: "has hooks"},
		"skills of a command":  {spec: events.AgentSpec{Runner: events.RunnerCommand, Skills: []events.AgentSkill{{Name: "x"}}}, says: "has skills"},
		"schema of a command":  {events.Spawn{OutputSchema: schema}, events.AgentSpec{Runner: events.RunnerCommand}, "has output_schema"},
		"denials of a command": {events.Spawn{RequireNoDenials: true}, events.AgentSpec{Runner: events.RunnerCommand}, "has require_no_denials"},
		"schema that is none":  {spec: events.AgentSpec{Runner: events.AgentClaude, OutputSchema: json.RawMessage(`{"type":7}`)}, says: "no JSON Schema"},
	} {
		spec := c.spec
		err := demand(c.spawn, &spec)
		if c.says != "" {
			require.NotNil(t, err, name)
			require.Contains(t, err.Error(), c.says, name)
			continue
		}
		require.Nil(t, err, name)
		require.Equal(t, c.spawn.RequireNoDenials, spec.RequireNoDenials, name)
		require.Equal(t, c.spawn.OutputSchema, spec.OutputSchema, name)
	}
}

// The request's schema is over the type's, and its demand adds to the type's.
func TestDemandsOfTypeAndRequest(t *testing.T) {
	d := &agents.Definition{Name: "x", OutputSchema: json.RawMessage(`{"title":"type"}`), RequireNoDenials: true, Source: agents.Source{Path: "/x.md"}}
	spec := &events.AgentSpec{Runner: events.AgentClaude, Definition: "/x.md"}
	require.Nil(t, complete(spec, d, agents.Places{}))
	require.Nil(t, demand(events.Spawn{}, spec))
	require.JSONEq(t, `{"title":"type"}`, string(spec.OutputSchema))
	require.True(t, spec.RequireNoDenials)
	hash := spec.Hash
	require.NotEmpty(t, hash)
	require.Nil(t, demand(events.Spawn{OutputSchema: json.RawMessage(`{"title":"request"}`)}, spec))
	require.JSONEq(t, `{"title":"request"}`, string(spec.OutputSchema))
	require.NotEqual(t, hash, spec.Hash, "the hash is of what counts")

	for _, bad := range []*agents.Definition{{Name: "x", Skills: []string{"nowhere"}}, {Name: "x", Hooks: "all"}} {
		err := complete(&events.AgentSpec{}, bad, agents.Places{Home: t.TempDir()})
		require.NotNil(t, err)
		require.Equal(t, events.CodeInvalidRequest, err.Code)
	}
}
