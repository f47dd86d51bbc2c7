package client

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/tracecontext"
)

// request is the message of a call. It carries the span of ctx, as OpenTelemetry
// keeps it there, or else that of the environment: who runs inside a span hands
// it on.
func (c *Client) request(ctx context.Context, q call, inbox string) *nats.Msg {
	msg := &nats.Msg{Subject: q.subject, Reply: inbox, Data: q.body}
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		span = tracecontext.Parse(c.variable("TRACEPARENT"), c.variable("TRACESTATE"))
	}
	if parent, state := tracecontext.Headers(span); parent != "" {
		msg.Header = nats.Header{events.HeaderTraceParent: {parent}}
		if state != "" {
			msg.Header[events.HeaderTraceState] = []string{state}
		}
	}
	return msg
}

// variable is the last value of a variable of the client's environment.
func (c *Client) variable(name string) string {
	for i := len(c.opts.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(c.opts.Environ[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}
