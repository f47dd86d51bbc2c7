package tracing

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	logged "go.uber.org/zap/zaptest/observer"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/tracecontext"
)

// collector takes spans and decodes them as the OpenTelemetry collector does.
type collector struct {
	*httptest.Server
	t  *testing.T
	mu sync.Mutex
	// answers are given first, in their order; then it takes everything.
	answers []func(http.ResponseWriter)
	spans   map[string]ptrace.Span
	headers http.Header
	about   map[string]any
}

func newCollector(t *testing.T, tls bool) *collector {
	c := &collector{t: t, spans: make(map[string]ptrace.Span)}
	c.Server = httptest.NewUnstartedServer(c)
	c.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	if tls {
		c.StartTLS()
	} else {
		c.Start()
	}
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answers) > 0 {
		answer := c.answers[0]
		c.answers = c.answers[1:]
		answer(w)
		return
	}
	c.headers = r.Header
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			c.t.Error(err)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		c.t.Error(err)
	}
	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(b)
	if err != nil {
		c.t.Error(err)
	}
	for _, rs := range traces.ResourceSpans().All() {
		c.about = rs.Resource().Attributes().AsRaw()
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				c.spans[s.Name()] = s
			}
		}
	}
}

func (c *collector) taken() map[string]ptrace.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

func tracer(t *testing.T, c *collector, change func(*Config)) (*Tracer, *logged.ObservedLogs) {
	t.Helper()
	config, err := Configure(c.URL, func(string) string { return "" })
	require.NoError(t, err)
	if change != nil {
		change(&config)
	}
	core, said := logged.New(zap.DebugLevel)
	tr, err := New(config, "v1", zap.New(core))
	require.NoError(t, err)
	return tr, said
}

func closed(t *testing.T, tr *Tracer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, tr.Close(ctx))
}

const asked = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// finished is a subagent that ran from 100 s to 103 s.
func finished(traced *events.Trace) *events.Record {
	at := func(s int64) *time.Time { t := time.Unix(s, 0).UTC(); return &t }
	code := 3
	return &events.Record{
		ID: "0192f0c1-0000-7000-8000-000000000001", Run: 1, Name: "docs", SubagentType: "command", ParentSessionID: "work", ParentPromptID: "p",
		Description: "write the docs", CommandLine: "make SECRET=1", Isolation: "none",
		State: events.StateCompleted, Status: events.StatusFailed, Reason: events.ReasonExit,
		CreatedAt: *at(100), PendingAt: at(101), StartedAt: at(102), EndedAt: at(103),
		Process: &events.Process{PID: 42}, Exit: &events.Exit{Code: &code},
		Sandbox: &events.SandboxReport{Profile: "workspace", Active: true, Network: events.NetworkOpen, Gaps: []string{"g"}}, Trace: traced,
	}
}

func TestWholeStory(t *testing.T) {
	c := newCollector(t, false)
	tr, said := tracer(t, c, func(c *Config) { c.Gzip, c.Headers = true, map[string]string{"api-key": "k"} })
	traced := tr.Begin(tracecontext.Parse(asked, "vendor=x"))
	require.Equal(t, asked, traced.Parent)
	require.Equal(t, "vendor=x", traced.State)
	r := finished(traced)
	tr.Started(r, Marks{Accepted: time.Unix(100, 5), Forked: time.Unix(101, 5), Released: time.Unix(101, 7)})
	tr.Ended(r, time.Unix(104, 0))
	closed(t, tr)

	spans := c.taken()
	root := spans["invoke_agent docs"]
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", root.TraceID().String())
	require.Equal(t, "b7ad6b7169203331", root.ParentSpanID().String())
	require.Equal(t, "vendor=x", root.TraceState().AsRaw())
	require.Equal(t, ptrace.SpanKindClient, root.Kind())
	require.EqualValues(t, 0x301, root.Flags(), "sampled, and its parent is remote")
	require.Equal(t, ptrace.StatusCodeError, root.Status().Code())
	require.Equal(t, "failed: exit", root.Status().Message())
	about := root.Attributes().AsRaw()
	for key, want := range map[string]any{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "docs", "gen_ai.agent.id": r.ID, "gen_ai.agent.description": "write the docs",
		"gen_ai.conversation.id": "work", "gen_ai.provider.name": "hayward", "error.type": "exit", "process.exit.code": int64(3),
		"hayward.sandbox.profile": "workspace", "hayward.sandbox.active": true, "hayward.sandbox.gaps": []any{"g"}, "hayward.prompt.id": "p",
	} {
		require.Equal(t, want, about[key], key)
	}
	for _, value := range about {
		require.NotContains(t, fmt.Sprint(value), "SECRET", "commands are not told of")
	}
	type times struct {
		parent     string
		start, end int64
	}
	start := spans["hayward.start"].SpanID().String()
	for name, want := range map[string]times{
		"hayward.accept": {"", 100e9, 100e9 + 5}, "hayward.queue": {"", 100e9, 101e9}, "hayward.start": {"", 101e9, 102e9},
		"hayward.fork": {start, 101e9, 101e9 + 5}, "hayward.confine": {start, 101e9 + 7, 102e9},
		"hayward.run": {"", 102e9, 103e9}, "hayward.end": {"", 103e9, 104e9}, "invoke_agent docs": {"b7ad6b7169203331", 100e9, 104e9},
	} {
		if want.parent == "" {
			want.parent = root.SpanID().String()
		}
		s, ok := spans[name]
		require.True(t, ok, name)
		require.Equal(t, want, times{s.ParentSpanID().String(), s.StartTimestamp().AsTime().UnixNano(), s.EndTimestamp().AsTime().UnixNano()}, name)
	}
	require.Len(t, spans, 8)
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-"+spans["hayward.run"].SpanID().String()+"-01", traced.Child, "what the command finds is the run")
	require.Equal(t, "hayward", c.about["service.name"])
	require.Equal(t, "v1", c.about["service.version"])
	require.Equal(t, "k", c.headers.Get("Api-Key"))
	require.Zero(t, said.Len(), "%v", said.All())
}

