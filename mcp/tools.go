package mcp

import (
	"encoding/json"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hayward-dev/hayward/events"
)

// tool is one of the six.
type tool struct {
	name, title string
	// about is the description; it may add what it knows of the server.
	about func(*Server) string
	hints sdk.ToolAnnotations
	// input has the arguments, required the names of those that must be there.
	input    []argument
	required []string
	// output are the members of [body] that the tool fills in, beside those of all.
	output []string
	// decode reads arguments; what it returns carries out the call.
	decode func(json.RawMessage) (func(*call) (*answer, error), *events.Error)
}

// argument is a member of a tool's input.
type argument struct {
	name   string
	schema *jsonschema.Schema
}

// arguments makes a decoder: unknown, repeated and wrongly cased members are
// errors that name them, null is absent.
func arguments[T any](do func(*call, T) (*answer, error)) func(json.RawMessage) (func(*call) (*answer, error), *events.Error) {
	return func(raw json.RawMessage) (func(*call) (*answer, error), *events.Error) {
		var args T
		if len(raw) == 0 || string(raw) == "null" {
			raw = json.RawMessage("{}")
		}
		if err := events.DecodeStrict(raw, &args); err != nil {
			return nil, err
		}
		return func(k *call) (*answer, error) { return do(k, args) }, nil
	}
}

func no() *bool  { return new(bool) }
func yes() *bool { b := true; return &b }

// tools are all tools, in the order of tools/list, which is by name.
var tools = []tool{
	{
		name: "cancel_subagents", title: "Cancel subagents", about: (*Server).aboutCancel, input: cancelInput,
		output: []string{"results", "still_running"},
		hints:  sdk.ToolAnnotations{DestructiveHint: yes(), IdempotentHint: true, OpenWorldHint: no()},
		decode: arguments((*call).cancel),
	},
	{
		name: "list_subagents", title: "List subagents", about: (*Server).aboutList, input: listInput,
		output: []string{"subagents", "still_running", "more", "after", "limits"},
		hints:  sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no()},
		decode: arguments((*call).list),
	},
	{
		name: "outstanding", title: "Outstanding subagents", about: (*Server).aboutOutstanding, input: outstandingInput,
		output: []string{"outstanding"},
		hints:  sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no()},
		decode: arguments((*call).outstanding),
	},
	{
		name: "query_subagents", title: "Query or wait for subagents", about: (*Server).aboutQuery, input: queryInput, required: []string{"ids"},
		output: []string{"subagents", "part", "still_running", "unknown"},
		hints:  sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no()},
		decode: arguments((*call).query),
	},
	{
		name: "read_completions", title: "Read what has ended", about: (*Server).aboutCompletions, input: completionsInput,
		output: []string{"subagents", "still_running", "more"},
		// What it returned counts as read later.
		hints:  sdk.ToolAnnotations{DestructiveHint: no(), OpenWorldHint: no()},
		decode: arguments((*call).completions),
	},
	{
		name: "spawn_subagent", title: "Spawn a subagent", about: (*Server).aboutSpawn, input: spawnInput,
		output: []string{"subagents", "still_running"},
		// What runs may do whatever its sandbox lets it do.
		hints:  sdk.ToolAnnotations{DestructiveHint: yes(), OpenWorldHint: yes()},
		decode: arguments((*call).spawn),
	},
}

// describe is a tool as clients see it.
func (s *Server) describe(t tool) *sdk.Tool {
	in := &jsonschema.Schema{
		Type: "object", Properties: make(map[string]*jsonschema.Schema), Required: t.required,
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, a := range t.input {
		in.Properties[a.name] = a.schema
		in.PropertyOrder = append(in.PropertyOrder, a.name)
	}
	hints := t.hints
	return &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.about(s), Annotations: &hints, InputSchema: in, OutputSchema: outputSchema(t),
	}
}

// outputSchema is that of a tool's answers. It names no member as required and
// bars none, so that answers can grow.
func outputSchema(t tool) *jsonschema.Schema {
	schema, err := jsonschema.For[body](nil)
	if err != nil {
		panic(err) // body is a type of ours; a test makes it
	}
	members := slices.Concat(t.output, []string{"next_step", "warnings", "error"})
	for name := range schema.Properties {
		if !slices.Contains(members, name) {
			delete(schema.Properties, name)
		}
	}
	open(schema)
	return schema
}

func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Properties != nil {
		s.AdditionalProperties, s.Required = nil, nil
		s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(name string) bool { return s.Properties[name] == nil })
	}
	open(s.AdditionalProperties)
	open(s.Items)
	for _, p := range s.Properties {
		open(p)
	}
}

// The kinds of arguments.

func text(about string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: about}
}

func word(about string, words ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: about, Enum: words}
}

func flag(about string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "boolean", Description: about}
}

func number(about string, least, most float64) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Description: about, Minimum: &least, Maximum: &most}
}

func list(about string, least, most int) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Description: about, Items: &jsonschema.Schema{Type: "string"}, MinItems: &least, MaxItems: &most}
}

func table(about string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Description: about, AdditionalProperties: &jsonschema.Schema{Type: "string"}}
}

func object(about string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Description: about}
}

// within refuses a number that the schema does not allow: clients need not check.
func within(name string, n *int64, least, most int64) *events.Error {
	if n == nil || *n >= least && *n <= most {
		return nil
	}
	return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "%s is %d, not between %d and %d", name, *n, least, most)
}
