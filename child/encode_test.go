package child

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

// What is written here is what the codec writes, whatever is set: a member that this
// file does not know sends the value to the codec.
func TestEncodeIsTheCodec(t *testing.T) {
	for _, sample := range []any{events.Item{}, events.Report{}, events.Started{}, events.Heartbeat{}, events.ControlReply{}} {
		t.Run(reflect.TypeOf(sample).Name(), rapid.MakeCheck(func(t *rapid.T) {
			v := reflect.New(reflect.TypeOf(sample)).Elem()
			fillSome(t, v)
			want, err := events.MarshalRecord(v.Interface())
			require.NoError(t, err)
			got, err := encodeRecord(v.Interface())
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		}))
	}
}

// The values that every subagent has go the short way, which is what it is for.
func TestEncodePlain(t *testing.T) {
	code, now := 3, time.Now()
	for _, v := range []any{
		events.Item{Seq: 2, At: now, Kind: events.ItemNote, Text: "told to end"},
		events.Item{Seq: 3, At: now, Kind: events.ItemExit, Exit: &events.Exit{Code: &code, UserMS: 1}},
		events.Item{Seq: 3, At: now, Kind: events.ItemOutput, Stream: "stdout", Bytes: 3, TextOmitted: true},
		events.Report{Schema: 1, ID: "x", At: now, Exit: &events.Exit{Signal: "SIGTERM"}, StderrTail: "a\xff\n"},
		events.Started{ID: "x", At: now}, events.Heartbeat{ID: "x", Progress: events.Progress{At: now, Processes: 1}},
		events.ControlReply{OK: true},
	} {
		want, err := events.MarshalRecord(v)
		require.NoError(t, err)
		require.Equal(t, string(want), string(encodePlain(v)))
	}
	require.Nil(t, encodePlain(events.Report{Agent: &events.AgentResult{}}))
	require.Nil(t, encodePlain(events.Item{Seq: math.MaxUint64}))
	require.Nil(t, encodePlain(struct{}{}))
}

func TestDecodeControlIsTheCodec(t *testing.T) {
	for _, c := range []events.Control{
		{Kind: events.ControlStop, Reason: events.ReasonUser}, {Kind: events.ControlStop}, {Kind: events.ControlPing},
		{Kind: events.ControlStop, Reason: "a\"b"}, {Kind: events.ControlStdin, Data: []byte("x"), Offset: 3, EOF: true},
	} {
		data, err := events.Marshal(c)
		require.NoError(t, err)
		got, err := decodeControl(data)
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
	for _, bad := range []string{`{"kind":"stop","reason":"a"b"}`, `{"kind":"stop","reason":"`, ``} {
		_, err := decodeControl([]byte(bad))
		require.Error(t, err, bad)
	}
}

// fillSome sets members of v at random, most of them not.
func fillSome(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			zone := time.FixedZone("", rapid.IntRange(-12, 12).Draw(t, "zone")*3600)
			at := time.Unix(rapid.Int64Range(-6e10, 2e11).Draw(t, "at"), rapid.Int64Range(0, 999999999).Draw(t, "ns"))
			v.Set(reflect.ValueOf(at.In(zone)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() && rapid.IntRange(0, 3).Draw(t, "set") == 0 {
				fillSome(t, v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillSome(t, v.Elem())
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\xff", "</a>&\u2028", "\x00\x7f"})).Draw(t, "text"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.ValueOf(rapid.SliceOf(rapid.String()).Draw(t, "list")).Convert(v.Type()))
		}
	}
}
