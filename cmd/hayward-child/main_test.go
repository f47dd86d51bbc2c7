package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/child"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/internal/testkit"
	"github.com/hayward-dev/hayward/sandbox"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "forge" {
		os.Exit(forge())
	}
	testkit.LeakCheck(m)
}

// confined is a child that was started through a plan.
type confined struct {
	*testkit.ChildProcess
	plan  *sandbox.Plan
	start *os.File
}

// prepare starts a child that waits on its start pipe.
func prepare(t *testing.T, profile, script string, args ...string) confined {
	t.Helper()
	workspace, temp := testkit.Dir(t), testkit.Dir(t)
	plan, refused := sandbox.Compile(sandbox.Request{
		Profile: profile, Workspace: workspace, Cwd: workspace, TempDir: temp, ChildBinary: testkit.Child(t),
	}, sandbox.Probe())
	if refused != nil && refused.Code == events.CodeSandboxUnavailable {
		t.Skipf("needs an enforceable workspace profile: %v", refused)
	}
	require.Nil(t, refused)
	t.Cleanup(func() { require.NoError(t, plan.Close()) })
	end, start, err := os.Pipe()
	require.NoError(t, err)
	defer end.Close()
	t.Cleanup(func() { _ = start.Close() })
	return confined{plan: plan, start: start, ChildProcess: testkit.StartChild(t, testkit.ChildOptions{
		Binary: testkit.Child(t),
		Spec: events.ChildSpec{
			Argv: append([]string{"sh", "-c", script, "sh"}, args...), Env: []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + plan.TempDir}, Cwd: workspace,
			GraceMS: 5_000, Profile: profile, Enforced: profile != sandbox.Off,
		},
		Sys: plan.SysProcAttr(), Plan: plan.PlanFile, Start: end, Ruleset: plan.RulesetFile, Filter: plan.FilterFile,
	})}
}

// run lets the child go and returns its report.
func (c confined) run(t *testing.T) events.Report {
	t.Helper()
	_, err := c.start.Write([]byte{1})
	require.NoError(t, err)
	var records []handoff.Record
	for r := range c.Records {
		records = append(records, r)
	}
	r := c.Report()
	require.Equal(t, child.ExitReported, c.Wait().ExitCode())
	require.NoError(t, testkit.Processes())
	report, refused := c.plan.Report(records)
	require.Nil(t, refused)
	require.Equal(t, c.plan.Profile().Enforced(), report.Active)
	last := records[len(records)-2:]
	require.Equal(t, []handoff.Step{handoff.StepMain, handoff.StepRunner}, []handoff.Step{last[0].Step, last[1].Step})
	return r
}

var profiles = sandbox.Names

func TestRun(t *testing.T) {
	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			c := prepare(t, profile, `
				ls /proc/$$/fd
				grep -e ^SigBlk -e ^SigIgn /proc/$$/status
				echo data >$TMPDIR/file && cat $TMPDIR/file
				(setsid sleep 1000 &)
				exit 7
			`)
			r := c.run(t)
			require.Nil(t, r.Error)
			require.Equal(t, 7, *r.Exit.Code)
			require.Equal(t, "0\n1\n2\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\ndata\n", string(c.File("stdout.log")), r.StderrTail)
		})
	}
}

// What runs inside the real sandbox cannot end, stop, trace or read its
// supervisor.
func TestHostile(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	tool := filepath.Join(testkit.Dir(t), "tool")
	require.NoError(t, os.WriteFile(tool, self, 0o755))
	c := prepare(t, sandbox.Workspace, `
		for s in $(seq 64); do kill -$s 1; kill -$s $PPID; done
		"$1" forge; code=$?
		cat /proc/1/environ /proc/1/mem && exit 1
		for fd in 5 6 7 8 9 10 11; do
			readlink /proc/1/fd/$fd && exit 2
			head -c 1 /proc/1/fd/$fd && exit 3
			echo forged >>/proc/1/fd/$fd && exit 4
		done
		echo alive
		exit $code
	`, tool)
	r := c.run(t)
	require.Nil(t, r.Error)
	require.Equal(t, "alive\n", string(c.File("stdout.log")), r.StderrTail)
	require.Equal(t, 0, *r.Exit.Code, r.StderrTail)
}

// forge runs inside: queued signals and tracing of the supervisor.
func forge() int {
	for sig := unix.Signal(1); sig <= 64; sig++ {
		fd, err := unix.PidfdOpen(1, 0)
		if err != nil {
			return 10
		}
		if !slices.Contains([]unix.Signal{unix.SIGKILL, unix.SIGSTOP}, sig) {
			info := unix.Siginfo{Signo: int32(sig), Code: -1}
			// The filter may refuse it; what counts is that pid 1 is still there.
			_ = unix.PidfdSendSignal(fd, sig, &info, 0)
		}
		unix.Close(fd)
	}
	if unix.PtraceSeize(1) == nil {
		return 11
	}
	return 0
}

func TestEndOfFileOnTheStartPipeEndsIt(t *testing.T) {
	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			c := prepare(t, profile, `echo ran`)
			require.NoError(t, c.start.Close())
			require.Equal(t, child.ExitRefused, c.Wait().ExitCode())
			require.Empty(t, c.File("stdout.log"))
			require.Empty(t, c.File("report.json"))
		})
	}
}

// Without a plan nothing is run, whatever the other descriptors say.
func TestRefusesWithoutThePlan(t *testing.T) {
	c := testkit.StartChild(t, testkit.ChildOptions{
		Binary: testkit.Child(t),
		Spec:   events.ChildSpec{Argv: []string{"sh", "-c", "echo ran"}, Env: []string{"PATH=" + os.Getenv("PATH")}},
	})
	require.Equal(t, handoff.Record{Step: handoff.StepRefused, Errno: int32(unix.EPERM)}, c.Record(handoff.StepRefused))
	require.Equal(t, child.ExitRefused, c.Wait().ExitCode())
	require.Empty(t, c.File("stdout.log"))
	require.Empty(t, c.File("report.json"))
}

// A plan that does not enforce is no plan for a spec that says it does.
func TestRefusesAPlanThatIsNotTheSpecs(t *testing.T) {
	workspace := testkit.Dir(t)
	plan, refused := sandbox.Compile(sandbox.Request{Profile: sandbox.Off, Workspace: workspace, Cwd: workspace, TempDir: testkit.Dir(t), ChildBinary: testkit.Child(t)}, sandbox.Probe())
	require.Nil(t, refused)
	defer plan.Close()
	end, start, err := os.Pipe()
	require.NoError(t, err)
	defer end.Close()
	defer start.Close()
	_, err = start.Write([]byte{1})
	require.NoError(t, err)
	c := testkit.StartChild(t, testkit.ChildOptions{
		Binary: testkit.Child(t),
		Spec:   events.ChildSpec{Argv: []string{"echo", "ran"}, Env: []string{}, Enforced: true},
		Sys:    plan.SysProcAttr(), Plan: plan.PlanFile, Start: end, Ruleset: plan.RulesetFile, Filter: plan.FilterFile,
	})
	c.Record(handoff.StepRefused)
	r := c.Report()
	require.Equal(t, child.ExitRefused, c.Wait().ExitCode())
	require.Equal(t, events.CodeSandboxFailed, r.Error.Code)
	require.Empty(t, c.File("stdout.log"))
}

func TestOrdinaryUser(t *testing.T) {
	testkit.AsOrdinaryUser(t, "^Test(Run|Hostile|EndOfFile|Refuses)")
}
