package events

// Trace is where a subagent stands in a distributed trace, each member as W3C
// Trace Context writes it. It is absent for one in no trace.
type Trace struct {
	// Parent is the traceparent of the request, empty if it had none.
	Parent string `json:"parent,omitempty"`
	// Span is that of the subagent's own span, empty if the coordinator that
	// accepted it made none.
	Span string `json:"span,omitempty"`
	// Child is what the command finds in TRACEPARENT.
	Child string `json:"child,omitempty"`
	// State is the tracestate of all of them.
	State string `json:"state,omitempty"`
}
