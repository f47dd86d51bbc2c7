package spawner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/outputschema"
)

func TestStructure(t *testing.T) {
	for name, c := range map[string]struct {
		value  string
		err    error
		status events.Status
		says   string
	}{
		"it fits":      {value: `{"a":1}`, status: events.StatusCompleted},
		"it is long":   {value: `"` + strings.Repeat("x", events.MaxStructured) + `"`, status: events.StatusCompleted},
		"it does not":  {err: &outputschema.MismatchError{Text: "no a"}, status: events.StatusFailed, says: "does not meet output_schema: no a"},
		"nobody knows": {err: errors.New("too slow"), status: events.StatusFailed, says: "could not be compared with output_schema: too slow"},
	} {
		ch := &child{s: &Spawner{ctx: t.Context(), cfg: Config{Validate: func(_ context.Context, schema, result []byte) ([]byte, error) {
			require.Equal(t, "schema", string(schema))
			require.Equal(t, "answer", string(result))
			return []byte(c.value), c.err
		}}}}
		ch.spec.Agent = &events.AgentSpec{OutputSchema: json.RawMessage("schema")}
		end := events.End{Status: events.StatusCompleted, Agent: &events.AgentResult{}}
		ch.structure(&end, &events.Report{Answer: "answer"})
		require.Equal(t, c.status, end.Status, name)
		if c.says != "" {
			require.Equal(t, events.CodeOutputMismatch, end.Error.Code, name)
			require.Contains(t, end.Error.Message, c.says, name)
			require.Equal(t, events.ReasonExit, end.Reason)
			continue
		}
		require.Nil(t, end.Error, name)
		long := len(c.value) > events.MaxStructured
		require.Equal(t, long, end.Agent.Structured == nil, name)
		require.Equal(t, long, len(end.Agent.Warnings) == 1, name)
	}

	// A failure stays the failure that it is.
	ch := &child{}
	ch.spec.Agent = &events.AgentSpec{OutputSchema: json.RawMessage("schema")}
	end := events.End{Status: events.StatusFailed, Agent: &events.AgentResult{}}
	ch.structure(&end, &events.Report{})
	require.Nil(t, end.Error)
}
