package spawner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
)

// What a subagent asks for is bounded before and after its type is looked at.
func TestAsking(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	a := Asking{
		Spec: events.Spec{
			ID: events.NewID(), Request: events.Spawn{ParentSessionID: "s", MaxRuntimeMS: ms(1000), MaxMemoryBytes: ms(0)},
			Agent: &events.AgentSpec{
				Runner: events.AgentClaude, Model: "opus", CapabilityMode: "execute",
				DisallowedTools: []string{"WebFetch", "Agent(x)"},
			},
		},
		Inheritance: Inheritance{Cwd: "/w/sub", Workspace: "/w", Home: "/home/u", Profile: "mine", Base: "strict", Confined: true},
	}
	s, err := a.Before(events.Spawn{ParentSessionID: "other", Env: map[string]string{"HOME": "/w/evil"}, MaxRuntimeMS: ms(5000), MaxMemoryBytes: ms(7)})
	require.Nil(t, err)
	require.Equal(t, "s", s.ParentSessionID)
	require.Equal(t, "/w/sub", s.Cwd)
	require.Equal(t, "/w", s.Workspace)
	require.Equal(t, "/home/u", s.Env["HOME"])
	require.EqualValues(t, 1000, *s.MaxRuntimeMS)
	require.EqualValues(t, 7, *s.MaxMemoryBytes)
	s, err = a.Before(events.Spawn{Cwd: "/else", MaxRuntimeMS: ms(0)})
	require.Nil(t, err)
	require.Empty(t, s.Workspace)
	require.EqualValues(t, 1000, *s.MaxRuntimeMS, "0 is no bound, and so wider")
	for _, bad := range []events.Spawn{{PromptFile: "/etc/shadow"}, {ResumeFrom: "x"}, {Stdin: events.StdinStream}} {
		_, err = a.Before(bad)
		require.NotNil(t, err)
		require.Equal(t, events.CodeForbidden, err.Code)
	}

	agent := &events.AgentSpec{Runner: events.AgentClaude, CapabilityMode: "all", DisallowedTools: []string{"Bash"}, Hash: "old"}
	s, narrowed, err := a.After(events.Spawn{}, agent)
	require.Nil(t, err)
	require.Equal(t, "strict", s.Sandbox)
	require.Equal(t, "execute", narrowed.CapabilityMode)
	require.Equal(t, "opus", narrowed.Model)
	require.Equal(t, []string{"Bash", "WebFetch"}, narrowed.DisallowedTools)
	require.Equal(t, "spawner "+a.Spec.ID, narrowed.Origins["capability_mode"])
	require.NotEqual(t, "old", narrowed.Hash)
	require.Equal(t, []string{"Bash"}, agent.DisallowedTools, "the definition is as it was")
	_, narrowed, err = a.After(events.Spawn{}, &events.AgentSpec{Runner: events.AgentCodex, CapabilityMode: "read-write"})
	require.Nil(t, err)
	require.Equal(t, "read-only", narrowed.CapabilityMode)
	require.Empty(t, narrowed.Model, "a model of another agent's")

	_, _, err = a.After(events.Spawn{}, nil)
	require.Nil(t, err)

	// Who is denied commands has nobody run them, and a command in between widens
	// nothing.
	a.Spec.Agent.DisallowedTools = []string{"Bash"}
	_, _, err = a.After(events.Spawn{}, nil)
	require.Equal(t, events.CodeSpawnNotAllowed, err.Code)
	a.Spec.Agent.DisallowedTools = []string{"Bash(rm *)"}
	_, _, err = a.After(events.Spawn{}, nil)
	require.Nil(t, err)
	between := a
	between.Spec.Agent, between.Above = nil, []*events.AgentSpec{
		{Runner: events.AgentClaude, DisallowedTools: []string{"WebSearch"}}, {Runner: events.AgentClaude, CapabilityMode: "read-write"},
	}
	_, narrowed, err = between.After(events.Spawn{}, agent)
	require.Nil(t, err)
	require.Equal(t, []string{"Bash", "WebSearch"}, narrowed.DisallowedTools)
	require.Equal(t, "read-write", narrowed.CapabilityMode)
	_, _, err = between.After(events.Spawn{}, nil)
	require.Equal(t, events.CodeSpawnNotAllowed, err.Code)

	a.Spec.Agent.CapabilityMode = "read-only"
	_, _, err = a.After(events.Spawn{}, nil)
	require.Equal(t, events.CodeSpawnNotAllowed, err.Code)
	_, _, err = a.After(events.Spawn{Sandbox: "mine"}, agent)
	require.Equal(t, events.CodeUnsupported, err.Code)
	_, _, err = a.After(events.Spawn{Isolation: events.IsolationWorktree}, agent)
	require.Equal(t, events.CodeUnsupported, err.Code)
}

// A subagent brings no types of its own.
func TestAskingTypes(t *testing.T) {
	var asked []string
	of := Agents{Places: func(dir string) (agents.Places, error) {
		asked = append(asked, dir)
		return agents.Places{Dir: dir, Project: "/p", Config: "/c", Trusted: dir == "/trusted"}, nil
	}}
	for _, c := range []struct {
		in      Inheritance
		project string
	}{
		{Inheritance{Definitions: "/p/x", Confined: true}, ""},
		{Inheritance{Definitions: "/trusted", Confined: true}, "/p"},
		{Inheritance{Definitions: "/p/x"}, "/p"},
	} {
		p, err := Asking{Inheritance: c.in}.Types(of).Places("/w/mine")
		require.NoError(t, err)
		require.Equal(t, c.project, p.Project)
		require.Equal(t, "/c", p.Config)
	}
	require.Equal(t, []string{"/p/x", "/trusted", "/p/x"}, asked)
}

func TestSpawns(t *testing.T) {
	defined := func(d agents.Definition) *events.AgentSpec {
		return &events.AgentSpec{Definition: "file", Spawns: spawnsOf(&d)}
	}
	for _, c := range []struct {
		name  string
		may   []string
		agent *events.AgentSpec
		want  string
	}{
		{"a command", nil, nil, ""},
		{"a command that is allowed", []string{"Explore", "command"}, nil, "explore,command"},
		{"any", []string{"*"}, nil, "*"},
		{"a recognized agent", nil, &events.AgentSpec{Runner: events.AgentClaude}, ""},
		{"an open definition", nil, defined(agents.Definition{Name: "lead"}), "*,-lead"},
		{"narrowed", []string{"lead", "worker"}, defined(agents.Definition{Name: "lead"}), "worker"},
		{"named", []string{"*"}, defined(agents.Definition{Name: "lead", Tools: []string{"Read", "Agent(lead, worker)"}}), "lead,worker"},
		{"without the tool", []string{"*"}, defined(agents.Definition{Name: "lead", Tools: []string{"Read"}}), ""},
		{"denied", []string{"*"}, defined(agents.Definition{Name: "lead", DisallowedTools: []string{"Agent"}}), ""},
		{"a type that is a command", []string{"*"}, defined(agents.Definition{Name: "make", Runner: "command"}), ""},
		{"one that says so", nil, defined(agents.Definition{Name: "make", Runner: "command", Tools: []string{"Agent(lead)"}}), "lead"},
	} {
		got := Spawns(events.Spawn{MaySpawn: c.may}, c.agent)
		require.Equal(t, c.want, got.String(), c.name)
		require.Equal(t, got, events.ParseSpawns(got.String()), c.name)
	}
}
