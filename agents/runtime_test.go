package agents

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var capabilities = []CapabilityMode{"", CapabilityReadOnly, CapabilityReadWrite, CapabilityExecute, CapabilityAll}

// rights says what a mode allows beside reading.
func rights(m CapabilityMode) (write, execute bool) {
	switch m {
	case CapabilityReadOnly:
		return false, false
	case CapabilityReadWrite:
		return true, false
	case CapabilityExecute:
		return false, true
	}
	return true, true
}

func TestIntersectionAllowsWhatAllAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom(capabilities)
		d := &Definition{Name: "x", CapabilityMode: mode.Draw(t, "definition")}
		role := &Role{Name: "x", Defaults: Defaults{CapabilityMode: mode.Draw(t, "role")}}
		persona := &Persona{Name: "p", Defaults: Defaults{CapabilityMode: mode.Draw(t, "persona")}}
		r := Request{CapabilityMode: mode.Draw(t, "request")}
		got := Resolve(d, persona, role, r).CapabilityMode
		write, execute := true, true
		for _, m := range []CapabilityMode{d.CapabilityMode, role.CapabilityMode, persona.CapabilityMode, r.CapabilityMode} {
			w, x := rights(m)
			write, execute = write && w, execute && x
		}
		gotWrite, gotExecute := rights(got.Value)
		require.Equal(t, [2]bool{write, execute}, [2]bool{gotWrite, gotExecute})
		require.Equal(t, got.From == "default", got.Value == CapabilityAll)
	})
}

func TestResolve(t *testing.T) {
	no := false
	d := &Definition{Name: "x", Prompt: "Of the type.", Model: "opus", Effort: "low", Isolation: "worktree", Sandbox: "strict", Background: true, MaxTurns: 5}
	bare := Resolve(d, nil, nil, Request{DefaultSandbox: "workspace", DefaultIsolation: "none"})
	require.Equal(t, Value[string]{"opus", "definition"}, bare.Model)
	require.Equal(t, Value[string]{"worktree", "definition"}, bare.Isolation)
	require.Equal(t, Value[string]{"strict", "definition"}, bare.Sandbox)
	require.Equal(t, Value[bool]{true, "definition"}, bare.Background)

	role := &Role{Name: "x", Prompt: "Of the role.", Defaults: Defaults{Model: "haiku"}}
	persona := &Persona{Name: "p", Instructions: "So.", Defaults: Defaults{Model: "sonnet", Effort: "high"}}
	all := Resolve(d, persona, role, Request{Isolation: "none", Background: &no})
	require.Equal(t, Value[string]{"haiku", "role x"}, all.Model)
	require.Equal(t, Value[string]{"high", "persona p"}, all.Effort)
	require.Equal(t, Value[string]{"none", "request"}, all.Isolation, "what is asked for counts")
	require.Equal(t, Value[bool]{false, "request"}, all.Background)
	require.Equal(t, "Of the type.\n\nOf the role.", all.Prompt)
	require.Equal(t, "So.", all.Instructions)

	open := Resolve(&Definition{Name: "y"}, nil, nil, Request{DefaultSandbox: "workspace", DefaultIsolation: "none"})
	require.Equal(t, Value[string]{"workspace", "default"}, open.Sandbox)
	require.Equal(t, Value[string]{"none", "default"}, open.Isolation)
	require.Equal(t, Value[string]{"", "default"}, open.Model)
}

func TestPersona(t *testing.T) {
	tr := newTree(t)
	path := tr.write(tr.Config, "personas/critic.toml", `description = "Doubts"
instructions = "Doubt."
instructions_file = "critic.txt"
model = "opus"
default_isolation = "worktree"
colour = "blue"
[[inputs]]
name = "file"
io_type = "file"
required = true
`)
	_, faults := FindPersona(tr.Places, "critic")
	require.Equal(t, path+":3: instructions_file: critic.txt: no such file or directory", firstError(faults).String())

	tr.write(tr.Config, "personas/critic.txt", "Ask why.\n")
	p, faults := FindPersona(tr.Places, "critic")
	require.NotNil(t, p)
	require.Equal(t, "Doubt.\n\nAsk why.", p.Instructions)
	require.Equal(t, Defaults{Model: "opus", Isolation: "worktree"}, p.Defaults)
	require.Equal(t, []Parameter{{Name: "file", Type: "file", Required: true}}, p.Inputs)
	require.Len(t, faults, 1)
	require.Equal(t, path+":6: colour: is not known and not used", faults[0].String())

	_, faults = FindPersona(tr.Places, "nobody")
	require.Equal(t, "there is no persona nobody", firstError(faults).Message)
	_, faults = FindPersona(tr.Places, "../critic")
	require.NotNil(t, firstError(faults))

	// A project's persona counts once it is trusted, and reads nothing outside it.
	mine := tr.write(tr.Project, ".hayward/personas/critic.toml", "instructions_file = '../../../home/secret'\n")
	tr.write(tr.Home, "secret", "A secret.")
	p, faults = FindPersona(tr.Places, "critic")
	require.Equal(t, ScopeUser, p.Source.Scope)
	require.Equal(t, mine, faults[0].File)
	tr.Trusted = true
	p, faults = FindPersona(tr.Places, "critic")
	require.Nil(t, p)
	require.Contains(t, firstError(faults).String(), mine+":1: instructions_file: ")
}

func TestRole(t *testing.T) {
	tr := newTree(t)
	role, faults := FindRole(tr.Places, "explore")
	require.Nil(t, role)
	require.Nil(t, faults)
	tr.write(tr.Home, ".grok/roles/explore.toml", "prompt = 'Read only.'\ncapability_mode = 'readonly'\nreasoning_effort = 'high'\n")
	role, faults = FindRole(tr.Places, "explore")
	require.Empty(t, faults)
	require.Equal(t, Defaults{CapabilityMode: CapabilityReadOnly, Effort: "high"}, role.Defaults)
	require.Equal(t, "Read only.", role.Prompt)
	tr.write(tr.Config, "roles/explore.toml", "capability_mode = 'everything'\n")
	role, faults = FindRole(tr.Places, "explore")
	require.Nil(t, role, "a mistyped mode must not open what the role bounds")
	require.Contains(t, firstError(faults).String(), `:1: capability_mode: "everything" is none of`)
}
