package child

import (
	"bytes"
	"reflect"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// encodeRecord is [events.MarshalRecord] to the byte. What every supervisor says, and
// says once, it writes without the codec's look at the type, which takes longer than
// all else about it; docs/performance.md has the figures.
func encodeRecord(v any) ([]byte, error) {
	if b := encodePlain(v); b != nil {
		return b, nil
	}
	return events.MarshalRecord(v)
}

// encode is [events.Marshal] to the byte, see [encodeRecord].
func encode(v any) ([]byte, error) {
	if b := encodePlain(v); b != nil && len(b) <= events.MaxMessage {
		return b, nil
	}
	return events.Marshal(v)
}

// encodePlain returns nil for what it does not know: other types, and these with
// members that are set and that it does not write.
func encodePlain(v any) []byte {
	var o object
	switch v := v.(type) {
	case events.Item:
		plainItem(&o, v)
	case events.Report:
		plainReport(&o, v)
	case events.Started:
		o.string("id", v.ID).int("run", int64(v.Run)).time("at", v.At).int("runner_pid", int64(v.RunnerPID))
		v.ID, v.Run, v.At, v.RunnerPID = "", 0, time.Time{}, 0
		o.rest(v)
	case events.Heartbeat:
		o.string("id", v.ID).int("run", int64(v.Run)).object("progress", func(o *object) { plainProgress(o, v.Progress) })
		v.ID, v.Run, v.Progress = "", 0, events.Progress{}
		o.rest(v)
	case events.ControlReply:
		o.bool("ok", v.OK)
		v.OK = false
		o.rest(v)
	default:
		return nil
	}
	return o.end()
}

func plainItem(o *object, v events.Item) {
	o.int("seq", int64(v.Seq)).time("at", v.At).string("kind", string(v.Kind)).stringIf("stream", v.Stream)
	o.intIf("offset", v.Offset).intIf("bytes", v.Bytes).stringIf("text", v.Text).boolIf("text_omitted", v.TextOmitted)
	if v.Exit != nil {
		o.object("exit", func(o *object) { plainExit(o, *v.Exit) })
	}
	if v.Seq > 1<<62 {
		o.unknown = true
	}
	v.Seq, v.At, v.Kind, v.Stream, v.Offset, v.Bytes, v.Text, v.TextOmitted, v.Exit = 0, time.Time{}, "", "", 0, 0, "", false, nil
	o.rest(v)
}

func plainReport(o *object, v events.Report) {
	o.int("schema", int64(v.Schema)).string("id", v.ID).int("run", int64(v.Run)).time("at", v.At)
	if v.Exit != nil {
		o.object("exit", func(o *object) { plainExit(o, *v.Exit) })
	}
	o.stringIf("ended", string(v.Ended)).int("stdout_bytes", v.StdoutBytes).int("stderr_bytes", v.StderrBytes)
	o.stringIf("stderr_tail", v.StderrTail).stringIf("last_line", v.LastLine)
	v.Schema, v.ID, v.Run, v.At, v.Exit, v.Ended = 0, "", 0, time.Time{}, nil, ""
	v.StdoutBytes, v.StderrBytes, v.StderrTail, v.LastLine = 0, 0, "", ""
	o.rest(v)
}

func plainExit(o *object, v events.Exit) {
	rest := v
	rest.Code, rest.Signal, rest.UserMS, rest.SystemMS, rest.MaxRSSKiB = nil, "", 0, 0, 0
	if v.Code == nil {
		o.name("code")
		o.b = append(o.b, "null"...)
	} else {
		o.int("code", int64(*v.Code))
	}
	o.stringIf("signal", v.Signal).intIf("user_ms", v.UserMS).intIf("system_ms", v.SystemMS).intIf("max_rss_kib", v.MaxRSSKiB)
	o.rest(rest)
}

func plainProgress(o *object, v events.Progress) {
	o.time("at", v.At).stringIf("last_line", v.LastLine).int("stdout_bytes", v.StdoutBytes).int("stderr_bytes", v.StderrBytes)
	o.intIf("processes", int64(v.Processes))
	v.At, v.LastLine, v.StdoutBytes, v.StderrBytes, v.Processes = time.Time{}, "", 0, 0, 0
	o.rest(v)
}

// object is a JSON object that is being written.
type object struct {
	b       []byte
	unknown bool // there is something in it that cannot be written here
}

func (o *object) name(name string) *object {
	if len(o.b) == 0 {
		o.b = append(make([]byte, 0, 512), '{')
	} else if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
	return o
}

func (o *object) string(name, v string) *object {
	o.name(name)
	// Of invalid UTF-8 it makes what the codec makes of it, and says so.
	o.b, _ = jsontext.AppendQuote(o.b, v)
	return o
}

func (o *object) int(name string, v int64) *object {
	o.name(name)
	o.b = strconv.AppendInt(o.b, v, 10)
	return o
}

func (o *object) bool(name string, v bool) *object {
	o.name(name)
	o.b = strconv.AppendBool(o.b, v)
	return o
}

func (o *object) time(name string, v time.Time) *object {
	v = v.UTC()
	if y := v.Year(); y < 0 || y > 9999 {
		o.unknown = true
	}
	o.name(name)
	o.b = append(v.AppendFormat(append(o.b, '"'), time.RFC3339Nano), '"')
	return o
}

func (o *object) object(name string, fill func(*object)) *object {
	o.name(name)
	o.b = append(o.b, '{')
	fill(o)
	o.b = append(o.b, '}')
	return o
}

func (o *object) stringIf(name, v string) *object {
	if v != "" {
		o.string(name, v)
	}
	return o
}

func (o *object) intIf(name string, v int64) *object {
	if v != 0 {
		o.int(name, v)
	}
	return o
}

func (o *object) boolIf(name string, v bool) *object {
	if v {
		o.bool(name, v)
	}
	return o
}

// rest takes what is left of a value once all that was written is taken out.
func (o *object) rest(v any) {
	if !reflect.ValueOf(v).IsZero() {
		o.unknown = true
	}
}

func (o *object) end() []byte {
	if o.unknown {
		return nil
	}
	return append(o.b, '}')
}

// decodeControl decodes a message of the coordinator. Of a stop, the one that most
// supervisors get, it reads the only text that the codec writes.
func decodeControl(data []byte) (c events.Control, err error) {
	if rest, ok := bytes.CutPrefix(data, []byte(`{"kind":"stop","reason":"`)); ok {
		if reason, ok := bytes.CutSuffix(rest, []byte(`"}`)); ok && isWord(reason) {
			return events.Control{Kind: events.ControlStop, Reason: events.Reason(reason)}, nil
		}
	}
	err = events.DecodeRecord(data, &c)
	return c, err
}

func isWord(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return true
}