// One coordinator accepts and dies, the next one sees the end.
func TestTheNextCoordinatorEndsTheSpan(t *testing.T) {
	c := newCollector(t, true)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}), 0o600))
	first, _ := tracer(t, c, func(c *Config) { c.CAFile = ca })
	traced := first.Begin(trace.SpanContext{})
	require.Empty(t, traced.Parent)
	closed(t, first)
	require.Empty(t, c.taken(), "nothing is told of what is not durable")

	second, _ := tracer(t, c, func(c *Config) { c.CAFile = ca })
	r := finished(traced)
	second.Ended(r, time.Unix(104, 0))
	closed(t, second)
	root := c.taken()["invoke_agent docs"]
	own := tracecontext.Parse(traced.Span, "")
	require.Equal(t, own.SpanID().String(), root.SpanID().String())
	require.Equal(t, own.TraceID().String(), root.TraceID().String())
	require.True(t, root.ParentSpanID().IsEmpty())
	require.Equal(t, root.SpanID(), c.taken()["hayward.run"].ParentSpanID())
}

func TestWhatIsNotSampledIsNotTold(t *testing.T) {
	c := newCollector(t, false)
	tr, _ := tracer(t, c, nil)
	traced := tr.Begin(tracecontext.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", ""))
	require.Regexp(t, "-00$", traced.Child)
	for _, r := range []*events.Record{finished(traced), finished(nil), finished(&events.Trace{Parent: asked, Child: asked})} {
		tr.Started(r, Marks{Accepted: time.Unix(100, 0)})
		tr.Ended(r, time.Unix(104, 0))
	}
	closed(t, tr)
	require.Empty(t, c.taken())
}

func TestWithoutATracer(t *testing.T) {
	var none *Tracer
	require.Nil(t, none.Begin(trace.SpanContext{}))
	require.Nil(t, none.Begin(tracecontext.Parse("nonsense", "")))
	require.Equal(t, &events.Trace{Parent: asked, Child: asked, State: "a=b"}, none.Begin(tracecontext.Parse(asked, "a=b")))
	none.Started(finished(&events.Trace{Span: asked}), Marks{})
	none.Ended(finished(&events.Trace{Span: asked}), time.Now())
}

func TestSubagentThatNeverRan(t *testing.T) {
	c := newCollector(t, false)
	tr, _ := tracer(t, c, nil)
	r := finished(tr.Begin(trace.SpanContext{}))
	r.StartedAt, r.Sandbox, r.Exit, r.Process = nil, nil, nil, nil
	r.Reason, r.Error = events.ReasonSandbox, &events.Error{Code: events.CodeSandboxFailed}
	tr.Started(r, Marks{Accepted: time.Unix(100, 0)})
	tr.Ended(r, time.Unix(104, 0))
	closed(t, tr)
	spans := c.taken()
	require.NotContains(t, spans, "hayward.run")
	require.Equal(t, ptrace.StatusCodeError, spans["hayward.start"].Status().Code())
	require.Equal(t, "sandbox_failed", spans["invoke_agent docs"].Attributes().AsRaw()["error.type"])
}

// A collector that is not well is tried again; one that stays so costs its spans
// and one line of the log.
func TestCollectorThatFails(t *testing.T) {
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code) }
	}
	c := newCollector(t, false)
	c.answers = []func(http.ResponseWriter){status(503), status(429), status(400), status(404), func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}`)
	}}
	tr, said := tracer(t, c, nil)
	tell := func() {
		tr.Ended(finished(tr.Begin(trace.SpanContext{})), time.Unix(104, 0))
		require.NoError(t, tr.provider.ForceFlush(t.Context()))
	}
	tell() // after two tries again, 400 is final
	tell()
	tell()
	require.Empty(t, c.taken())
	require.Equal(t, 1, said.Len(), "%v", said.All())
	require.Equal(t, zap.WarnLevel, said.All()[0].Level)
	require.Contains(t, said.All()[0].ContextMap()["error"], "400")
	tell()
	require.Len(t, c.taken(), 3)
	require.Equal(t, 2, said.Len())
	require.Equal(t, "spans are taken again", said.All()[1].Message)
	closed(t, tr)
}

// A collector that does not answer holds up the end for its deadline only.
func TestCollectorThatHangs(t *testing.T) {
	hold := make(chan struct{})
	c := newCollector(t, false)
	c.answers = []func(http.ResponseWriter){func(http.ResponseWriter) { <-hold }}
	t.Cleanup(func() { close(hold) })
	tr, _ := tracer(t, c, nil)
	tr.Ended(finished(tr.Begin(trace.SpanContext{})), time.Unix(104, 0))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, tr.Close(ctx), context.DeadlineExceeded)
}

func TestFaultsOfTheExporter(t *testing.T) {
	_, err := New(Config{URL: "http://c", CAFile: "/does/not/exist"}, "v1", zap.NewNop())
	require.ErrorIs(t, err, os.ErrNotExist)
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, []byte("none"), 0o600))
	_, err = New(Config{URL: "http://c", CAFile: file}, "v1", zap.NewNop())
	require.ErrorContains(t, err, "holds no certificate")
}
