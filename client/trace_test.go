package client

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/hayward-dev/hayward/internal/tracecontext"
)

func TestRequestsCarryTheSpanOfTheCaller(t *testing.T) {
	const outer, inner = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	span := trace.ContextWithSpanContext(t.Context(), tracecontext.Parse(inner, "vendor=x"))
	environment := []string{"TRACEPARENT=nonsense", "TRACEPARENT=" + outer, "TRACESTATE=a=b"}
	for name, c := range map[string]struct {
		environ []string
		inSpan  bool
		want    nats.Header
	}{
		"none":                {nil, false, nil},
		"of the context":      {environment, true, nats.Header{"traceparent": {inner}, "tracestate": {"vendor=x"}}},
		"of the environment":  {environment, false, nats.Header{"traceparent": {outer}, "tracestate": {"a=b"}}},
		"a state that is not": {[]string{"TRACEPARENT=" + outer, "TRACESTATE=a\nb"}, false, nats.Header{"traceparent": {outer}}},
		"no trace context":    {[]string{"TRACEPARENT=00-0-0-01\r\nx: y"}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.inSpan {
				ctx = span
			}
			msg := (&Client{opts: Options{Environ: c.environ}}).request(ctx, call{subject: "s", body: []byte("b")}, "inbox")
			require.Equal(t, &nats.Msg{Subject: "s", Reply: "inbox", Data: []byte("b"), Header: c.want}, msg)
		})
	}
}
