package child_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/diskspace"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/internal/proc"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// place is where a supervisor runs: both must end everything.
type place struct {
	name string
	sys  *syscall.SysProcAttr
}

// places are a PID namespace of its own, and none (profile off).
func places(t *testing.T) []place {
	t.Helper()
	inside := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	if os.Getuid() != 0 {
		inside.Cloneflags |= unix.CLONE_NEWUSER
		inside.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		inside.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return []place{{"pid namespace", inside}, {"off", &syscall.SysProcAttr{Setsid: true}}}
}

// namespace is the first place, where it can be had.
func namespace(t *testing.T) place {
	t.Helper()
	p := places(t)[0]
	cmd := exec.Command("true")
	cmd.SysProcAttr = p.sys
	if err := cmd.Run(); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skipf("needs user namespaces: %v", err)
	}
	return p
}

// everywhere runs a test in each place.
func everywhere(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("pid namespace", func(t *testing.T) { test(t, namespace(t)) })
	t.Run("off", func(t *testing.T) { test(t, places(t)[1]) })
}

// live is a child that is connected to a bus, with its command running.
type live struct {
	*testkit.ChildProcess
	bus *testBus
}

func startLive(t *testing.T, p place, spec events.ChildSpec) live {
	t.Helper()
	bus := startBus(t)
	spec.ID, spec.Token = events.NewID(), "secret"
	bus.grant(spec.ID, spec.Token)
	return live{testkit.StartChild(t, testkit.ChildOptions{Spec: spec, BusDir: bus.dir, Sys: p.sys}), bus}
}

// says waits until the last line of output is line.
func (l live) says(t *testing.T, line string) {
	t.Helper()
	l.bus.await(t, l.ID, func(h events.Heartbeat) bool { return h.Progress.LastLine == line })
}

func (l live) stop(t *testing.T, reason events.Reason) {
	t.Helper()
	require.True(t, l.bus.send(t, l.ID, events.Control{Kind: events.ControlStop, Reason: reason}).OK)
}

func (l live) requireEnd(t *testing.T) events.Report {
	t.Helper()
	r := l.Report()
	require.Equal(t, 0, l.Wait().ExitCode())
	require.NoError(t, testkit.Processes())
	return r
}

func TestStopIsGraceful(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		l := startLive(t, p, shell(`exec 2>/dev/null; trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done`))
		l.says(t, "up")
		result := l.bus.reports(t, l.ID, events.ChildResult)
		l.stop(t, events.ReasonParent)
		r := l.requireEnd(t)
		requireCode(t, 5, r)
		require.Equal(t, events.ReasonParent, r.Ended)
		require.Equal(t, "bye", r.LastLine)
		require.Equal(t, r, next[events.Report](t, result), "the fast copy is the report")
	})
}

func TestStopClosesStdin(t *testing.T) {
	spec := shell(`trap '' TERM; echo up; cat; echo eof; exit 6`)
	spec.Stdin = events.StdinStream
	l := startLive(t, place{}, spec)
	l.says(t, "up")
	l.stop(t, events.ReasonUser)
	r := l.requireEnd(t)
	requireCode(t, 6, r)
	require.Equal(t, "up\neof\n", string(l.File("stdout.log")))
}

func TestStopEscalates(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		spec := shell(`trap '' TERM; (trap '' TERM; setsid sleep 1000) & echo up; while :; do sleep 0.01; done`)
		spec.GraceMS = 100
		l := startLive(t, p, spec)
		l.says(t, "up")
		l.stop(t, events.ReasonPrompt)
		r := l.requireEnd(t)
		requireSignal(t, "SIGKILL", r)
		require.Equal(t, events.ReasonPrompt, r.Ended)
	})
}

func TestStopReachesAStoppedCommand(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		l := startLive(t, p, shell(`echo up; kill -STOP $$`))
		runner := l.Record(handoff.StepRunner)
		l.says(t, "up")
		if p.name == "off" {
			awaitState(t, int(runner.Value), 'T')
		}
		l.stop(t, events.ReasonUser)
		requireSignal(t, "SIGTERM", l.requireEnd(t))
	})
}

func awaitState(t *testing.T, pid int, state byte) {
	t.Helper()
	require.Eventually(t, func() bool {
		p, ok := proc.Read(pid)
		return ok && p.State == state
	}, testkit.Patience, time.Millisecond)
}

func TestStopAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		l := startLive(t, p, shell(`while :; do sleep 0.01; done`))
		l.stop(t, events.ReasonUser)
		r := l.requireEnd(t)
		requireSignal(t, "SIGTERM", r)
		require.Equal(t, events.ReasonUser, r.Ended)
	})
}

func TestDeadline(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		spec := shell(`while :; do sleep 0.01; done`)
		spec.MaxRuntimeMS = 100
		c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, Sys: p.sys})
		r := c.Report()
		requireSignal(t, "SIGTERM", r)
		require.Equal(t, events.ReasonDeadline, r.Ended)
		require.NoError(t, testkit.Processes())
	})
}

// Silence counts from the last output, on either stream.
func TestIdleTimeout(t *testing.T) {
	spec := shell(`for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; echo $i >&2; sleep 0.1; done; sleep 1000`)
	spec.IdleTimeoutMS = 700
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec})
	r := c.Report()
	requireSignal(t, "SIGTERM", r)
	require.Equal(t, events.ReasonIdle, r.Ended)
	require.Equal(t, "1\n2\n3\n4\n5\n6\n7\n8\n", string(c.File("stdout.log")), "it spoke for longer than that")
	require.NoError(t, testkit.Processes())
}

