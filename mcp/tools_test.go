package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/events"
)

// What a client reads about the tools is what they take.
func TestToolsSayWhatTheyTake(t *testing.T) {
	takes := map[string]any{
		"cancel_subagents": cancelArguments{}, "list_subagents": listArguments{}, "outstanding": outstandingArguments{},
		"query_subagents": queryArguments{}, "read_completions": completionsArguments{}, "spawn_subagent": spawnArguments{},
	}
	b := newBench(t, "", func(o *Options) {
		for i := range 60 {
			o.Types = append(o.Types, agents.Definition{Name: fmt.Sprintf("type-%d", i), Description: strings.Repeat("long ", 100), Model: "haiku", MaxTurns: 7})
		}
	})
	listed, err := b.cs.ListTools(b.ctx, nil)
	require.NoError(t, err)
	var names []string
	for i, tool := range listed.Tools {
		names = append(names, tool.Name)
		require.LessOrEqual(t, len(tool.Description), maxDescription, "clients cut it")
		require.NotEmpty(t, tool.Title)
		require.NotNil(t, tool.Annotations)

		var in, out jsonschema.Schema
		decode(t, tool.InputSchema, &in)
		decode(t, tool.OutputSchema, &out)
		_, err := out.Resolve(nil)
		require.NoError(t, err)
		require.Contains(t, out.Properties, "error")
		require.Empty(t, out.Required, "an error is an answer too")
		for _, member := range tools[i].output {
			require.Contains(t, out.Properties, member, tool.Name)
		}
		resolved, err := in.Resolve(nil)
		require.NoError(t, err)
		require.Error(t, resolved.Validate(map[string]any{"ids": []any{"x"}, "nonsense": 1.0}))

		var members []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(takes[tool.Name])) {
			members = append(members, f.Tag.Get("json"))
			require.Contains(t, in.Properties, members[len(members)-1], tool.Name)
			require.NotEmpty(t, in.Properties[members[len(members)-1]].Description)
		}
		require.Len(t, in.Properties, len(members), tool.Name)
	}
	require.Equal(t, []string{"cancel_subagents", "list_subagents", "outstanding", "query_subagents", "read_completions", "spawn_subagent"}, names)
	require.True(t, slices.IsSortedFunc(tools, func(a, b tool) int { return strings.Compare(a.name, b.name) }), "the order of tools/list")
	require.True(t, listed.Tools[1].Annotations.ReadOnlyHint)
	require.True(t, *listed.Tools[0].Annotations.DestructiveHint)

	spawn := listed.Tools[5].Description
	for _, said := range []string{"type-0: long", "Costs model tokens, model haiku, at most 7 turns", "and 5", "more", "32 at once in this session", "each runs at most 4h0m0s", "may be named: workspace, strict"} {
		require.Contains(t, spawn, said)
	}
	require.LessOrEqual(t, len(b.cs.InitializeResult().Instructions), maxDescription)
}

func decode(t *testing.T, from any, to *jsonschema.Schema) {
	t.Helper()
	raw, err := json.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, to))
}

// A refusal names its code, what is wrong and what to do, and nothing happened.
func TestRefusals(t *testing.T) {
	b := newBench(t, "", nil)
	for _, c := range []struct {
		tool, arguments string
		code            events.Code
		says            string
	}{
		{"spawn_subagent", `{}`, events.CodeMissingCommand, "give command"},
		{"spawn_subagent", `{"command":["true"],"parent_session_id":"other"}`, events.CodeInvalidRequest, "parent_session_id"},
		{"spawn_subagent", `{"command":["true"],"Cwd":"."}`, events.CodeInvalidRequest, "Cwd"},
		{"spawn_subagent", `{"command":"true"}`, events.CodeInvalidRequest, "command"},
		{"spawn_subagent", `{"command":["true"],"command":["false"]}`, events.CodeInvalidRequest, "command"},
		{"spawn_subagent", `{"command":["true"],"sandbox":"off"}`, events.CodeForbidden, "--allow-sandbox"},
		{"spawn_subagent", `{"command":["true"],"cwd":"/"}`, events.CodeForbidden, "is not below"},
		{"spawn_subagent", `{"command":["true"],"cwd":"../.."}`, events.CodeForbidden, "is not below"},
		{"spawn_subagent", `{"command":["true"],"cwd":"nowhere"}`, events.CodeCwdMissing, "nowhere"},
		{"spawn_subagent", `{"command":["true"],"wait_ms":0}`, events.CodeInvalidRequest, "wait_ms"},
		{"spawn_subagent", `{"command":["true"],"wait_ms":1,"run_in_background":true}`, events.CodeInvalidRequest, "exclude"},
		{"spawn_subagent", `{"command":["true"],"env":{"LD_PRELOAD":"x"}}`, events.CodeInvalidRequest, "LD_PRELOAD"},
		{"query_subagents", `{}`, events.CodeInvalidRequest, "0 ids"},
		{"query_subagents", `{"ids":["nobody"]}`, events.CodeUnknownID, "list_subagents"},
		{"query_subagents", `{"ids":["a"],"stream":"stderr"}`, events.CodeInvalidRequest, "output_offset"},
		{"query_subagents", `{"ids":["a"],"output_offset":-1}`, events.CodeInvalidRequest, "output_offset"},
		{"query_subagents", `{"ids":["a"],"wait_ms":5,"mode":"some"}`, events.CodeInvalidRequest, "mode"},
		{"cancel_subagents", `{}`, events.CodeInvalidRequest, "exactly one"},
		{"cancel_subagents", `{"ids":["nobody"]}`, events.CodeUnknownID, "nobody"},
		{"cancel_subagents", `{"all":true,"ids":["a"]}`, events.CodeInvalidRequest, "exactly one"},
		{"list_subagents", `{"max":1000}`, events.CodeInvalidRequest, "max"},
		{"read_completions", `[]`, events.CodeInvalidRequest, "object"},
		{"read_completions", `{"max":0}`, events.CodeInvalidRequest, "max"},
	} {
		r := b.call(c.tool, json.RawMessage(c.arguments))
		require.True(t, r.error, c.arguments)
		require.Equal(t, c.code, r.Error.Code, "%s: %s", c.arguments, r.text)
		require.NotEmpty(t, r.Error.Remedy, c.arguments)
		require.Contains(t, r.text, string(c.code))
		require.Contains(t, r.text, "What to do: ")
		require.Contains(t, r.text, c.says)
	}
	require.Zero(t, b.coord.Spawned())
	require.False(t, b.call("list_subagents", json.RawMessage("null")).error)
	require.False(t, b.call("list_subagents", json.RawMessage(`{"after":null}`)).error)

	_, err := b.cs.CallTool(b.ctx, &sdk.CallToolParams{Name: "nonsense"})
	require.ErrorContains(t, err, "unknown tool")
}

// Every version of the protocol that the SDK has gets the same answers.
func TestDialects(t *testing.T) {
	for _, version := range sdk.SupportedProtocolVersions() {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, version, nil)
			require.Equal(t, version, b.cs.InitializeResult().ProtocolVersion)
			a := b.background("one")
			a.Exit(0)
			require.Equal(t, a.ID(), b.call("query_subagents", map[string]any{"ids": []string{"one"}}).Subagents[0].ID)
			require.Len(t, b.call("list_subagents", map[string]any{"include_finished": true}).Subagents, 1)
			require.Empty(t, b.unread())
		})
	}
}
