package spawner

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestStartTime(t *testing.T) {
	tail := " S " + strings.Repeat("0 ", 18) + "4242 " + strings.Repeat("0 ", 10)
	for name, comm := range map[string]string{
		"plain": "sh", "spaces": "a b c", "parentheses": "x) S 1 (y", "empty": "",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := startTime("17 (" + comm + ")" + tail)
			require.NoError(t, err)
			require.Equal(t, uint64(4242), got)
		})
	}
	for _, bad := range []string{"", "17", "17 (sh", "17 (sh)", "17 (sh) S 1 2"} {
		_, err := startTime(bad)
		require.Error(t, err, bad)
	}
}

func FuzzStartTime(f *testing.F) {
	f.Add("17 (sh) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 12345 0")
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = startTime(s) // must not panic
	})
}

// A reused pid must never be taken for the child that had it before: same pid,
// another start time.
func TestIdentityTellsProcessesApart(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	id, err := identityOf(cmd.Process.Pid)
	require.NoError(t, err)
	require.NotZero(t, id.StartTime)
	require.NotEmpty(t, id.BootID)
	self, err := identityOf(os.Getpid())
	require.NoError(t, err)
	require.Equal(t, self.PIDNamespace, id.PIDNamespace)
	require.Equal(t, self.BootID, id.BootID)

	again, err := identityOf(cmd.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, id, again)
}

func TestProcessEndIsSeen(t *testing.T) {
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own %v", own), func(t *testing.T) {
			cmd := exec.Command("sleep", "60")
			require.NoError(t, cmd.Start())
			pidfd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
			require.NoError(t, err)
			p, err := newProcess(cmd.Process.Pid, pidfd, own)
			require.NoError(t, err)
			require.NoError(t, p.kill())
			require.True(t, p.waitGone(10*time.Second))
			require.NoError(t, p.kill(), "killing what has ended is no error")
			p.close()
			if own {
				require.True(t, p.known)
				require.True(t, p.state.Signaled())
				_, err := os.Stat("/proc/" + strconv.Itoa(cmd.Process.Pid))
				require.ErrorIs(t, err, os.ErrNotExist, "it must have been reaped")
			} else {
				require.Error(t, cmd.Wait())
			}
		})
	}
}

// Giving a process up leaves it alone.
func TestProcessCloseLeavesIt(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	pidfd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	require.NoError(t, err)
	p, err := newProcess(cmd.Process.Pid, pidfd, true)
	require.NoError(t, err)
	p.close()
	require.False(t, p.waitGone(0))
	require.NoError(t, unix.Kill(cmd.Process.Pid, 0))
}
