package tracing

import (
	"encoding/base64"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The messages of OTLP 1.x in JSON: ids in hex, 64-bit numbers as strings,
// enumerations as numbers.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []keyValue `json:"attributes,omitempty"`
		} `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
		SchemaURL  string       `json:"schemaUrl,omitempty"`
	}
	scopeSpans struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version,omitempty"`
		} `json:"scope"`
		Spans     []span `json:"spans"`
		SchemaURL string `json:"schemaUrl,omitempty"`
	}
	span struct {
		TraceID      string     `json:"traceId"`
		SpanID       string     `json:"spanId"`
		TraceState   string     `json:"traceState,omitempty"`
		ParentSpanID string     `json:"parentSpanId,omitempty"`
		Flags        uint32     `json:"flags"`
		Name         string     `json:"name"`
		Kind         int        `json:"kind"`
		Start        string     `json:"startTimeUnixNano"`
		End          string     `json:"endTimeUnixNano"`
		Attributes   []keyValue `json:"attributes,omitempty"`
		Dropped      int        `json:"droppedAttributesCount,omitzero"`
		Events       []event    `json:"events,omitempty"`
		Status       status     `json:"status"`
	}
	event struct {
		Time       string     `json:"timeUnixNano"`
		Name       string     `json:"name"`
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitzero"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// The flags of a span beside those of its trace: whether it is known that its
// parent is in another process, and whether it is.
const (
	flagKnowsRemote = 0x100
	flagIsRemote    = 0x200
)

// encode makes one request of spans, which share a resource.
func encode(spans []sdk.ReadOnlySpan) request {
	var r resourceSpans
	scopes := make(map[instrumentation.Scope]int)
	for i, s := range spans {
		if i == 0 && s.Resource() != nil {
			r.Resource.Attributes = attributes(s.Resource().Attributes())
			r.SchemaURL = s.Resource().SchemaURL()
		}
		scope := s.InstrumentationScope()
		at, known := scopes[scope]
		if !known {
			at = len(r.ScopeSpans)
			scopes[scope] = at
			var group scopeSpans
			group.Scope.Name, group.Scope.Version, group.SchemaURL = scope.Name, scope.Version, scope.SchemaURL
			r.ScopeSpans = append(r.ScopeSpans, group)
		}
		r.ScopeSpans[at].Spans = append(r.ScopeSpans[at].Spans, encodeSpan(s))
	}
	return request{ResourceSpans: []resourceSpans{r}}
}

func encodeSpan(s sdk.ReadOnlySpan) span {
	own, parent := s.SpanContext(), s.Parent()
	out := span{
		TraceID: own.TraceID().String(), SpanID: own.SpanID().String(), TraceState: own.TraceState().String(),
		Flags: uint32(own.TraceFlags()) | flagKnowsRemote,
		Name:  s.Name(), Kind: int(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()),
		Attributes: attributes(s.Attributes()), Dropped: s.DroppedAttributes(),
		Status: statusOf(s.Status()),
	}
	if parent.HasSpanID() {
		out.ParentSpanID = parent.SpanID().String()
	}
	if parent.IsRemote() {
		out.Flags |= flagIsRemote
	}
	if out.Kind == int(trace.SpanKindUnspecified) {
		out.Kind = int(trace.SpanKindInternal)
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, event{Time: nanos(e.Time), Name: e.Name, Attributes: attributes(e.Attributes)})
	}
	return out
}

// statusOf translates codes, whose numbers OTLP has the other way round.
func statusOf(s sdk.Status) status {
	out := status{Message: s.Description}
	switch s.Code {
	case codes.Ok:
		out.Code = 1
	case codes.Error:
		out.Code = 2
	}
	return out
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributes(list []attribute.KeyValue) []keyValue {
	out := make([]keyValue, len(list))
	for i, a := range list {
		out[i] = keyValue{Key: string(a.Key), Value: value(a.Value)}
	}
	return out
}

func value(v attribute.Value) map[string]any {
	switch v.Type() {
	case attribute.BOOL:
		return map[string]any{"boolValue": v.AsBool()}
	case attribute.INT64:
		return map[string]any{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return map[string]any{"doubleValue": v.AsFloat64()}
	case attribute.STRING:
		return map[string]any{"stringValue": v.AsString()}
	case attribute.BOOLSLICE:
		return list(v.AsBoolSlice(), attribute.BoolValue)
	case attribute.INT64SLICE:
		return list(v.AsInt64Slice(), attribute.Int64Value)
	case attribute.FLOAT64SLICE:
		return list(v.AsFloat64Slice(), attribute.Float64Value)
	case attribute.STRINGSLICE:
		return list(v.AsStringSlice(), attribute.StringValue)
	}
	if b, is := v.AsInterface().([]byte); is {
		return map[string]any{"bytesValue": base64.StdEncoding.EncodeToString(b)}
	}
	return map[string]any{"stringValue": v.Emit()}
}

func list[T any](items []T, of func(T) attribute.Value) map[string]any {
	values := make([]map[string]any, len(items))
	for i, item := range items {
		values[i] = value(of(item))
	}
	return map[string]any{"arrayValue": map[string]any{"values": values}}
}
