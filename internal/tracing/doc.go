// Package tracing tells a collector of traces about subagents: one tree of spans
// from the acceptance of a spawn to its durable end, over OTLP.
//
// # Where spans come from
//
// A span is made of what is durable of a subagent, after it is durable, so a
// trace never says what a crash could undo. The identity of the tree is part of
// the record ([events.Trace]) and the ids of the spans below it follow from that,
// so the coordinator that sees the end tells of the end, whichever saw the
// beginning.
//
// # What it may cost
//
// Nothing waits for the collector. Spans go into a bounded queue and are dropped
// when it is full; a collector that fails is tried again for the time of one
// export, and said in the log once until it takes spans again. [Tracer.Close]
// sends what is left within its deadline.
//
// Spans are sent as OTLP in JSON over HTTP by the exporter in here: that of the
// OpenTelemetry project, for protobuf, would cost every run of the command line
// its initialization (docs/adr/0015-observability.md).
package tracing
