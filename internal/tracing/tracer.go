package tracing

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/tracecontext"
)

// Tracer makes spans. A nil one makes none and hands trace contexts on.
type Tracer struct {
	provider *sdk.TracerProvider
	spans    trace.Tracer
	exporter *exporter
}

// New returns a tracer that sends to where c says. Queue, batches, sampling and
// the resource are as the OTEL_ variables of this process say. Close it.
func New(c Config, version string, log *zap.Logger) (*Tracer, error) {
	for _, w := range c.Warnings {
		log.Warn(w)
	}
	e, err := newExporter(c, log)
	if err != nil {
		return nil, err
	}
	// Faults of those variables; spans that are dropped are said by the exporter.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("OpenTelemetry", zap.Error(err)) }))
	about, err := resource.New(context.Background(),
		resource.WithAttributes(
			attribute.String("service.name", "hayward"), attribute.String("service.version", version),
			attribute.String("service.instance.id", uuid.NewString()), attribute.Int("process.pid", os.Getpid())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe this service to the collector: %w", err)
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(e), sdk.WithResource(about), sdk.WithIDGenerator(ids{}))
	return &Tracer{provider: p, exporter: e, spans: p.Tracer("github.com/hayward-dev/hayward", trace.WithInstrumentationVersion(version))}, nil
}

// Close sends what is left until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	err := t.provider.Shutdown(ctx)
	t.exporter.cancel() // an export that did not make it
	return err
}

// Begin says where a subagent stands in the trace of whoever asked for it, or
// where a new trace begins. It is nil for one that is in no trace.
func (t *Tracer) Begin(asked trace.SpanContext) *events.Trace {
	out := events.Trace{Parent: tracecontext.Parent(asked), State: asked.TraceState().String()}
	if t == nil {
		if out.Parent == "" {
			return nil
		}
		out.Child = out.Parent
		return &out
	}
	// This span is never ended: it is there for its ids and for the sampler's word.
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), asked)
	_, begun := t.spans.Start(ctx, operation)
	own := begun.SpanContext()
	out.Span, out.Child, out.State = tracecontext.Parent(own), tracecontext.Parent(below(own, spanRun)), own.TraceState().String()
	return &out
}

// Marks are the times of a start that are in no record. Zero ones are not known:
// another coordinator saw them.
type Marks struct{ Accepted, Forked, Released time.Time }
