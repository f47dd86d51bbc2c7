package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A service manager is told that the daemon is ready, lives and leaves, and
// subagents outlive the restart of the service.
func TestServiceManager(t *testing.T) {
	u := newUser(t, os.Getuid())
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(u.home, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer manager.Close()
	require.NoError(t, manager.SetReadDeadline(time.Now().Add(deadline)))
	until := func(want string) {
		t.Helper()
		for b := make([]byte, 1024); ; {
			n, err := manager.Read(b)
			require.NoError(t, err, "waiting for %s", want)
			if strings.HasPrefix(string(b[:n]), want) {
				return
			}
		}
	}
	env := []string{"NOTIFY_SOCKET=" + manager.LocalAddr().String(), "WATCHDOG_USEC=300000"}
	daemon := u.serve(env, "--handover")
	until("READY=1\nSTATUS=serving")
	id := u.detach("--", "sh", "-c", "env; while [ ! -e go ]; do sleep 0.02; done")
	until("WATCHDOG=1\nSTATUS=1 active")
	daemon.signal(syscall.SIGTERM) // KillMode=process: to the daemon alone
	until("STOPPING=1")
	require.NoError(t, daemon.wait())

	u.serve(env, "--handover")
	until("READY=1")
	require.NoError(t, os.WriteFile(filepath.Join(u.work, "go"), nil, 0o644))
	require.Zero(t, u.run("wait", id).code)
	require.NotContains(t, u.run("logs", id).stdout, "NOTIFY_SOCKET", "the manager's socket is not for subagents")
}
