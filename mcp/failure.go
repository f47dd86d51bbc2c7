package mcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hayward-dev/hayward/events"
)

// remedies are what a model can do about an error, where the coordinator's own
// remedy is for people at a terminal.
var remedies = map[events.Code]string{
	events.CodeUnknownID:       "list_subagents with include_finished shows the ids of this session",
	events.CodeAmbiguousID:     "give the whole id",
	events.CodeDuplicateName:   "choose another name, or query the subagent that has it",
	events.CodeMissingCommand:  "give command, the program and its arguments as a list",
	events.CodePromptCancelled: "this turn was cancelled: do not spawn for it again",
	events.CodeBusy:            "try again in a few seconds",
	events.CodeLimit:           "wait until one has ended (query_subagents with mode any), then try again",
	events.CodeShuttingDown:    "try again in a few seconds",
	events.CodeDepthExceeded:   "do the work yourself: subagents may not be nested deeper",
	events.CodeSpawnNotAllowed: "name a type that the description of spawn_subagent lists, or do the work yourself",
	events.CodeUnreachable:     "tell the user; what was accepted is kept and goes on",
	events.CodeTimeout:         "call list_subagents to see what there is",
	events.CodeForbidden:       "tell the user",
	events.CodeUnsupported:     "ask for it without that",
}

// failure is an error as the answer of a tool.
func failure(err error, t tool) *sdk.CallToolResult {
	e := *events.AsError(err)
	switch remedy, ok := remedies[e.Code]; {
	case e.Code == events.CodeInvalidRequest && e.Remedy == "":
		e.Remedy = "see the input schema of " + t.name
	case ok && (e.Remedy == "" || strings.Contains(e.Remedy, "hayward ") && !strings.Contains(e.Remedy, "hayward mcp")):
		e.Remedy = remedy
	}
	if e.Remedy == "" {
		e.Remedy = "correct what it names and call again, or tell the user"
	}
	e.Message = middle(clean(e.Message), maxErrorText)
	details := make(map[string]string, len(e.Details))
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", e.Code, e.Message)
	for _, name := range slices.Sorted(maps.Keys(e.Details)) {
		details[name] = middle(clean(e.Details[name]), maxErrorText)
		fmt.Fprintf(&text, "\n%s: %s", name, details[name])
	}
	e.Details = details
	if e.Remedy != "" {
		fmt.Fprintf(&text, "\nWhat to do: %s", e.Remedy)
	}
	a := answer{body: body{Error: &e}}
	r, err := a.result()
	if err != nil { // an error cannot fail to be written
		r = &sdk.CallToolResult{}
	}
	r.Content = []sdk.Content{&sdk.TextContent{Text: text.String()}}
	r.IsError = true
	return r
}
