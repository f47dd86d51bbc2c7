//go:build linux && cgo

package sandbox

import (
	"fmt"
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
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(b, err)
	defer null.Close()
	startR, startW, err := os.Pipe()
	require.NoError(b, err)
	statusR, statusW, err := os.Pipe()
	require.NoError(b, err)
	defer statusR.Close()
	files := []*os.File{null, null, null, p.PlanFile, startR, statusW, null, null, null, null, null, null, p.RulesetFile, p.FilterFile}
	begin := time.Now()
	child, err := os.StartProcess(w.probe, []string{"probe", "supervise"},
		&os.ProcAttr{Files: files, Env: []string{}, Sys: p.SysProcAttr(), Dir: "/"})
	require.NoError(b, err)
	require.NoError(b, startR.Close())
	require.NoError(b, statusW.Close())
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
	_, err = child.Wait()
	require.NoError(b, err)
	return took
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
			for i := range c.denied {
				put(b, fmt.Sprintf("%s/%d.secret", w.workspace, i), "x")
			}
			r := w.under(b, c.profile)
			if c.denied > 0 {
				r.Deny = []string{"*.secret"}
			}
			on, e := Compile(r, Probe())
			require.Nil(b, e)
			defer on.Close()
			r.Profile, r.Deny = Off, nil
			off, e := Compile(r, Probe())
			require.Nil(b, e)
			defer off.Close()
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

// BenchmarkCompile measures what the parent does.
func BenchmarkCompile(b *testing.B) {
	for _, profile := range Names {
		b.Run(profile, func(b *testing.B) {
			w := newWorld(b)
			r := w.under(b, profile)
			for b.Loop() {
				p, e := Compile(r, Probe())
				require.Nil(b, e)
				require.NoError(b, p.Close())
			}
		})
	}
}

func median(d []time.Duration) time.Duration { return quantile(d, 50) }

// quantile is the value that percent of d do not exceed.
func quantile(d []time.Duration, percent int) time.Duration {
	slices.Sort(d)
	return d[len(d)*percent/100]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
