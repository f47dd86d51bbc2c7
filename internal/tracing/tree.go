package tracing

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/tracecontext"
)

// operation is the GenAI name of what a subagent's own span is about.
const operation = "invoke_agent"

// The spans below a subagent's own; fork and confine are below start.
const (
	spanAccept  = "hayward.accept"  // until it is durable
	spanQueue   = "hayward.queue"   // until it has a slot
	spanStart   = "hayward.start"   // until its process reported that it is confined and running
	spanFork    = "hayward.fork"    // until its process exists
	spanConfine = "hayward.confine" // from when it was let go until it was confined
	spanRun     = "hayward.run"     // until no process of it is left
	spanEnd     = "hayward.end"     // until that is durable
)

// tree makes the spans of one subagent.
type tree struct {
	t      *Tracer
	record *events.Record
	own    trace.SpanContext
}

// tree returns nil for a subagent of which nothing is told.
func (t *Tracer) tree(r *events.Record) *tree {
	if t == nil || r.Trace == nil {
		return nil
	}
	own := tracecontext.Parse(r.Trace.Span, r.Trace.State)
	if !own.IsValid() || !own.IsSampled() {
		return nil
	}
	return &tree{t, r, own.WithRemote(false)}
}

// make makes one span below parent, and says that it failed when failure is set.
func (t *tree) make(parent, s trace.SpanContext, name string, from, to time.Time, kind trace.SpanKind, failure string, about ...attribute.KeyValue) {
	if from.IsZero() || to.IsZero() {
		return
	}
	if to.Before(from) {
		to = from
	}
	ctx := trace.ContextWithSpanContext(context.Background(), parent)
	_, made := t.t.spans.Start(want(ctx, s), name, trace.WithTimestamp(from), trace.WithSpanKind(kind), trace.WithAttributes(about...))
	if failure != "" {
		made.SetStatus(codes.Error, failure)
	}
	made.End(trace.WithTimestamp(to))
}

// step makes a span of a name below the subagent's own.
func (t *tree) step(name string, from, to time.Time, failure string, about ...attribute.KeyValue) {
	t.make(t.own, below(t.own, name), name, from, to, trace.SpanKindInternal, failure, about...)
}

// Started tells of everything up to the running process, or up to the end of a
// subagent that never had one.
func (t *Tracer) Started(r *events.Record, m Marks) {
	tree := t.tree(r)
	if tree == nil {
		return
	}
	tree.step(spanAccept, r.CreatedAt, m.Accepted, "")
	ended := at(r.EndedAt)
	if r.PendingAt == nil {
		tree.step(spanQueue, r.CreatedAt, ended, failure(r))
		return
	}
	pending := *r.PendingAt
	tree.step(spanQueue, r.CreatedAt, pending, "")
	confined, failed := at(r.StartedAt), ""
	if r.StartedAt == nil {
		confined, failed = ended, failure(r)
	}
	tree.step(spanStart, pending, confined, failed)
	start := below(tree.own, spanStart)
	var about []attribute.KeyValue
	if p := r.Process; p != nil {
		about = append(about, attribute.Int("process.pid", p.PID))
	}
	tree.make(start, below(tree.own, spanFork), spanFork, pending, m.Forked, trace.SpanKindInternal, "", about...)
	tree.make(start, below(tree.own, spanConfine), spanConfine, m.Released, confined, trace.SpanKindInternal, failed, sandboxOf(r)...)
}

// Ended tells of the run and its end, and with that of the whole. durable is when
// the end became durable.
func (t *Tracer) Ended(r *events.Record, durable time.Time) {
	tree := t.tree(r)
	if tree == nil || r.EndedAt == nil {
		return
	}
	ended := *r.EndedAt
	tree.step(spanRun, at(r.StartedAt), ended, failure(r), exit(r)...)
	tree.step(spanEnd, ended, durable, "")
	var parent trace.SpanContext
	if r.Trace.Parent != "" {
		parent = tracecontext.Parse(r.Trace.Parent, r.Trace.State)
	}
	tree.make(parent, tree.own, operation+" "+agentName(r), r.CreatedAt, durable, trace.SpanKindClient, failure(r), append(about(r), exit(r)...)...)
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// failure is what went wrong, in words of the contract; empty if nothing did.
func failure(r *events.Record) string {
	switch r.Status {
	case events.StatusFailed, events.StatusCancelled:
		return string(r.Status) + ": " + cmp.Or(string(r.Reason), "unknown")
	}
	return ""
}

func agentName(r *events.Record) string { return cmp.Or(r.Name, r.SubagentType) }

// about is what a subagent is. Neither its prompt nor its command nor its output
// is told of: they may be secret.
func about(r *events.Record) []attribute.KeyValue {
	list := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", operation),
		attribute.String("gen_ai.provider.name", "hayward"),
		attribute.String("gen_ai.agent.id", r.ID),
		attribute.String("gen_ai.agent.name", agentName(r)),
		attribute.String("gen_ai.conversation.id", r.ParentSessionID),
		attribute.String("hayward.subagent.type", r.SubagentType),
		attribute.String("hayward.isolation", r.Isolation),
		attribute.Int("hayward.run", r.Run),
		attribute.Int("hayward.depth", r.Depth),
		attribute.Bool("hayward.background", r.Background),
		attribute.String("hayward.status", string(r.Status)),
	}
	for key, value := range map[string]string{
		"gen_ai.agent.description": r.Description,
		"hayward.prompt.id":        r.ParentPromptID,
		"hayward.parent.id":        r.ParentID,
		"hayward.reason":           string(r.Reason),
	} {
		if value != "" {
			list = append(list, attribute.String(key, value))
		}
	}
	if failure(r) != "" {
		kind := string(cmp.Or(r.Reason, "unknown"))
		if r.Error != nil {
			kind = string(r.Error.Code)
		}
		list = append(list, attribute.String("error.type", kind))
	}
	return append(list, sandboxOf(r)...)
}

// exit is how the command ended.
func exit(r *events.Record) (list []attribute.KeyValue) {
	if r.Exit != nil && r.Exit.Code != nil {
		list = append(list, attribute.Int("process.exit.code", *r.Exit.Code))
	}
	if r.Exit != nil && r.Exit.Signal != "" {
		list = append(list, attribute.String("hayward.exit.signal", r.Exit.Signal))
	}
	if r.Output != nil {
		list = append(list, attribute.Int64("hayward.output.bytes", r.Output.Bytes))
	}
	return list
}

// sandboxOf is what the kernel accepted, by the child's report.
func sandboxOf(r *events.Record) []attribute.KeyValue {
	s := r.Sandbox
	if s == nil {
		return nil
	}
	list := []attribute.KeyValue{
		attribute.String("hayward.sandbox.profile", s.Profile),
		attribute.Bool("hayward.sandbox.active", s.Active),
		attribute.String("hayward.sandbox.network", string(s.Network)),
	}
	if len(s.Gaps) > 0 {
		list = append(list, attribute.StringSlice("hayward.sandbox.gaps", s.Gaps))
	}
	return list
}
