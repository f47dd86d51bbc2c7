package events

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const someID = "018f0000-0000-7000-8000-00000000000a"

// minimal holds the smallest body that each event accepts.
var minimal = map[Kind]string{
	KindSpawn:       `{"parent_session_id":"s"}`,
	KindQuery:       `{"ids":["` + someID + `"]}`,
	KindCancel:      `{"target":{"ids":["` + someID + `"]}}`,
	KindListActive:  `{}`,
	KindCompletions: `{"parent_session_id":"s"}`,
	KindOutstanding: `{"parent_session_id":"s","parent_prompt_id":"p"}`,
}

func TestDecodeRequestMinimal(t *testing.T) {
	require.Len(t, minimal, len(Kinds))
	for _, k := range Kinds {
		e, err := DecodeRequest(k, []byte(minimal[k]))
		require.Nil(t, err, "%s", k)
		require.Equal(t, k, e.EventKind())
	}
}

// TestDecodeRequestStrict: what is wrong is refused with the member named.
func TestDecodeRequestStrict(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		kind       Kind
		member     string // details["member"]
		message    string // part of the message
	}{
		{"unknown member", `{"parent_session_id":"s","colour":1}`, KindSpawn, "/colour", `unknown member "colour"`},
		{"unknown nested member", `{"target":{"idz":[]}}`, KindCancel, "/target/idz", `unknown member "idz" in /target`},
		{"another event's member", `{"parent_session_id":"s","ids":[]}`, KindSpawn, "/ids", `unknown member "ids"`},
		{"wrong case", `{"Parent_Session_Id":"s"}`, KindSpawn, "/Parent_Session_Id", `(it is called "parent_session_id")`},
		{"camel case", `{"parentSessionId":"s"}`, KindSpawn, "/parentSessionId", `(it is called "parent_session_id")`},
		{"Go's name", `{"ParentSessionID":"s"}`, KindSpawn, "/ParentSessionID", `(it is called "parent_session_id")`},
		{"duplicate", `{"parent_session_id":"a","parent_session_id":"b"}`, KindSpawn, "/parent_session_id", `"parent_session_id" is given twice`},
		{"duplicate by escape", `{"parent_session_id":"a","parent_session\u005fid":"b"}`, KindSpawn, "/parent_session_id", "given twice"},
		{"duplicate nested", `{"target":{"session":true,"session":false}}`, KindCancel, "/target/session", `"session" is given twice in /target`},
		{"duplicate in a map", `{"parent_session_id":"s","env":{"A":"1","A":"2"}}`, KindSpawn, "/env/A", `"A" is given twice in /env`},
		{"duplicate in a raw member", `{"parent_session_id":"s","output_schema":{"a":1,"a":2}}`, KindSpawn, "/output_schema/a", "given twice"},
		{"number for string", `{"parent_session_id":1}`, KindSpawn, "/parent_session_id", "a number stands where a string belongs"},
		{"string for boolean", `{"ids":["x"],"block":"true"}`, KindQuery, "/block", "a string stands where a boolean belongs"},
		{"number for boolean", `{"ids":["x"],"block":1}`, KindQuery, "/block", "a number stands where a boolean belongs"},
		{"string for number", `{"ids":["x"],"timeout_ms":"5"}`, KindQuery, "/timeout_ms", "a string stands where a whole number belongs"},
		{"fraction", `{"ids":["x"],"timeout_ms":1.5}`, KindQuery, "/timeout_ms", "1.5 is no whole number"},
		{"exponent", `{"ids":["x"],"timeout_ms":1e3}`, KindQuery, "/timeout_ms", "1e3 is no whole number"},
		{"out of range", `{"ids":["x"],"timeout_ms":99999999999999999999}`, KindQuery, "/timeout_ms", "is no whole number"},
		{"string for array", `{"ids":"x"}`, KindQuery, "/ids", "a string stands where an array belongs"},
		{"object for array", `{"ids":{}}`, KindQuery, "/ids", "an object stands where an array belongs"},
		{"array for object", `{"target":[]}`, KindCancel, "/target", "an array stands where an object belongs"},
		{"number in an array", `{"ids":[7]}`, KindQuery, "/ids/0", "a number stands where a string belongs"},
		{"number in a map", `{"parent_session_id":"s","labels":{"a":1}}`, KindSpawn, "/labels/a", "a number stands where a string belongs"},
		{"invalid UTF-8", "{\"parent_session_id\":\"s\xff\"}", KindSpawn, "/parent_session_id", "invalid UTF-8"},
		{"lone surrogate", `{"parent_session_id":"s","prompt":"\ud800"}`, KindSpawn, "/prompt", "surrogate"},
		{"raw control character", "{\"parent_session_id\":\"s\",\"prompt\":\"\n\"}", KindSpawn, "/prompt", "invalid character"},
		{"trailing word", `{"parent_session_id":"s"} x`, KindSpawn, "", "after top-level value"},
		{"second object", `{"parent_session_id":"s"}{}`, KindSpawn, "", "after top-level value"},
		{"trailing NUL", "{\"parent_session_id\":\"s\"}\x00", KindSpawn, "", "after top-level value"},
		{"cut short", `{"parent_session_id":"s"`, KindSpawn, "", "unexpected EOF"},
		{"trailing comma", `{"parent_session_id":"s",}`, KindSpawn, "", "invalid character"},
		{"comment", `{"parent_session_id":"s"/**/}`, KindSpawn, "", "invalid character"},
		{"byte order mark", "\ufeff{}", KindListActive, "", "not a JSON object"},
		{"null", `null`, KindListActive, "", "not a JSON object"},
		{"null behind space", " \n null", KindListActive, "", "not a JSON object"},
		{"array", `[]`, KindListActive, "", "not a JSON object"},
		{"string", `"{}"`, KindListActive, "", "not a JSON object"},
		{"word", `true`, KindListActive, "", "not a JSON object"},
		{"much space, then a fault", strings.Repeat(" ", 100) + `{"colour":1}`, KindListActive, "/colour", "unknown member"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, err := DecodeRequest(tc.kind, []byte(tc.body))
			require.NotNil(t, err, "accepted as %+v", e)
			require.Nil(t, e)
			require.Equal(t, CodeInvalidRequest, err.Code)
			require.Equal(t, LayerGate, err.Layer)
			require.Contains(t, err.Message, tc.message)
			require.Equal(t, tc.member, err.Details["member"])
			require.NotContains(t, err.Message, "events.", "a message must not speak of Go types")
			require.NotContains(t, err.Message, "Go ", "a message must not speak of Go types")
		})
	}
}

