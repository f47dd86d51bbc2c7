//go:build linux && cgo

package sandbox

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
)

func TestConfinedReport(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	host, err := os.ReadFile("/proc/sys/kernel/pid_max")
	require.NoError(t, err)
	p := compile(t, w.request(), Probe())
	var seen []string
	o := w.run(t, p, launch{before: func(pid int) {
		// Between fork and start the child is in its namespaces and nothing else ran.
		own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
		require.NoError(t, err)
		ours, err := os.Readlink("/proc/self/ns/pid")
		require.NoError(t, err)
		require.NotEqual(t, ours, own)
		kernel, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		require.NoError(t, err)
		require.Contains(t, string(kernel), "NoNewPrivs:\t0")
		require.Contains(t, string(kernel), "Threads:\t1")
	}}, "exec|/bin/true")
	for _, r := range o.records {
		seen = append(seen, r.Step.String())
		require.Zero(t, r.Errno)
		require.Zero(t, r.Skipped)
	}
	require.Equal(t, []string{"plan", "start", "fds", "namespaces", "mounts", "caps", "no_new_privs", "landlock", "seccomp", "confined", "main"}, seen)
	require.Equal(t, uint64(1), o.records[len(o.records)-1].Value, "main saw that the plan is an enforced one")
	report, e := p.Report(o.records)
	if e != nil {
		t.Fatal(e)
	}
	require.True(t, report.Active)
	require.Equal(t, events.TreeKillPIDNamespace, report.TreeKill)
	require.Equal(t, events.NetworkOpen, report.Network)
	require.Equal(t, p.Hash, report.PlanHash)
	require.Contains(t, report.Writable, w.workspace)
	require.Contains(t, report.Gaps, GapBindAliases)
	for _, s := range layerSteps {
		require.Equal(t, events.LayerEnforced, report.Layers[s.String()].State, s)
	}
	after, err := os.ReadFile("/proc/sys/kernel/pid_max")
	require.NoError(t, err)
	require.Equal(t, host, after, "the host's own bound")

	// Where the records are lost, the plan knows all but the details.
	plain := report
	plain.Layers = make(map[string]events.Layer, len(report.Layers))
	for name, layer := range report.Layers {
		plain.Layers[name] = events.Layer{State: layer.State}
	}
	require.Equal(t, plain, p.Required())

	// Without any one of the required records nothing is active.
	for i, r := range o.records {
		if r.Step > handoff.StepConfined {
			continue
		}
		rest := append(append([]handoff.Record{}, o.records[:i]...), o.records[i+1:]...)
		report, e := p.Report(rest)
		require.NotNil(t, e, r.Step)
		require.Equal(t, events.CodeSandboxFailed, e.Code)
		require.Equal(t, r.Step.String(), e.Details["step"])
		require.False(t, report.Active)
	}
}

// TestConfinedIdentity shows that whoever started a child can still tell it
// from others once nothing inside can look at it: adoption needs that.
func TestConfinedIdentity(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	fifo := w.temp + "/fifo"
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	namespace := func(pid int) (uint64, error) {
		var st unix.Stat_t
		err := unix.Stat(fmt.Sprintf("/proc/%d/ns/pid", pid), &st)
		return st.Ino, err
	}
	type answer struct {
		before, after uint64
		err           error
	}
	answers := make(chan answer, 1)
	p := compile(t, w.request(), Probe())
	o := w.run(t, p, launch{before: func(pid int) {
		go func() {
			var a answer
			defer func() { answers <- a }()
			if a.before, a.err = namespace(pid); a.err != nil {
				return
			}
			// Opens once the confined supervisor has it open for reading.
			hold, err := os.OpenFile(fifo, os.O_WRONLY, 0)
			if a.err = err; err != nil {
				return
			}
			a.after, a.err = namespace(pid)
			if err := hold.Close(); a.err == nil {
				a.err = err
			}
		}()
	}}, "supervisor:read|"+fifo)
	require.Equal(t, "ok", o.results["supervisor:read|"+fifo], o.stderr)
	a := <-answers
	require.NoError(t, a.err)
	require.NotZero(t, a.before)
	require.Equal(t, a.before, a.after)
}
