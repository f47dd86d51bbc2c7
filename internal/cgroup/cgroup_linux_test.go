package cgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func find(t *testing.T, controller string) Parent {
	t.Helper()
	p, err := Find(controller)
	switch {
	case err == nil:
	case controller == Unified:
		t.Skipf("needs a writable cgroup v2: %v", err)
	default:
		t.Skipf("needs a writable %s cgroup: %v", controller, err)
	}
	return p
}

func TestGroupsGoAroundTheDaemonOfAService(t *testing.T) {
	const unit = "/user.slice/user-1000.slice/user@1000.service/app.slice/hayward.service"
	require.Equal(t, unit, around(unit+"/"+Subgroup, true))
	require.Equal(t, unit, around(unit, true))
	require.Equal(t, unit+"/"+Subgroup, around(unit+"/"+Subgroup, false), "a group of v1 lends in any case")
	require.Equal(t, "/user.slice/daemon", around("/user.slice/daemon", true), "that is nobody's unit")
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func newGroup(t *testing.T, controller string) Group {
	t.Helper()
	p := find(t, controller)
	g, err := p.Make(within(t), "hayward-test-"+filepath.Base(t.TempDir())+t.Name()[4:8])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Remove(context.Background())) })
	return g
}

// startIn runs a command in the group and returns once it is in there.
func startIn(t *testing.T, g Group, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `read go && exec "$@"`, "sh"}, argv...)...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, g.Join(cmd.Process.Pid))
	_, err = in.Write([]byte("go\n"))
	require.NoError(t, err)
	require.NoError(t, in.Close())
	return cmd
}

// All that is in a group ends, also what began a session of its own.
func TestEnd(t *testing.T) {
	for _, controller := range []string{Unified, "memory", "pids"} {
		t.Run("controller "+controller, func(t *testing.T) {
			g := newGroup(t, controller)
			cmd := startIn(t, g, "sh", "-c", "setsid sleep 650 & sleep 650")
			for g.Left() < 3 {
				require.NoError(t, within(t).Err())
				time.Sleep(time.Millisecond) // nothing announces a fork
			}
			left, err := g.End(within(t))
			require.NoError(t, err)
			require.Zero(t, left)
			require.Error(t, cmd.Wait())
			require.Zero(t, g.Left())
		})
	}
}

// What an earlier coordinator left under the name is ended and replaced.
func TestMakeReplaces(t *testing.T) {
	for _, controller := range []string{Unified, "memory"} {
		t.Run("controller "+controller, func(t *testing.T) {
			g := newGroup(t, controller)
			cmd := startIn(t, g, "sleep", "651")
			again, err := Parent{Dir: filepath.Dir(g.Dir), V2: g.V2}.Make(within(t), filepath.Base(g.Dir))
			require.NoError(t, err)
			require.Equal(t, g, again)
			require.Error(t, cmd.Wait())
			require.Zero(t, again.Left())
		})
	}
}

func TestOpen(t *testing.T) {
	for _, controller := range []string{Unified, "memory"} {
		t.Run("controller "+controller, func(t *testing.T) {
			g := newGroup(t, controller)
			found, err := Open(g.Dir)
			require.NoError(t, err)
			require.Equal(t, g, found)
		})
	}
	_, err := Open(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open("")
	require.Error(t, err)
}

func TestLimitMemory(t *testing.T) {
	g := newGroup(t, "memory")
	require.NoError(t, g.LimitMemory(32<<20))
	out, err := g.OutOfMemory()
	require.NoError(t, err)
	require.False(t, out)

	// tail keeps what it reads until there is a line.
	require.Error(t, startIn(t, g, "sh", "-c", "exec head -c 200M /dev/zero | tail").Wait())
	out, err = g.OutOfMemory()
	require.NoError(t, err)
	require.True(t, out)
}

func TestLimitProcesses(t *testing.T) {
	g := newGroup(t, "pids")
	require.NoError(t, g.LimitProcesses(1))
	require.Error(t, startIn(t, g, "sh", "-c", "sleep 0 & wait $!").Wait())
}

func TestRemoveOfWhatIsGone(t *testing.T) {
	g := newGroup(t, Unified)
	require.NoError(t, g.Remove(within(t)))
	require.NoError(t, g.Remove(within(t)))
	require.NoError(t, g.Kill())
}

func TestFindNoController(t *testing.T) {
	_, err := Find("no-such-controller")
	require.ErrorIs(t, err, ErrNone)
}
