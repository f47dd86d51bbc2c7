package proc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/proc"
	"github.com/hayward-dev/hayward/internal/testkit"
)

func TestMain(m *testing.M) { testkit.LeakCheck(m) }

// start starts a process whose name is made to confuse readers of stat.
func start(t *testing.T) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "a) Z 1 (b")
	require.NoError(t, os.Symlink(sleep, name))
	cmd := exec.Command(name, "1000")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait() // killed
		}
	})
	return cmd
}

func TestReadAndSignal(t *testing.T) {
	cmd := start(t)
	p, ok := proc.Read(cmd.Process.Pid)
	require.True(t, ok)
	require.Equal(t, os.Getpid(), p.Parent)
	require.Equal(t, "a) Z 1 (b", p.Name)
	require.True(t, p.Living())
	require.NotZero(t, p.Start)

	living, err := proc.Descendants(os.Getpid())
	require.NoError(t, err)
	require.Len(t, living, 1)
	require.Equal(t, []any{p.PID, p.Start}, []any{living[0].PID, living[0].Start})

	other := p
	other.Start++
	require.NoError(t, other.Signal(unix.SIGKILL), "another process with that pid is left alone")
	require.NoError(t, p.Signal(0))

	require.NoError(t, p.Signal(unix.SIGKILL))
	require.ErrorContains(t, cmd.Wait(), "killed")
	require.NoError(t, p.Signal(unix.SIGKILL), "gone is no error")
	_, ok = proc.Read(p.PID)
	require.False(t, ok)
}

func TestZombiesAreNotLiving(t *testing.T) {
	cmd := start(t)
	pid := cmd.Process.Pid
	require.NoError(t, cmd.Process.Kill())
	var info unix.Siginfo
	require.NoError(t, unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	p, ok := proc.Read(pid)
	require.True(t, ok)
	require.False(t, p.Living())
	living, err := proc.Descendants(os.Getpid())
	require.NoError(t, err)
	require.Empty(t, living)
	require.Error(t, cmd.Wait())
}

func TestPSS(t *testing.T) {
	kib, err := proc.PSS(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, kib, int64(1000), "this program is larger than that")

	cmd := start(t)
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, cmd.Wait(), "killed")
	_, err = proc.PSS(cmd.Process.Pid)
	require.Error(t, err)
}

func TestCount(t *testing.T) {
	n, err := proc.Count()
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 1)
}
