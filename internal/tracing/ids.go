package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"go.opentelemetry.io/otel/trace"
)

// ids gives a span the ids that its context asks for, else random ones: the span
// of a subagent is begun and ended by different coordinators. It implements
// [sdk.IDGenerator].
type ids struct{}

type wantedKey struct{}

// want makes the next span of ctx be s.
func want(ctx context.Context, s trace.SpanContext) context.Context {
	return context.WithValue(ctx, wantedKey{}, s)
}

// NewIDs implements [sdk.IDGenerator].
func (ids) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	if wanted, ok := ctx.Value(wantedKey{}).(trace.SpanContext); ok {
		return wanted.TraceID(), wanted.SpanID()
	}
	rand.Read(t[:]) // never fails
	return t, random()
}

// NewSpanID implements [sdk.IDGenerator].
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if wanted, ok := ctx.Value(wantedKey{}).(trace.SpanContext); ok {
		return wanted.SpanID()
	}
	return random()
}

func random() (s trace.SpanID) {
	rand.Read(s[:]) // never fails
	return s
}

// below is the span of a name below a subagent's own. Its id follows from that
// one, so every coordinator gives it the same.
func below(own trace.SpanContext, name string) trace.SpanContext {
	id := own.SpanID()
	sum := sha256.Sum256(append(id[:], name...))
	var s trace.SpanID
	copy(s[:], sum[:])
	return own.WithSpanID(s)
}
