// Package tracecontext reads and writes the W3C Trace Context headers of
// messages and environments.
package tracecontext

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/hayward-dev/hayward/events"
)

// maxState bounds the tracestate that is taken over: W3C Trace Context asks for
// 512 bytes at least.
const maxState = 512

var format propagation.TraceContext

// Parse returns the span that a request belongs to, by its headers; one without,
// or with what is no trace context, belongs to none.
func Parse(traceparent, tracestate string) trace.SpanContext {
	if len(tracestate) > maxState {
		tracestate = ""
	}
	ctx := format.Extract(context.Background(), propagation.MapCarrier{
		events.HeaderTraceParent: traceparent, events.HeaderTraceState: tracestate,
	})
	return trace.SpanContextFromContext(ctx)
}

// Headers are those of what belongs to a span: both empty for none.
func Headers(s trace.SpanContext) (traceparent, tracestate string) {
	carrier := propagation.MapCarrier{}
	format.Inject(trace.ContextWithSpanContext(context.Background(), s), carrier)
	return carrier[events.HeaderTraceParent], carrier[events.HeaderTraceState]
}

// Parent is the traceparent of a span, empty for none.
func Parent(s trace.SpanContext) string {
	parent, _ := Headers(s)
	return parent
}