func TestDecodeRequestAccepts(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		kind       Kind
		want       SubagentEvent
	}{
		{"empty body", "", KindListActive, ListActive{}},
		{"space only", " \r\n\t", KindListActive, ListActive{}},
		{"much space only", strings.Repeat(" ", 1000), KindListActive, ListActive{}},
		{"much space, then a scope", strings.Repeat("\n", 100) + `{"parent_session_id":"s"}`, KindListActive, ListActive{ParentSessionID: "s"}},
		{"space around", " {\"parent_session_id\" : \"s\" } \n", KindListActive, ListActive{ParentSessionID: "s"}},
		{"null is absent", `{"parent_session_id":null,"since_ms":null,"max":null}`, KindListActive, ListActive{}},
		{"null raw member is absent", `{"parent_session_id":"s","output_schema":null}`, KindSpawn, Spawn{ParentSessionID: "s"}},
		{"escapes", `{"parent_session_id":"\u0073"}`, KindListActive, ListActive{ParentSessionID: "s"}},
		{"zero is not absent", `{"parent_session_id":"s","max":0}`, KindCompletions, Completions{ParentSessionID: "s", Max: new(int)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, err := DecodeRequest(tc.kind, []byte(tc.body))
			require.Nil(t, err)
			require.Equal(t, tc.want, e)
		})
	}
	_, err := DecodeRequest(KindSpawn, nil)
	require.NotNil(t, err)
	require.Contains(t, err.Message, "parent_session_id is required", "an empty body is checked like any other")
}

