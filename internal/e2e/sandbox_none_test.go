package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// noNamespaces makes this test program the launcher of a command that can have no
// user namespace: a user namespace of its own in which none more are allowed.
const noNamespaces = "HAYWARD_E2E_NO_NAMESPACES"

func init() {
	if os.Getenv(noNamespaces) == "" {
		return
	}
	err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	if err == nil {
		err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	if err == nil {
		env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, noNamespaces+"=") })
		err = syscall.Exec(os.Args[1], os.Args[1:], env)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(99)
}

// Where an ordinary user can have no namespace, a profile is refused with what is
// missing; best effort goes on with what is left and says so.
func TestSandboxWithoutNamespaces(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to give a user a system without user namespaces")
	}
	u := newUser(t, ordinaryUID)
	run := func(args ...string) result {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		cmd := u.command(ctx, append([]string{"sandbox", "exec"}, args...)...)
		self, err := os.Executable()
		require.NoError(t, err)
		cmd.Path, cmd.Args = "/proc/self/exe", append([]string{self}, cmd.Args...)
		cmd.Env = append(cmd.Env, noNamespaces+"=1")
		ids := []syscall.SysProcIDMap{{ContainerID: u.uid, HostID: u.uid, Size: 1}}
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids,
			Credential:  &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid), NoSetGroups: true},
			AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
		}
		return finish(t, cmd)
	}
	for _, profile := range []string{"workspace", "devbox", "read-only", "strict"} {
		r := run("--profile", profile, "--", "touch", "ran")
		require.Equal(t, 126, r.code, "%s%s", r.stdout, r.stderr)
		require.Contains(t, r.stderr, "user namespaces")
		require.Contains(t, r.stderr, "max_user_namespaces")
	}
	require.NoFileExists(t, u.work+"/ran")
	r := run("--profile", "off", "--", "touch", "ran")
	require.Zero(t, r.code, r.stderr)
	require.FileExists(t, u.work+"/ran")
	r = run("--profile", "workspace", "--best-effort", "--", "sh", "-c", "echo x > in && ! (echo x > "+u.home+"/out) 2>/dev/null")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stderr, "the sandbox is not complete: namespaces mounts")
	require.FileExists(t, u.work+"/in")
	require.NoFileExists(t, u.home+"/out")
}
