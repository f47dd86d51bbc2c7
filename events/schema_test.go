package events

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func resolve(t require.TestingT, b []byte) *jsonschema.Resolved {
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(b, &s))
	r, err := s.Resolve(nil)
	require.NoError(t, err)
	return r
}

func validate(t require.TestingT, r *jsonschema.Resolved, body []byte) error {
	var v any
	require.NoError(t, json.Unmarshal(body, &v))
	return r.Validate(v)
}

func TestSchemaExists(t *testing.T) {
	for _, k := range Kinds {
		request, reply := Schema(k)
		resolve(t, request)
		resolve(t, reply)
	}
	resolve(t, ErrorSchema())
	request, reply := Schema("resume")
	require.Nil(t, request)
	require.Nil(t, reply)
}

// TestSchemaAcceptsRequests: a request that the coordinator takes is valid
// under its schema.
func TestSchemaAcceptsRequests(t *testing.T) {
	schemas := map[Kind]*jsonschema.Resolved{}
	for _, k := range Kinds {
		request, _ := Schema(k)
		schemas[k] = resolve(t, request)
		require.NoError(t, validate(t, schemas[k], []byte(minimal[k])))
	}
	rapid.Check(t, func(t *rapid.T) {
		e := genRequest().Draw(t, "request")
		body, err := Marshal(e)
		require.NoError(t, err)
		require.NoError(t, validate(t, schemas[e.EventKind()], body), "%s", body)
	})
}

// TestSchemaRefusesRequests: what a schema can tell, it tells.
func TestSchemaRefusesRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		kind Kind
		body string
	}{
		"unknown member":     {KindSpawn, `{"parent_session_id":"s","colour":1}`},
		"missing session":    {KindSpawn, `{}`},
		"wrong type":         {KindSpawn, `{"parent_session_id":1}`},
		"unknown stdin":      {KindSpawn, `{"parent_session_id":"s","stdin":"tty"}`},
		"unknown file space": {KindSpawn, `{"parent_session_id":"s","isolation":"vm"}`},
		"no ids":             {KindQuery, `{"ids":[]}`},
		"unknown mode":       {KindQuery, `{"ids":["a"],"mode":"some"}`},
		"long timeout":       {KindQuery, `{"ids":["a"],"timeout_ms":600001}`},
		"no target":          {KindCancel, `{}`},
		"unknown in target":  {KindCancel, `{"target":{"id":"a"}}`},
		"large page":         {KindListActive, `{"max":101}`},
		"negative lease":     {KindCompletions, `{"parent_session_id":"s","lease_ms":-1}`},
		"missing prompt":     {KindOutstanding, `{"parent_session_id":"s"}`},
	} {
		request, _ := Schema(tc.kind)
		require.Error(t, validate(t, resolve(t, request), []byte(tc.body)), name)
		_, refused := DecodeRequest(tc.kind, []byte(tc.body))
		require.NotNil(t, refused, "%s: the schema must not refuse what is accepted", name)
	}
}

// TestSchemaAcceptsReplies: whatever is replied is valid under the schema that
// clients were given.
func TestSchemaAcceptsReplies(t *testing.T) {
	t.Run("spawn", replies[SpawnReply](KindSpawn))
	t.Run("query", replies[QueryReply](KindQuery))
	t.Run("cancel", replies[CancelReply](KindCancel))
	t.Run("list_active", replies[ListActiveReply](KindListActive))
	t.Run("completions", replies[CompletionsReply](KindCompletions))
	t.Run("outstanding", replies[OutstandingReply](KindOutstanding))
}

func replies[T any](k Kind) func(*testing.T) {
	return func(t *testing.T) {
		_, reply := Schema(k)
		r := resolve(t, reply)
		rapid.Check(t, func(t *rapid.T) {
			body, err := MarshalRecord(genWire[T]().Draw(t, "reply"))
			require.NoError(t, err)
			require.NoError(t, validate(t, r, body), "%s", body)
		})
	}
}
