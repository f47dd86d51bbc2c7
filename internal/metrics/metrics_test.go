package metrics

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
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
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse reads what was written with Prometheus's own library.
func parse(t *testing.T, text io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(text)
	require.NoError(t, err)
	return families
}

func written(t *testing.T, r *Registry) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	return b.String()
}

func TestTextIsReadByPrometheus(t *testing.T) {
	var r Registry
	r.Counter("a_requests_total", "Requests.\nWith a \\ in it.", "event", "code").Add(3, "spawn", "quote \" slash \\ line \n end")
	r.Counter("a_plain_total", "Nothing yet.")
	h := r.Histogram("a_wait_seconds", "Waits.", []float64{.1, 1}, "kind")
	for _, v := range []float64{.05, .1, .5, 7} {
		h.Observe(v, "x")
	}
	r.Func(KindGauge, "a_things", "Things.", []string{"state"}, func(emit func(float64, ...string)) { emit(2.5, "hot") })
	r.Func(KindGauge, "a_unknown", "Not known now.", nil, func(func(float64, ...string)) {})
	r.Process(time.Unix(5, 0))

	families := parse(t, strings.NewReader(written(t, &r)))
	m := families["a_requests_total"].Metric[0]
	require.Equal(t, 3.0, m.Counter.GetValue())
	require.Equal(t, "quote \" slash \\ line \n end", m.Label[1].GetValue())
	require.Equal(t, "Requests.\nWith a \\ in it.", families["a_requests_total"].GetHelp())
	require.Zero(t, families["a_plain_total"].Metric[0].Counter.GetValue())
	hist := families["a_wait_seconds"].Metric[0].Histogram
	require.EqualValues(t, 4, hist.GetSampleCount())
	require.InDelta(t, 7.65, hist.GetSampleSum(), 1e-9)
	var cumulative []uint64
	for _, b := range hist.Bucket {
		cumulative = append(cumulative, b.GetCumulativeCount())
	}
	require.Equal(t, []uint64{2, 3, 4}, cumulative, "a bound is in its bucket")
	require.Equal(t, 2.5, families["a_things"].Metric[0].Gauge.GetValue())
	require.NotContains(t, families, "a_unknown", "what is not known is left out")
	require.Equal(t, 5.0, families["process_start_time_seconds"].Metric[0].Gauge.GetValue())
	require.Positive(t, families["process_open_fds"].Metric[0].Gauge.GetValue())
	require.Positive(t, families["process_resident_memory_bytes"].Metric[0].Gauge.GetValue())
}

func TestProcessMetricsPassPromlint(t *testing.T) {
	var r Registry
	r.Process(time.Now())
	problems, err := testutil.GatherAndLint(prometheus.GathererFunc(func() (out []*dto.MetricFamily, err error) {
		for _, f := range parse(t, strings.NewReader(written(t, &r))) {
			out = append(out, f)
		}
		return out, nil
	}))
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestSeriesAreBounded(t *testing.T) {
	var r Registry
	c := r.Counter("a_total", "A.", "label")
	for i := range 3 * MaxSeries {
		c.Inc(strconv.Itoa(i))
	}
	c.Inc("0")
	all := parse(t, strings.NewReader(written(t, &r)))["a_total"].Metric
	require.Len(t, all, MaxSeries+1)
	sum := 0.0
	for _, m := range all {
		sum += m.Counter.GetValue()
	}
	require.Equal(t, float64(3*MaxSeries+1), sum, "nothing is lost")
	require.Contains(t, written(t, &r), `a_total{label="other"} 512`)
	require.Panics(t, func() { c.Inc() })
}

func TestCountingTogether(t *testing.T) {
	var r Registry
	c, h := r.Counter("a_total", "A.", "label"), r.Histogram("a_seconds", "A.", []float64{1})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for range 1000 {
				c.Inc(strconv.Itoa(g % 3))
				h.Observe(.5)
			}
		})
		all.Go(func() { require.NoError(t, r.Write(io.Discard)) })
	}
	all.Wait()
	text := written(t, &r)
	require.Contains(t, text, "a_seconds_count 8000\n")
	require.Contains(t, text, "a_seconds_sum 4000\n")
	require.Contains(t, text, `a_total{label="2"} 2000`)
}

func TestServed(t *testing.T) {
	var r Registry
	r.Counter("a_total", "A.").Inc()
	dir, err := os.MkdirTemp("", "m")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "metrics.sock")
	for name, address := range map[string]string{"tcp": ":0", "unix": "unix:" + socket} {
		t.Run(name, func(t *testing.T) {
			l, err := Listen(t.Context(), address)
			require.NoError(t, err)
			s := Serve(l, &r, zaptest.NewLogger(t))
			transport := &http.Transport{DisableKeepAlives: true}
			target := "http://" + s.Addr()
			if name == "unix" {
				transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "unix", socket)
				}
				target = "http://metrics"
				st, err := os.Stat(socket)
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
				_, err = Listen(t.Context(), address)
				require.ErrorContains(t, err, "another process listens there")
			} else {
				require.True(t, l.Addr().(*net.TCPAddr).IP.IsLoopback(), "no host is this machine alone")
			}
			c := &http.Client{Transport: transport}
			resp, err := c.Get(target + "/metrics")
			require.NoError(t, err)
			require.Equal(t, ContentType, resp.Header.Get("Content-Type"))
			require.Equal(t, 1.0, parse(t, resp.Body)["a_total"].Metric[0].Counter.GetValue())
			require.NoError(t, resp.Body.Close())
			resp, err = c.Get(target + "/other")
			require.NoError(t, err)
			require.Equal(t, http.StatusNotFound, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
			require.NoError(t, s.Close())
			_, err = c.Get(target + "/metrics")
			require.Error(t, err)
		})
	}
	require.NoError(t, os.WriteFile(socket, nil, 0o600))
	_, err = Listen(t.Context(), "unix:"+socket)
	require.Error(t, err, "what is no socket is not taken away")
	_, err = Listen(t.Context(), "nonsense")
	require.ErrorContains(t, err, "neither HOST:PORT nor unix:PATH")
}

func TestSocketOfAnEndedProcess(t *testing.T) {
	dir, err := os.MkdirTemp("", "m")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	path := filepath.Join(dir, "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	l, err := Listen(t.Context(), "unix:"+path)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.True(t, errors.Is(func() error { _, err := os.Stat(path); return err }(), os.ErrNotExist))
}