func TestDecodeRequestUnknownKind(t *testing.T) {
	_, err := DecodeRequest(Kind(strings.Repeat("x", 5000)), []byte(`{}`))
	require.NotNil(t, err)
	require.Equal(t, CodeInvalidRequest, err.Code)
	require.Less(t, len(err.Message), 200)
}

func TestDecodeRequestSizes(t *testing.T) {
	filler := func(n int) string {
		body := `{"parent_session_id":"s","prompt":"`
		return body + strings.Repeat("a", n-len(body)-2) + `"}`
	}
	_, err := DecodeRequest(KindSpawn, []byte(filler(MaxMessage+1)))
	require.NotNil(t, err)
	require.Equal(t, CodeTooLarge, err.Code)
	require.Contains(t, err.Remedy, "prompt_file")

	_, err = DecodeRequest(KindSpawn, []byte(filler(MaxMessage)))
	require.NotNil(t, err, "the body fits, its prompt does not")
	require.Equal(t, CodeTooLarge, err.Code)
	require.Contains(t, err.Message, "prompt has")

	fits := `{"parent_session_id":"s","prompt":"` + strings.Repeat("a", MaxPrompt) + `"}`
	e, err := DecodeRequest(KindSpawn, []byte(fits))
	require.Nil(t, err)
	require.Len(t, e.(Spawn).Prompt, MaxPrompt)

	_, err = DecodeRequest(KindListActive, []byte(strings.Repeat(" ", MaxMessage+1)))
	require.NotNil(t, err, "an oversize body is refused even when it is empty")
	require.Equal(t, CodeTooLarge, err.Code)
}

func TestDecodeRequestDepth(t *testing.T) {
	nested := func(depth int) string {
		return `{"parent_session_id":"s","output_schema":` + strings.Repeat(`{"not":`, depth-1) + `{}` + strings.Repeat("}", depth-1) + `}`
	}
	e, err := DecodeRequest(KindSpawn, []byte(nested(MaxSchemaDepth)))
	require.Nil(t, err)
	b, merr := MarshalRecord(Spec{Request: e.(Spawn)})
	require.NoError(t, merr)
	require.NoError(t, DecodeRecord(b, new(Spec)))

	for _, depth := range []int{MaxSchemaDepth + 1, 20_000} {
		_, err = DecodeRequest(KindSpawn, []byte(nested(depth)))
		require.NotNil(t, err, "depth %d", depth)
		require.Equal(t, CodeInvalidRequest, err.Code)
		require.Less(t, len(err.Error()), 1000)
	}
	_, err = DecodeRequest(KindCancel, []byte(`{"target":`+strings.Repeat("[", 100_000)))
	require.NotNil(t, err)
	require.Less(t, len(err.Error()), 1000)
}

// TestErrorsFitReplies: the error of the worst request can be sent.
func TestErrorsFitReplies(t *testing.T) {
	long := strings.Repeat("é", 300_000)
	refs := strings.TrimSuffix(strings.Repeat(`"!",`, 180_000), ",")
	for name, body := range map[string]string{
		"unknown name":   `{"` + long + `":1}`,
		"duplicate name": `{"target":{"label":{"` + long[:200_000] + `":"","` + long[:200_000] + `":""}}}`,
		"nested name":    `{"target":{"label":{"` + long + `":1}}}`,
		"wrong number":   `{"timeout_ms":` + strings.Repeat("9", 700_000) + `}`,
		"many bad ids":   `{"target":{"ids":[` + refs + `]}}`,
		"one long id":    `{"target":{"ids":["` + long + `"]}}`,
		"long reason":    `{"target":{"session":true},"reason":"` + long + `"}`,
	} {
		_, err := DecodeRequest(KindCancel, []byte(body))
		require.NotNil(t, err, name)
		b, merr := Marshal(err)
		require.NoError(t, merr, name)
		require.Less(t, len(b), 8<<10, name)
	}
}

