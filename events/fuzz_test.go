package events

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// FuzzDecodeRequest: no body panics, a refusal fits into a reply, and what is
// accepted means the same after it was sent on.
func FuzzDecodeRequest(f *testing.F) {
	for i, k := range Kinds {
		f.Add(uint8(i), []byte(minimal[k]))
	}
	for _, body := range []string{
		"", "null", "[]", `{"parent_session_id":null}`, `{"a":{"a":{"a":1}}}`,
		`{"parent_session_id":"s","output_schema":{"not":{"not":true}}}`,
		`{"parent_session_id":"s","prompt":"\ud83d\ude00\u0000"}`,
		`{"parent_session_id":"s","env":{"A":"1"},"labels":{"a":"b"},"inputs":{"x":"y"}}`,
		`{"parent_session_id":"s","max_runtime_ms":-0,"await_budget_ms":9223372036854775807}`,
		`{"ids":["a","a"],"mode":"count","count":2,"block":true}`,
	} {
		for i := range Kinds {
			f.Add(uint8(i), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		k := Kinds[int(kind)%len(Kinds)]
		e, refused := DecodeRequest(k, body)
		if refused != nil {
			require.Nil(t, e)
			require.NotEmpty(t, refused.Code)
			require.NotEmpty(t, refused.Layer)
			b, err := Marshal(refused)
			require.NoError(t, err)
			require.Less(t, len(b), 64<<10)
			return
		}
		require.Equal(t, k, e.EventKind())
		once, err := MarshalRecord(e)
		require.NoError(t, err)
		again, refused := DecodeRequest(k, once)
		require.Nil(t, refused, "%s", once)
		twice, err := MarshalRecord(again)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

// FuzzDecodeRecord: what is left of a torn file is an error, never a panic, and
// what is read can be written again.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"schema":1,"id":"x","at":"2026-01-02T03:04:05Z","exit":{"code":0}}`))
	f.Add([]byte(`{"schema":1,"id":"x","at":"2026-01-0`))
	f.Add([]byte("{\"stderr_tail\":\"\xff\xfe\"}"))
	f.Add([]byte("\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Report
		if DecodeRecord(data, &r) != nil {
			return
		}
		b, err := MarshalRecord(r)
		require.NoError(t, err)
		var back Report
		require.NoError(t, DecodeRecord(b, &back))
	})
}

// FuzzIDs: what passes as an id, a name or a scope is harmless wherever it is
// used.
func FuzzIDs(f *testing.F) {
	for _, s := range []string{"", someID, strings.ToUpper(someID), someID + ".1", "build", "a.b", "..", "a/b", "*", ">", "a b", "é", "\x00", someID + "\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ValidID(s) {
			u, err := uuid.Parse(s)
			require.NoError(t, err)
			require.Equal(t, s, u.String(), "one spelling only")
			require.True(t, ValidRef(s))
			require.False(t, ValidDedupeID(s))
		}
		if ValidDedupeID(s) {
			id, _, _ := strings.Cut(s, ".")
			require.True(t, ValidID(id))
		}
		if ValidScope(s) || ValidRef(s) {
			require.NotEmpty(t, s)
			require.LessOrEqual(t, len(s), 128)
			require.Equal(t, -1, strings.IndexAny(s, "/*> \t\r\n\\\x00\x7f$"), "%q", s)
		}
		if ValidName(s) {
			require.NotContains(t, "-._", s[:1], "no option, no dot file, no ..")
		}
	})
}

// FuzzSubjects: the id in a subject is found exactly where a child publishes.
func FuzzSubjects(f *testing.F) {
	f.Add(ChildSubject(someID, ChildItem))
	f.Add(ControlSubject(someID))
	f.Add(FeedSubject(someID, StateActive))
	f.Add("hayward.v1.child..item")
	f.Add("hayward.v1.child." + someID)
	f.Fuzz(func(t *testing.T, subject string) {
		id, ok := ChildIDOf(subject)
		if !ok {
			return
		}
		require.True(t, ValidID(id))
		prefix := strings.TrimSuffix(ChildPermission(id), ">")
		require.True(t, strings.HasPrefix(subject, prefix), "%q is not below what the child may use", subject)
	})
}
