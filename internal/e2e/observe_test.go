package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// collector takes OTLP as the OpenTelemetry collector does.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans map[string]taken
}

// taken is a span and the process that told of it.
type taken struct {
	ptrace.Span
	pid any
}

func newCollector(t *testing.T) *collector {
	c := &collector{spans: make(map[string]taken)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		traces, decodeErr := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(body)
		if err != nil || decodeErr != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v %v", r.URL, err, decodeErr)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range traces.ResourceSpans().All() {
			pid := rs.Resource().Attributes().AsRaw()["process.pid"]
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					c.spans[s.Name()] = taken{s, pid}
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) taken() map[string]taken {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]taken)
	for k, v := range c.spans {
		out[k] = v
	}
	return out
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// scrape reads metrics as Prometheus does: by series, the sum of a histogram left
// out.
func scrape(t *testing.T, address string) map[string]float64 {
	resp, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	problems, err := testutil.GatherAndLint(prometheus.GathererFunc(func() (out []*dto.MetricFamily, err error) {
		for _, f := range families {
			out = append(out, f)
		}
		return out, nil
	}))
	require.NoError(t, err)
	require.Empty(t, problems)
	series := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.Metric {
			key := name
			for _, l := range m.Label {
				key += " " + l.GetValue()
			}
			series[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return series
}

// Metrics, a trace and the feed tell one spawn's whole story, and the subagent
// outlives the coordinator that accepted it.
func TestOneSpawnsWholeStory(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
		c, address := newCollector(t), freeAddress(t)
		otel := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_SERVICE_NAME=subagents"}
		plain := u.env
		u.env = append(u.env, "TRACEPARENT=00-"+trace+"-"+caller+"-01", "TRACESTATE=vendor=x")
		first := u.serve(otel, "--metrics", address)
		id := u.detach("--name", "story", "--session", "work", "--", "sh", "-c",
			`echo $TRACEPARENT $TRACESTATE; while [ ! -e go ]; do sleep 0.02; done; exit 3`)
		require.True(t, u.eventually(func() bool { _, ok := c.taken()["hayward.start"]; return ok }))
		now := scrape(t, address)
		for series, want := range map[string]float64{
			"hayward_spawns_total accepted": 1, "hayward_subagents active": 1, "hayward_subagents completed": 0, "hayward_queue_wait_seconds": 1,
			"hayward_start_duration_seconds": 1, "hayward_run_duration_seconds": 0, "hayward_store_up": 1, "hayward_loop_backlog": 0,
		} {
			require.Equal(t, want, now[series], series)
		}
		u.env = plain
		require.Zero(t, u.run("shutdown", "--handover").code)
		require.NoError(t, first.wait())

		second := u.serve(otel, "--metrics", address)
		require.NoError(t, os.WriteFile(filepath.Join(u.work, "go"), nil, 0o644))
		require.Equal(t, 1, u.run("wait", id).code)
		require.Zero(t, u.run("completions", "--session", "work", "--ack", id).code)
		now = scrape(t, address)
		for series, want := range map[string]float64{
			"hayward_subagents_ended_total failed exit": 1, "hayward_run_duration_seconds": 1, "hayward_read_delay_seconds": 1,
			"hayward_completions_total stored": 1, "hayward_completions_total acked": 1, "hayward_completions_unread": 0,
			"hayward_subagents active": 0, "hayward_subagents completed": 1, "hayward_start_duration_seconds": 0,
		} {
			require.Equal(t, want, now[series], series)
		}
		root := "invoke_agent story"
		require.True(t, u.eventually(func() bool { _, ok := c.taken()[root]; return ok }))
		spans := c.taken()
		for name, pid := range map[string]int{
			"hayward.accept": first.cmd.Process.Pid, "hayward.queue": first.cmd.Process.Pid, "hayward.start": first.cmd.Process.Pid,
			"hayward.fork": first.cmd.Process.Pid, "hayward.confine": first.cmd.Process.Pid,
			"hayward.run": second.cmd.Process.Pid, "hayward.end": second.cmd.Process.Pid, root: second.cmd.Process.Pid,
		} {
			require.Equal(t, trace, spans[name].TraceID().String(), name)
			require.EqualValues(t, pid, spans[name].pid, name)
			parent := spans[root].SpanID().String()
			switch name {
			case root:
				parent = caller
			case "hayward.fork", "hayward.confine":
				parent = spans["hayward.start"].SpanID().String()
			}
			require.Equal(t, parent, spans[name].ParentSpanID().String(), name)
		}
		about := spans[root].Attributes().AsRaw()
		require.Equal(t, id, about["gen_ai.agent.id"])
		require.Equal(t, int64(3), about["process.exit.code"])
		require.Equal(t, "workspace", about["hayward.sandbox.profile"])
		require.Equal(t, fmt.Sprintf("00-%s-%s-01 vendor=x\n", trace, spans["hayward.run"].SpanID()), u.run("logs", id).stdout,
			"the command's own spans go below its run")
		if u.uid == os.Getuid() { // it is built, which once is enough
			u.followFeed(id)
		}
	})
}

// followFeed runs the example of a feed consumer, twice: the second time it goes
// on where it left.
func (u *user) followFeed(id string) {
	u.t.Helper()
	program := filepath.Join(u.home, "feed")
	build := exec.Command("go", "build", "-o", program, "../../examples/feed")
	out, err := build.CombinedOutput()
	require.NoError(u.t, err, string(out))
	var printed []string
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		cmd := u.command(ctx, "-n", "2", "position")
		cmd.Path = program
		r := finish(u.t, cmd)
		cancel()
		require.Zero(u.t, r.code, r.stderr)
		printed = append(printed, strings.Split(strings.TrimSpace(r.stdout), "\n")...)
	}
	require.Len(u.t, printed, 4)
	for i, state := range []string{"queued initializing", "pending initializing", "active running", "completed failed"} {
		require.Regexp(u.t, fmt.Sprintf(`^%d \S+ %s %s$`, i+1, id, state), printed[i])
	}
}

// A collector that takes nothing costs no work and one line of the log.
func TestCollectorThatIsNotThere(t *testing.T) {
	u := newUser(t, os.Getuid())
	u.serve([]string{"OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_EXPORTER_OTLP_TIMEOUT=50"}, "--tracing", "http://"+freeAddress(t))
	for range 2 {
		require.Zero(t, u.run("spawn", "--", "true").code)
	}
	began := time.Now()
	require.Zero(t, u.run("shutdown").code)
	require.Less(t, time.Since(began), deadline/2, "the last spans hold nothing up for long")
	log, err := os.ReadFile(filepath.Join(u.home, "state", "hayward.log"))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(log), "spans were dropped"), string(log))
}
