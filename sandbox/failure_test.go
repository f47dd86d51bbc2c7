//go:build linux && cgo

package sandbox

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/internal/memfd"
	"github.com/hayward-dev/hayward/sandbox/internal/layout"
)

// failedAt asserts that the constructor stopped at step with errno and that
// nothing after it ran.
func failedAt(t *testing.T, o outcome, step handoff.Step, errno syscall.Errno) handoff.Record {
	t.Helper()
	require.Equal(t, 125, o.state.ExitCode(), o.stderr)
	require.NotEmpty(t, o.records)
	last := o.records[len(o.records)-1]
	require.Equal(t, step, last.Step, "%v", o.records)
	require.Equal(t, errno, syscall.Errno(last.Errno))
	require.Zero(t, last.Skipped)
	require.Empty(t, o.results, "an action ran")
	return last
}

// sealedBytes is a plan's file with other content.
func sealedBytes(t *testing.T, b []byte) *os.File {
	t.Helper()
	f, err := memfd.Sealed("test", func(f *os.File) error { _, err := f.Write(b); return err })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestFailEndOfStart(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	p := compile(t, w.request(), Probe())
	o := w.run(t, p, launch{noStart: true}, "supervisor:create|"+w.workspace+"/ran", "create|"+w.workspace+"/ran")
	require.Equal(t, 125, o.state.ExitCode())
	require.Len(t, o.records, 1)
	require.Equal(t, handoff.StepPlan, o.records[0].Step)
	require.NoFileExists(t, w.workspace+"/ran")
	report, e := p.Report(o.records)
	require.NotNil(t, e)
	require.Equal(t, "start", e.Details["step"])
	require.False(t, report.Active)
}

func TestFailCorruptPlan(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	p := compile(t, w.request(), Probe())
	good, err := p.body.Encode()
	require.NoError(t, err)
	change := func(at int, b byte) []byte {
		c := append([]byte{}, good...)
		c[at] = b
		return c
	}
	for name, b := range map[string][]byte{
		"empty":             {},
		"short":             good[:layout.HeaderSize-1],
		"cut":               good[:len(good)-1],
		"longer":            append(append([]byte{}, good...), 0),
		"magic":             change(0, 'h'),
		"version":           change(8, layout.Version+1),
		"too many ops":      change(34, 0xff),
		"offset":            change(36, 1),
		"operation kind":    change(layout.HeaderSize, 99),
		"string outside":    change(layout.HeaderSize+10, 0xff),
		"string in the ops": change(layout.HeaderSize+8, 1),
		"unterminated":      change(len(good)-1, 'x'),
	} {
		t.Run(name, func(t *testing.T) {
			o := w.run(t, p, launch{files: map[int]*os.File{handoff.FDPlan: sealedBytes(t, b)}})
			failedAt(t, o, handoff.StepPlan, unix.EBADMSG)
		})
	}
	t.Run("unsealed", func(t *testing.T) {
		fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		f := os.NewFile(uintptr(fd), "test")
		defer f.Close()
		_, err = f.Write(good)
		require.NoError(t, err)
		failedAt(t, w.run(t, p, launch{files: map[int]*os.File{handoff.FDPlan: f}}), handoff.StepPlan, unix.EPERM)
	})
	t.Run("none", func(t *testing.T) {
		// Not launched through a plan: main refuses, no record speaks for it.
		null, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer null.Close()
		o := w.run(t, p, launch{files: map[int]*os.File{handoff.FDPlan: null}}, "create|"+w.workspace+"/ran")
		require.Empty(t, o.records)
		require.Contains(t, o.stderr, "not confined")
		require.NotZero(t, o.state.ExitCode())
		require.NoFileExists(t, w.workspace+"/ran")
	})
}

func TestFailSteps(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	p := compile(t, w.request(), Probe())
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	// body returns a plan that differs in one thing.
	body := func(change func(*layout.Plan)) map[int]*os.File {
		b := p.body
		b.Ops = append([]layout.Op{}, b.Ops...)
		change(&b)
		encoded, err := b.Encode()
		require.NoError(t, err)
		return map[int]*os.File{handoff.FDPlan: sealedBytes(t, encoded)}
	}
	t.Run("namespaces", func(t *testing.T) {
		// Started without what the plan asks for.
		o := w.run(t, p, launch{attr: &syscall.SysProcAttr{Setsid: true}})
		failedAt(t, o, handoff.StepNamespaces, unix.EPERM)
		_, e := p.Report(o.records)
		require.Equal(t, "namespaces", e.Details["step"])
	})
	t.Run("mount", func(t *testing.T) {
		o := w.run(t, p, launch{files: body(func(b *layout.Plan) {
			for i := range b.Ops {
				if b.Ops[i].Kind == layout.OpMaskDir {
					b.Ops[i].Target = "/nonexistent"
				}
			}
		})})
		last := failedAt(t, o, handoff.StepMounts, unix.ENOENT)
		require.Equal(t, layout.OpMaskDir, p.body.Ops[last.Value].Kind)
		_, e := p.Report(o.records)
		require.Equal(t, events.CodeSandboxFailed, e.Code)
		require.Contains(t, e.Message, "hide "+w.state)
		require.Contains(t, e.Error(), "--sandbox-best-effort")
	})
	t.Run("symbolic link", func(t *testing.T) {
		// Swapped in after the plan was made.
		require.NoError(t, os.Symlink("/etc", w.workspace+"/link"))
		o := w.run(t, p, launch{files: body(func(b *layout.Plan) {
			b.Ops = append(b.Ops, layout.Op{Kind: layout.OpMaskDir, Target: w.workspace + "/link"})
		})})
		failedAt(t, o, handoff.StepMounts, unix.ELOOP)
	})
	t.Run("ruleset", func(t *testing.T) {
		o := w.run(t, p, launch{files: map[int]*os.File{handoff.FDRuleset: null}})
		failedAt(t, o, handoff.StepLandlock, unix.EBADFD)
	})
	t.Run("filter", func(t *testing.T) {
		o := w.run(t, p, launch{files: map[int]*os.File{handoff.FDFilter: null}})
		failedAt(t, o, handoff.StepSeccomp, unix.EINVAL)
		o = w.run(t, p, launch{files: map[int]*os.File{handoff.FDFilter: sealedBytes(t, make([]byte, 7))}})
		failedAt(t, o, handoff.StepSeccomp, unix.EBADMSG)
		o = w.run(t, p, launch{files: map[int]*os.File{handoff.FDFilter: sealedBytes(t, make([]byte, 16))}})
		failedAt(t, o, handoff.StepSeccomp, unix.EINVAL)
	})
}

// TestBestEffortGoesOn gives a best-effort plan what fails at run time.
func TestBestEffortGoesOn(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	r := w.request()
	r.BestEffort = true
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	t.Run("all there", func(t *testing.T) {
		p := compile(t, r, Probe())
		report, e := p.Report(w.run(t, p, launch{}, "read|"+w.state+"/secret").records)
		require.Nil(t, e)
		require.True(t, report.Active)
	})
	t.Run("no ruleset", func(t *testing.T) {
		p := compile(t, r, Probe())
		o := w.run(t, p, launch{files: map[int]*os.File{handoff.FDRuleset: null}}, "read|"+w.state+"/secret")
		require.Equal(t, "EACCES", o.results["read|"+w.state+"/secret"])
		report, e := p.Report(o.records)
		require.Nil(t, e)
		require.False(t, report.Active)
		require.Contains(t, report.Gaps, GapLandlock)
		require.Equal(t, events.LayerUnavailable, report.Layers["landlock"].State)
	})
	t.Run("no namespaces", func(t *testing.T) {
		s := Probe()
		s.Namespaces, s.NamespacesReason = NamespacesNone, "switched off for a test"
		p := compile(t, r, s)
		require.Zero(t, p.SysProcAttr().Cloneflags)
		o := w.run(t, p, launch{}, "create|"+w.outside+"/new", "create|"+w.workspace+"/new", "status|NoNewPrivs")
		require.Equal(t, "EACCES", o.results["create|"+w.outside+"/new"], o.stderr)
		require.Equal(t, "ok", o.results["create|"+w.workspace+"/new"])
		report, e := p.Report(o.records)
		require.Nil(t, e)
		require.False(t, report.Active)
		require.Equal(t, events.TreeKillSweep, report.TreeKill)
		require.Subset(t, report.Gaps, []string{GapNamespaces, GapHidden, GapSockets, GapMetadata})
		require.Equal(t, events.LayerUnavailable, report.Layers["namespaces"].State)
		require.Equal(t, events.LayerEnforced, report.Layers["landlock"].State)
	})
	t.Run("one mount", func(t *testing.T) {
		p := compile(t, r, Probe())
		p.body.Ops = append(p.body.Ops, layout.Op{Kind: layout.OpMaskDir, Target: "/nonexistent"})
		encoded, err := p.body.Encode()
		require.NoError(t, err)
		o := w.run(t, p, launch{files: map[int]*os.File{handoff.FDPlan: sealedBytes(t, encoded)}}, "read|"+w.state+"/secret")
		require.Equal(t, "EACCES", o.results["read|"+w.state+"/secret"], "the other operations were made")
		report, e := p.Report(o.records)
		require.Nil(t, e)
		require.False(t, report.Active)
		require.Contains(t, report.Gaps, GapMounts)
		require.Contains(t, report.Layers["mounts"].Detail, "/nonexistent")
	})
}

func TestOff(t *testing.T) {
	w := newWorld(t)
	r := w.request()
	r.Profile = "None"
	p := compile(t, r, Probe())
	require.Zero(t, p.SysProcAttr().Cloneflags)
	require.Equal(t, map[string]string{"TMPDIR": w.temp}, p.Env)
	o := w.run(t, p, launch{}, "read|"+w.state+"/secret", "create|"+w.outside+"/new", "fds", "status|NoNewPrivs")
	require.Equal(t, "the store", o.values["read|"+w.state+"/secret"])
	require.Equal(t, "ok", o.results["create|"+w.outside+"/new"])
	require.Equal(t, "0 1 2", o.values["fds"])
	require.Equal(t, "0", o.values["status|NoNewPrivs"])
	require.Zero(t, o.records[len(o.records)-1].Value, "main saw that nothing is enforced")
	report, e := p.Report(o.records)
	require.Nil(t, e)
	require.False(t, report.Active)
	require.Equal(t, "None", report.Requested)
	require.Equal(t, Off, report.Profile)
	require.Equal(t, events.Layer{State: events.LayerNotRequested, Detail: "Sandbox disabled"}, report.Layers["landlock"])
	require.Equal(t, events.LayerEnforced, report.Layers["fds"].State)

	o = w.run(t, p, launch{noStart: true}, "create|"+w.outside+"/ran")
	require.Equal(t, 125, o.state.ExitCode())
	require.NoFileExists(t, w.outside+"/ran")
}

// TestFailNothingWithoutReader starts a child whose coordinator has died: it
// confines itself and goes on.
func TestFailNothingWithoutReader(t *testing.T) {
	for _, profile := range []string{Workspace, Off} {
		t.Run(profile, func(t *testing.T) {
			if profile != Off {
				requireEnforceable(t)
			}
			w := newWorld(t)
			r := w.request()
			r.Profile = profile
			p := compile(t, r, Probe())
			read, write := pipe(t)
			require.NoError(t, read.Close())
			defer write.Close()
			o := w.run(t, p, launch{files: map[int]*os.File{handoff.FDStatus: write}}, "create|"+w.workspace+"/ran")
			require.Zero(t, o.state.ExitCode(), o.stderr)
			require.FileExists(t, w.workspace+"/ran")
		})
	}
}