// What a command leaves behind is ended with it: in its group, in sessions of
// their own, orphaned twice, deaf to SIGTERM, and while it holds the output.
func TestNothingIsLeftBehind(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		spec := shell(`
			sleep 1000 &
			(setsid sh -c 'trap "" TERM HUP; sleep 1000 & wait' &)
			for i in 1 2 3; do (setsid sh -c 'setsid sleep 1000 & (setsid sleep 1000 &)' &); done
			echo done
		`)
		c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, Sys: p.sys})
		r := c.Report()
		requireCode(t, 0, r)
		require.Equal(t, "done\n", string(c.File("stdout.log")))
		require.NoError(t, testkit.Processes())
		for _, item := range c.Transcript() {
			require.NotContains(t, item.Text, "held open")
		}
	})
}

// A process out of reach that holds the output pipe does not hold up the end.
func TestAnEscapedHolderOfTheOutputIsLeft(t *testing.T) {
	l := startLive(t, place{}, shell(`echo up; read line </dev/zero`))
	runner := l.Record(handoff.StepRunner)
	l.says(t, "up")
	holder, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", runner.Value), os.O_WRONLY, 0)
	require.NoError(t, err)
	l.stop(t, events.ReasonUser)
	l.requireEnd(t)
	require.NoError(t, holder.Close())
	require.Contains(t, transcriptText(l.ChildProcess), "stdout was still held open")
}

func transcriptText(c *testkit.ChildProcess) string {
	var all []string
	for _, item := range c.Transcript() {
		all = append(all, item.Text)
	}
	return strings.Join(all, "\n")
}

// Orphans are buried while the command runs, and never the command itself.
func TestOrphansAreReaped(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		spec := shell(`for i in $(seq 100); do (true &); done; echo up; read line; exit 8`)
		spec.Stdin = events.StdinStream
		l := startLive(t, p, spec)
		l.says(t, "up")
		require.Eventually(t, func() bool { return zombies(t, l.PID) == 0 }, testkit.Patience, 5*time.Millisecond)
		l.bus.send(t, l.ID, events.Control{Kind: events.ControlStdin, EOF: true})
		requireCode(t, 8, l.requireEnd(t))
	})
}

// zombies counts the dead children of a process.
func zombies(t *testing.T, parent int) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := proc.Read(pid); ok && p.Parent == parent && !p.Living() {
				n++
			}
		}
	}
	return n
}

// What runs inside cannot end or stop its supervisor.
func TestSupervisorSurvivesSignalsFromInside(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		script := `
			for s in $(seq 64); do
				case $s in 9|19|32|33|34) test "$1" = off && continue ;; esac
				kill -$s $PPID
			done
			"$2" forge-faults $PPID || exit 1
			echo alive
			exit 9
		`
		self, err := os.Executable()
		require.NoError(t, err)
		c := testkit.StartChild(t, testkit.ChildOptions{Spec: shell(script, p.name, self), Sys: p.sys})
		r := c.Report()
		requireCode(t, 9, r)
		require.Equal(t, "forged\nalive\n", string(c.File("stdout.log")), r.StderrTail)
		require.Equal(t, 0, c.Wait().ExitCode())
	})
}

func TestAllProcessesKilledFromInside(t *testing.T) {
	// Only where it cannot reach beyond the subagent.
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: shell(`kill -STOP 1; kill -KILL 1; kill -TERM $PPID; kill -KILL -1; exit 9`), Sys: namespace(t).sys})
	// kill -1 spares its sender.
	r := c.Report()
	requireCode(t, 9, r)
}

// The end of the supervisor is the end of the tree.
func TestKilledSupervisorTakesTheTreeAlong(t *testing.T) {
	l := startLive(t, namespace(t), shell(`(setsid sleep 1000 &); echo up; sleep 1000`))
	l.says(t, "up")
	l.Signal(unix.SIGKILL)
	l.Wait()
	require.NoError(t, testkit.Processes())
	require.Empty(t, l.File("report.json"))
}

func TestOutputThatCannotBeKeptFailsTheRun(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer full.Close()
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: shell(`yes | head -c 3000000; echo kept >&2; exit 0`), Stdout: full})
	r := c.Report()
	require.NotNil(t, r.Error)
	require.Equal(t, events.CodeStorageFull, r.Error.Code, "%v", r.Error)
	require.Equal(t, 0, *r.Exit.Code, "the command could go on and end")
	require.Equal(t, []int64{0, 5}, []int64{r.StdoutBytes, r.StderrBytes})
	require.Contains(t, transcriptText(c), "output is lost")
}

// Output leaves of its disk what the coordinator needs to record the end.
func TestOutputLeavesSpace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m,mode=0700"); errors.Is(err, unix.EPERM) {
		t.Skipf("needs the right to mount: %v", err)
	} else {
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	out, err := os.OpenFile(filepath.Join(dir, "stdout.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer out.Close()
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: shell(`head -c 20000000 /dev/zero; exit 0`), Stdout: out})
	r := c.Report()
	require.NotNil(t, r.Error)
	require.Equal(t, events.CodeStorageFull, r.Error.Code, "%v", r.Error)
	require.Equal(t, 0, *r.Exit.Code, "the command could go on and end")
	require.Contains(t, transcriptText(c), "have to stay free")
	free, size, err := diskspace.Free(int(out.Fd()))
	require.NoError(t, err)
	require.InDelta(t, diskspace.Output(size), free, 64<<10)
	require.InDelta(t, size-free, r.StdoutBytes, 64<<10)
}
