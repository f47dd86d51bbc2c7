//go:build linux && cgo

package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/handoff"
)

// started measures from the start byte to the end of the constructor.
func (w *world) started(b *testing.B, p *Plan) time.Duration {
	b.Helper()
	took, _ := w.timed(b, p)
	return took
}

// timed runs the probe and returns how long it was to the end of the constructor,
// and what it printed.
func (w *world) timed(b *testing.B, p *Plan, actions ...string) (time.Duration, string) {
	b.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(b, err)
	defer null.Close()
	outR, outW, err := os.Pipe()
	require.NoError(b, err)
	defer outR.Close()
	startR, startW, err := os.Pipe()
	require.NoError(b, err)
	statusR, statusW, err := os.Pipe()
	require.NoError(b, err)
	defer statusR.Close()
	files := []*os.File{null, outW, null, p.PlanFile, startR, statusW, null, null, null, null, null, null, p.RulesetFile, p.FilterFile}
	begin := time.Now()
	child, err := os.StartProcess(w.probe, append([]string{"probe", "supervise"}, actions...),
		&os.ProcAttr{Files: files, Env: []string{}, Sys: p.SysProcAttr(), Dir: "/"})
	require.NoError(b, err)
	for _, f := range []*os.File{startR, statusW, outW} {
		require.NoError(b, f.Close())
	}
	_, err = startW.Write([]byte{1})
	require.NoError(b, err)
	require.NoError(b, startW.Close())
	var took time.Duration
	for {
		var record [handoff.RecordSize]byte
		if _, err := statusR.Read(record[:]); err != nil {
			break
		}
		if r := handoff.Decode(record[:]); r.Step == handoff.StepConfined {
			require.Zero(b, r.Errno)
			took = time.Since(begin)
		}
	}
	require.NotZero(b, took, "it was not confined")
	printed, err := io.ReadAll(outR)
	require.NoError(b, err)
	_, err = child.Wait()
	require.NoError(b, err)
	return took, string(printed)
}

// BenchmarkConfine measures exec to the last layer, each profile in turn with the
// same under off, and reports the difference of the medians.
func BenchmarkConfine(b *testing.B) {
	if lacks := Probe().Lacks("open"); len(lacks) > 0 {
		b.Skipf("needs an enforceable workspace profile: %v", lacks)
	}
	for _, c := range []struct {
		profile string
		denied  int
	}{{Workspace, 0}, {Devbox, 0}, {ReadOnly, 0}, {Strict, 0}, {Workspace, 100}, {Workspace, 1000}} {
		b.Run(fmt.Sprintf("%s/denied=%d", c.profile, c.denied), func(b *testing.B) {
			w := newWorld(b)
			r := w.denying(b, c.profile, c.denied)
			on, off := w.pair(b, r)
			var with, without []time.Duration
			for b.Loop() {
				with = append(with, w.started(b, on))
				without = append(without, w.started(b, off))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(milliseconds(median(with)), "on-ms")
			b.ReportMetric(milliseconds(median(without)), "off-ms")
			b.ReportMetric(milliseconds(median(with)-median(without)), "added-ms")
			// The quick ones tell more on a machine that does other things as well.
			b.ReportMetric(milliseconds(quantile(with, 10)-quantile(without, 10)), "added-p10-ms")
		})
	}
}

// BenchmarkOpen measures open and close of a file, eight directories deep in the
// workspace, from inside, each profile in turn with the same under off.
func BenchmarkOpen(b *testing.B) {
	if lacks := Probe().Lacks("open"); len(lacks) > 0 {
		b.Skipf("needs an enforceable workspace profile: %v", lacks)
	}
	const opens = 20_000
	for _, profile := range []string{Workspace, Strict} {
		b.Run(profile, func(b *testing.B) {
			w := newWorld(b)
			deep := w.workspace + "/1/2/3/4/5"
			require.NoError(b, os.MkdirAll(deep, 0o755))
			put(b, deep+"/file", "x")
			on, off := w.pair(b, w.under(b, profile))
			action := fmt.Sprintf("supervisor:opens|%s/file|%d", deep, opens)
			each := func(p *Plan) time.Duration {
				_, printed := w.timed(b, p, action)
				var r struct{ Result, Value string }
				require.NoError(b, json.Unmarshal([]byte(printed), &r), printed)
				require.Equal(b, "ok", r.Result)
				total, err := time.ParseDuration(r.Value)
				require.NoError(b, err)
				return total / opens
			}
			var with, without []time.Duration
			for b.Loop() {
				with = append(with, each(on))
				without = append(without, each(off))
			}
			micro := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(micro(median(with)), "on-us")
			b.ReportMetric(micro(median(without)), "off-us")
			b.ReportMetric(micro(median(with)-median(without)), "added-us")
			b.ReportMetric(micro(quantile(with, 10)-quantile(without, 10)), "added-p10-us")
		})
	}
}

// pair compiles a request and the same under off.
func (w *world) pair(b *testing.B, r Request) (on, off *Plan) {
	b.Helper()
	compile := func(r Request) *Plan {
		p, e := Compile(r, Probe())
		require.Nil(b, e, "%v", e)
		b.Cleanup(func() { require.NoError(b, p.Close()) })
		return p
	}
	on = compile(r)
	r.Profile, r.Deny = Off, nil
	return on, compile(r)
}

// BenchmarkCompile measures what the parent does.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct {
		profile string
		denied  int
	}{{Workspace, 0}, {Devbox, 0}, {ReadOnly, 0}, {Strict, 0}, {Off, 0}, {Workspace, 1000}} {
		b.Run(fmt.Sprintf("%s/denied=%d", c.profile, c.denied), func(b *testing.B) {
			w := newWorld(b)
			r := w.denying(b, c.profile, c.denied)
			for b.Loop() {
				p, e := Compile(r, Probe())
				require.Nil(b, e)
				require.NoError(b, p.Close())
			}
		})
	}
}

// denying is a request that denies a number of files in one directory.
func (w *world) denying(b *testing.B, profile string, files int) Request {
	b.Helper()
	for i := range files {
		put(b, fmt.Sprintf("%s/%d.secret", w.workspace, i), "x")
	}
	r := w.under(b, profile)
	if files > 0 {
		r.Deny = []string{"*.secret"}
	}
	return r
}

func median(d []time.Duration) time.Duration { return quantile(d, 50) }

// quantile is the value that percent of d do not exceed.
func quantile(d []time.Duration, percent int) time.Duration {
	slices.Sort(d)
	return d[len(d)*percent/100]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