func TestMarshalSize(t *testing.T) {
	fits := FileReply{Data: make([]byte, MaxChunk)}
	b, err := Marshal(fits)
	require.NoError(t, err, "a whole chunk must fit into a message")
	require.LessOrEqual(t, len(b), MaxMessage)

	tooLarge := FileReply{Data: make([]byte, MaxMessage)}
	_, err = Marshal(tooLarge)
	require.True(t, HasCode(err, CodeTooLarge), "%v", err)
	_, err = MarshalRecord(tooLarge)
	require.NoError(t, err, "records have no limit")

	item := Item{Text: strings.Repeat("\x01", MaxItemText)}
	_, err = Marshal(item)
	require.NoError(t, err, "the worst item must fit: six bytes for one")
}

func TestMarshalTimesInUTC(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("east", 2*3600))
	b, err := Marshal(Record{CreatedAt: at, EndedAt: &at})
	require.NoError(t, err)
	require.Contains(t, string(b), `"created_at":"2026-01-02T01:04:05.000006Z"`)
	require.Contains(t, string(b), `"ended_at":"2026-01-02T01:04:05.000006Z"`)
	require.NotContains(t, string(b), "+02:00")
}

func TestMarshalInvalidUTF8(t *testing.T) {
	_, err := Marshal(Spawn{ParentSessionID: "s", Prompt: "a\xff"})
	require.True(t, HasCode(err, CodeInvalidRequest), "a request is never changed on its way: %v", err)
	require.Equal(t, "/prompt", AsError(err).Details["member"])
	_, err = Marshal(&Spawn{ParentSessionID: "s", Env: map[string]string{"A": "\xff"}})
	require.True(t, HasCode(err, CodeInvalidRequest), "%v", err)
	require.Contains(t, err.Error(), "/env/A")

	b, err := Marshal(Report{StderrTail: "a\xffb"})
	require.NoError(t, err, "a report is repaired")
	var back Report
	require.NoError(t, DecodeRecord(b, &back))
	require.Equal(t, "a\ufffdb", back.StderrTail)
}

func TestMarshalIsDeterministic(t *testing.T) {
	labels := map[string]string{}
	for _, k := range strings.Split("q w e r t y u i o p a s d f g h j k l", " ") {
		labels[k] = k
	}
	first, err := Marshal(Record{Labels: labels})
	require.NoError(t, err)
	for range 20 {
		again, err := Marshal(Record{Labels: labels})
		require.NoError(t, err)
		require.Equal(t, string(first), string(again))
	}
}

func TestDecodeRecord(t *testing.T) {
	var r Record
	require.NoError(t, DecodeRecord([]byte(`{"id":"x","from_the_future":{"a":[1]},"seq":7}`), &r))
	require.Equal(t, uint64(7), r.Seq)
	require.NoError(t, DecodeRecord([]byte("{\"name\":\"\xff\"}"), &r))
	require.Equal(t, "\ufffd", r.Name)
	for name, body := range map[string]string{
		"empty":     ``,
		"torn":      `{"id":"x","se`,
		"duplicate": `{"id":"x","id":"y"}`,
		"type":      `{"seq":"7"}`,
		"trailing":  `{"id":"x"}}`,
		"zeros":     "\x00\x00\x00\x00",
	} {
		err := DecodeRecord([]byte(body), new(Record))
		require.ErrorContains(t, err, "decode *events.Record", name)
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("disk on fire")
	e := Errorf(CodeStorageFailed, LayerCoordinator, "put %s: %w", "x", cause).
		WithDetail("b", "2").WithDetail("a", "1").WithRemedy("free %d bytes", 5)
	require.Equal(t, "put x: disk on fire; a: 1; b: 2 (free 5 bytes)", e.Error())
	require.ErrorIs(t, e, cause)
	require.ErrorIs(t, e, &Error{Code: CodeStorageFailed})
	require.NotErrorIs(t, e, &Error{Code: CodeInternal})
	require.True(t, HasCode(errors.Join(errors.New("first"), e), CodeStorageFailed))
	require.False(t, HasCode(nil, CodeStorageFailed))

	require.Nil(t, AsError(nil))
	require.Same(t, e, AsError(errors.Join(errors.New("first"), e)))
	other := AsError(cause)
	require.Equal(t, CodeInternal, other.Code)
	require.ErrorIs(t, other, cause)

	b, err := json.Marshal(e)
	require.NoError(t, err)
	require.NotContains(t, string(b), "cause", "the cause does not travel by itself")
}
