package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/testkit"
)

func TestMain(m *testing.M) { testkit.LeakCheck(m) }

// supervise starts a shell under the name of a supervisor from dir, with a process
// below it. Both have said that they run when it returns.
func supervise(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	content, err := os.ReadFile(sh)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	program := filepath.Join(dir, supervisorName)
	require.NoError(t, os.WriteFile(program, content, 0o700))
	cmd := exec.Command(program, "-c", "exec 3<&0; cat <&3 & echo began; wait; exit 3")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = in.Close() // the cat below ends, whatever became of the shell
		if cmd.ProcessState == nil {
			require.Error(t, cmd.Wait())
		}
	})
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd
}

func TestCensus(t *testing.T) {
	state := t.TempDir()
	c, err := newCensus(state)
	require.NoError(t, err)
	require.NoError(t, c.look())

	first := supervise(t, filepath.Join(state, "bin"))
	supervise(t, filepath.Join(t.TempDir(), "bin")) // of another state directory
	require.NoError(t, c.look())
	n := c.count()
	require.Len(t, n.Supervisors, 1)
	require.Equal(t, first.Process.Pid, n.Supervisors[0].PID)
	require.Equal(t, []string{"cat"}, n.Supervisors[0].Processes)
	require.Equal(t, []int{1, 2}, []int{n.MostSupervisors, n.MostProcesses})
	require.Len(t, n.Left, 2)

	// A zombie does not count, but what it leaves behind does.
	require.NoError(t, first.Process.Kill())
	var info unix.Siginfo
	require.NoError(t, unix.Waitid(unix.P_PID, first.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	require.NoError(t, c.look())
	n = c.count()
	require.Len(t, n.Supervisors, 1)
	require.Len(t, n.Left, 1)
	require.Contains(t, n.Left[0], "cat")
	require.Equal(t, 2, n.MostProcesses)
}
