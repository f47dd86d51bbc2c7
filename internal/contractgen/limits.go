package main

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/hayward-dev/hayward/events"
)

// limits are the bounds of requests that a schema can express, by field. They
// are no tighter than validation: a schema counts characters, not bytes.
var limits = map[string]func(*jsonschema.Schema){
	"Spawn.ParentSessionID":       length(1, 128),
	"Spawn.ParentPromptID":        length(0, 128),
	"Spawn.Name":                  length(0, 64),
	"Spawn.Prompt":                length(0, events.MaxPrompt),
	"Spawn.PromptFile":            length(0, events.MaxPathBytes),
	"Spawn.Description":           length(0, events.MaxDescription),
	"Spawn.SubagentType":          length(0, events.MaxWord),
	"Spawn.Sandbox":               length(0, events.MaxWord),
	"Spawn.Model":                 length(0, events.MaxWord),
	"Spawn.Persona":               length(0, events.MaxWord),
	"Spawn.CapabilityMode":        length(0, events.MaxWord),
	"Spawn.Cwd":                   length(0, events.MaxPathBytes),
	"Spawn.Workspace":             length(0, events.MaxPathBytes),
	"Spawn.Isolation":             values(events.IsolationNone, events.IsolationWorktree, "None", "Worktree", "work_tree", "work-tree"),
	"Spawn.Command":               items(0, events.MaxArgv),
	"Spawn.AddDirs":               items(0, events.MaxAddDirs),
	"Spawn.Env":                   entries(events.MaxEnv),
	"Spawn.Labels":                entries(events.MaxLabels),
	"Spawn.Inputs":                entries(events.MaxInputs),
	"Spawn.AwaitBudgetMS":         between(0, events.MaxDurationMS),
	"Spawn.MaxRuntimeMS":          between(0, events.MaxDurationMS),
	"Spawn.IdleTimeoutMS":         between(0, events.MaxDurationMS),
	"Spawn.MaxMemoryBytes":        between(0, events.MaxMemoryBytes),
	"Query.ParentSessionID":       length(0, 128),
	"Query.IDs":                   items(1, events.MaxQueryIDs),
	"Query.Count":                 between(0, events.MaxQueryIDs),
	"Query.TimeoutMS":             between(0, events.MaxQueryMS),
	"Cancel.ParentSessionID":      length(0, 128),
	"Cancel.Actor":                length(0, events.MaxActor),
	"Cancel.TimeoutMS":            between(0, events.MaxQueryMS),
	"CancelTarget.IDs":            items(0, events.MaxQueryIDs),
	"CancelTarget.ParentPromptID": length(0, 128),
	"ListActive.ParentSessionID":  length(0, 128),
	"ListActive.SinceMS":          between(0, events.MaxDurationMS),
	"ListActive.Max":              between(0, events.MaxPage),
	"Completions.ParentSessionID": length(1, 128),
	"Completions.SuppressIDs":     items(0, events.MaxAckIDs),
	"Completions.AckIDs":          items(0, events.MaxAckIDs),
	"Completions.LeaseMS":         between(0, events.MaxLeaseMS),
	"Completions.Max":             between(0, events.MaxPage),
	"Outstanding.ParentSessionID": length(1, 128),
	"Outstanding.ParentPromptID":  length(1, 128),
}

func limit(s *jsonschema.Schema, field string) {
	if set := limits[field]; set != nil {
		set(s)
	}
}

func length(least, most int) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.MinLength, s.MaxLength = positive(least), &most }
}

func items(least, most int) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.MinItems, s.MaxItems = positive(least), &most }
}

func values(names ...any) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Enum = names }
}

func entries(most int) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.MaxProperties = &most }
}

func between(least, most float64) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Minimum, s.Maximum = &least, &most }
}

// positive returns nil for 0, which JSON Schema does not need to be told.
func positive(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}
