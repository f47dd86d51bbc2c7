//go:build linux && cgo

package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ordinaryUID runs the tests again where they start as root.
const ordinaryUID = 65534

// TestOrdinaryUser runs every test of a confined child once more as an ordinary
// user, who needs a user namespace for it.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: these tests already run as an ordinary user")
	}
	probe, err := probeBinary()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "hayward-user-")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	outside, err := os.MkdirTemp("/opt", "hayward-user-")
	require.NoError(t, err)
	defer os.RemoveAll(outside)
	require.NoError(t, os.Chown(outside, ordinaryUID, ordinaryUID))
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/tests", self, 0o755))

	table, err := os.ReadFile(matrixFile())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/matrix.md", table, 0o644))

	cmd := exec.CommandContext(t.Context(), dir+"/tests", "-test.v", "-test.run", "^Test(Confined|Fail|BestEffort|Off|Compile)")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), probeVariable+"="+probe, outsideVariable+"="+outside, matrixVariable+"="+dir+"/matrix.md", "HOME=/nonexistent", "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUID, Gid: ordinaryUID}}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "SKIP") {
			t.Log(strings.TrimSpace(line))
		}
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestConfinedFiles", "%s", out)
}

// expectation is an action and the results that are right for it.
type expectation struct {
	action string
	want   []string
}

func may(format string, a ...any) expectation {
	return expectation{fmt.Sprintf(format, a...), []string{"ok"}}
}

func mayNot(action string, errnos ...string) expectation { return expectation{action, errnos} }

func (w *world) check(t *testing.T, r Request, all []expectation) {
	t.Helper()
	var actions []string
	for _, x := range all {
		actions = append(actions, x.action)
	}
	o := w.confined(t, r, actions...)
	for _, x := range all {
		require.Containsf(t, x.want, o.results[x.action], "%s: %s", x.action, o.stderr)
	}
}

func TestConfinedFiles(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	denied := []string{"EACCES", "EROFS", "EPERM"}
	put(t, w.workspace+"/old", "mine")
	put(t, w.workspace+"/doomed", "")
	shared, err := os.CreateTemp("/var/tmp", "hayward-test-")
	require.NoError(t, err)
	defer os.Remove(shared.Name())
	require.NoError(t, shared.Close())
	w.check(t, w.request(), []expectation{
		may("create|%s/new", w.workspace), may("write|%s/old", w.workspace), may("mkdir|%s/dir", w.workspace),
		may("rename|%s/new|%s/dir/new", w.workspace, w.workspace), may("unlink|%s/doomed", w.workspace),
		may("link|%s/old|%s/dir/link", w.workspace, w.workspace), may("truncate|%s/old", w.workspace),
		may("chmod|%s/old|0600", w.workspace), may("create|%s/t", w.temp), may("create|%s/c", w.cache),
		may("create|/tmp/%s/t", filepath.Base(w.base)), may("write|%s", shared.Name()),
		may("read|%s/file", w.outside), may("exec|/bin/true"), may("read|%s/input", w.temp),
		may("write|/dev/null"), may("read|/etc/passwd"),

		mayNot("write|"+w.outside+"/file", denied...), mayNot("append|"+w.outside+"/file", denied...),
		mayNot("create|"+w.outside+"/new", denied...), mayNot("mkdir|"+w.outside+"/new", denied...),
		mayNot("unlink|"+w.outside+"/file", denied...), mayNot("truncate|"+w.outside+"/file", denied...),
		mayNot("rename|"+w.outside+"/file|"+w.workspace+"/stolen", append(denied, "EXDEV")...),
		mayNot("link|"+w.outside+"/file|"+w.workspace+"/linked", append(denied, "EXDEV")...),
		// Landlock alone lets these pass.
		mayNot("chmod|"+w.outside+"/file|0777", denied...), mayNot("touch|"+w.outside+"/file", denied...),
		mayNot("write|"+w.temp+"/input", denied...), mayNot("unlink|"+w.temp+"/input", append(denied, "EBUSY")...),
		mayNot("chmod|"+w.workspace+"/old|04755", "EPERM"),
		mayNot("mknod|"+w.workspace+"/disk|0060600|0x800", denied...),
		mayNot("mknod|"+w.workspace+"/null|0020600|0x103", denied...),
	})
	require.FileExists(t, w.workspace+"/dir/new")
	b, err := os.ReadFile(w.outside + "/file")
	require.NoError(t, err)
	require.Equal(t, "theirs", string(b))
}

func TestConfinedHiddenDirectories(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	pinned := []string{"EBUSY", "EACCES", "EROFS", "EXDEV"}
	listener, err := net.Listen("unix", w.state+"/bus/bus.sock")
	require.NoError(t, err)
	defer listener.Close()
	w.check(t, w.request(), []expectation{
		mayNot("list|"+w.state, "EACCES"), mayNot("read|"+w.state+"/secret", "EACCES"),
		mayNot("create|"+w.state+"/new", "EACCES", "EROFS"), mayNot("connect|"+w.state+"/bus/bus.sock", "EACCES"),
		mayNot("exec|"+w.probe+"|act", "fork/exec "+w.probe+": permission denied", "EACCES"),
		// Neither the directory nor any ancestor of it in a writable root moves.
		mayNot("rename|"+w.state+"|"+w.base+"/away", pinned...),
		mayNot("rename|"+w.base+"/deep|"+w.base+"/away", pinned...),
		mayNot("rename|"+w.base+"|/tmp/away", pinned...),
		mayNot("umount|"+w.state, "EPERM"), mayNot("remount|"+w.state, "EPERM"), mayNot("umount|"+w.base, "EPERM"),
		mayNot("mount|"+w.workspace, "EPERM"), mayNot("chmod|"+w.state+"|0755", "EROFS", "EPERM"),
		// The supervisor's own way to the bus goes around the mask, a command's does not.
		{"supervisor:connect|/proc/self/fd/7/bus.sock", []string{"ok"}},
		mayNot("connect|/proc/self/fd/7/bus.sock", "ENOENT", "ENOTDIR", "EACCES"),
		mayNot("connect|/proc/1/fd/7/bus.sock", "EACCES", "EPERM"),
		mayNot("read|/proc/1/root"+w.state+"/secret", "EACCES", "EPERM"),
	})
	inside := w.confined(t, w.request(), "nested|umount|"+w.state, "nested|read|"+w.state+"/secret")
	for action, result := range inside.results {
		require.NotContains(t, inside.values[action], `"result":"ok"`, action)
		require.Contains(t, []string{"ok", "EPERM", "fork/exec /proc/self/exe: operation not permitted"}, result)
	}
	b, err := os.ReadFile(w.state + "/secret")
	require.NoError(t, err)
	require.Equal(t, "the store", string(b), "the mask must not be visible outside")
}

func TestConfinedProcesses(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	self := strconv.Itoa(os.Getpid())
	o := w.confined(t, w.request(),
		"procs", "kill|"+self+"|0", "kill|1|9", "ptrace|1", "vmread|1", "read|/proc/1/environ", "read|/proc/1/mem",
		"readlink|/proc/1/exe", "prlimit|1", "prlimit|0", "readlink|/proc/1/fd/7", "append|/proc/1/fd/8", "fds", "readlink|/proc/self",
		"read|/proc/sys/kernel/pid_max", "write|/proc/sys/kernel/pid_max", "write|/proc/self/oom_score_adj",
		"supervisor:kill|"+self+"|0")
	require.Equal(t, "0 1 2", o.values["fds"], "a command's descriptors")
	pids := strings.Fields(o.values["procs"])
	require.Len(t, pids, 2, "only the supervisor and the command are seen: %v", pids)
	require.Equal(t, "1", pids[0])
	require.Equal(t, pids[1], o.values["readlink|/proc/self"])
	require.Equal(t, "ESRCH", o.results["kill|"+self+"|0"])
	require.Equal(t, "ESRCH", o.results["supervisor:kill|"+self+"|0"])
	require.Equal(t, "ok", o.results["kill|1|9"], "a signal to pid 1 is swallowed")
	for _, a := range []string{"ptrace|1", "vmread|1", "prlimit|1", "read|/proc/1/environ", "read|/proc/1/mem",
		"readlink|/proc/1/exe", "readlink|/proc/1/fd/7", "append|/proc/1/fd/8", "write|/proc/sys/kernel/pid_max", "write|/proc/self/oom_score_adj"} {
		require.Contains(t, []string{"EPERM", "EACCES"}, o.results[a], a)
	}
	require.Equal(t, "ok", o.results["prlimit|0"])
	if Probe().PIDMax {
		require.Equal(t, strconv.Itoa(reservedPIDs+ProcessLimit), strings.TrimSpace(o.values["read|/proc/sys/kernel/pid_max"]))
	}
}

func TestConfinedPrivileges(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	core := fmt.Sprintf("limit|%d", unix.RLIMIT_CORE)
	fields := []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters"}
	actions := []string{"busy|8", "supervisor:busy|8", core, "env|PATH"}
	for _, f := range fields {
		actions = append(actions, "status|"+f, "supervisor:status|"+f)
	}
	o := w.confined(t, w.request(), actions...)
	for _, who := range []string{"", "supervisor:"} {
		n, err := strconv.Atoi(o.values[who+"busy|8"])
		require.NoError(t, err)
		require.Greater(t, n, 8, "the question is about several threads")
		for _, f := range fields[:5] {
			require.Equal(t, "0000000000000000", o.values[who+"status|"+f], f)
		}
		require.Equal(t, "1", o.values[who+"status|NoNewPrivs"])
		require.Equal(t, "2", o.values[who+"status|Seccomp"])
		require.Equal(t, "1", o.values[who+"status|Seccomp_filters"])
	}
	require.Equal(t, "0 0", o.values[core])
	require.Empty(t, o.values["env|PATH"], "the environment of the parent must not come through")
}

func TestConfinedKernelSurface(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	name := fmt.Sprintf("@hayward-test-%d", os.Getpid())
	abstract, err := net.Listen("unix", name)
	require.NoError(t, err)
	defer abstract.Close()
	family := "EAFNOSUPPORT"
	all := []expectation{
		mayNot("connect|"+name, "EPERM"),
		may("socket|%d|%d|0", unix.AF_UNIX, unix.SOCK_STREAM), may("socket|%d|%d|0", unix.AF_INET, unix.SOCK_STREAM),
		may("socket|%d|%d|0", unix.AF_INET, unix.SOCK_DGRAM), may("socket|%d|%d|0", unix.AF_INET6, unix.SOCK_STREAM),
		may("socket|%d|%d|0", unix.AF_NETLINK, unix.SOCK_RAW),
		mayNot(fmt.Sprintf("socket|%d|%d|%d", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT), family),
		mayNot(fmt.Sprintf("socket|%d|%d|0", unix.AF_INET, unix.SOCK_RAW), "EPERM", "EPROTONOSUPPORT"),
	}
	for _, f := range []int{unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG, unix.AF_XDP, unix.AF_BLUETOOTH, unix.AF_CAN, unix.AF_KEY, unix.AF_AX25, unix.AF_RDS} {
		all = append(all, mayNot(fmt.Sprintf("socket|%d|%d|0", f, unix.SOCK_RAW), family))
	}
	for _, nr := range []int{
		unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_FSCONFIG, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
		unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR, unix.SYS_PIVOT_ROOT, unix.SYS_SETNS,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	} {
		all = append(all, mayNot(fmt.Sprintf("syscall|%d", nr), "EPERM"))
	}
	for _, nr := range []int{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
		all = append(all, mayNot(fmt.Sprintf("syscall|%d", nr), "ENOSYS"))
	}
	for _, namespace := range []int{unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWIPC} {
		all = append(all, mayNot(fmt.Sprintf("syscall|%d|%d", unix.SYS_UNSHARE, namespace), "EPERM"))
	}
	for _, request := range []int{unix.TIOCSTI, unix.TIOCLINUX} {
		all = append(all, mayNot(fmt.Sprintf("ioctl|/dev/ptmx|%#x", request), "EPERM"))
	}
	all = append(all, may("ioctl|/dev/ptmx|%#x", unix.TIOCGWINSZ), mayNot("chroot|/", "EPERM"))
	w.check(t, w.request(), all)
}

// TestConfinedForeignCalls tries system calls that meet no rule of a filter
// without an architecture check.
func TestConfinedForeignCalls(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	for _, call := range []string{"int80", "x32"} {
		t.Run(call, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), w.probe, "act", call).Output()
			if err != nil || !strings.Contains(string(out), `"result":"ok"`) {
				t.Skipf("needs the %s ABI: it fails outside of a sandbox too: %v %s", call, err, out)
			}
			w.check(t, w.request(), []expectation{mayNot(call, "ENOSYS")})
		})
	}
}

func TestConfinedHostSockets(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	var paths []string
	for _, dir := range []string{w.outside, w.base, w.workspace} {
		path := dir + "/host.sock"
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		defer l.Close()
		paths = append(paths, path)
	}
	w.check(t, w.request(), []expectation{
		mayNot("connect|"+paths[0], "ECONNREFUSED", "EACCES"),
		mayNot("connect|"+paths[1], "ECONNREFUSED", "EACCES"),
		may("connect|%s", paths[2]),
		mayNot("rename|"+paths[1]+"|"+w.base+"/away", "EBUSY", "EXDEV"),
	})
}

// TestConfinedFlood shows that the process limit holds: the bound of the PID
// namespace is set before anything of the command runs.
func TestConfinedFlood(t *testing.T) {
	requireEnforceable(t)
	s := Probe()
	if s.Root && !s.PIDMax && s.Namespaces != NamespacesUser {
		t.Skip("needs kernel 6.14: nothing older bounds the processes of root in a PID namespace")
	}
	w := newWorld(t)
	most := reservedPIDs + ProcessLimit
	flood := fmt.Sprintf("flood|%d", most+1)
	o := w.confined(t, w.request(), flood)
	require.Equal(t, "EAGAIN", o.results[flood])
	n, err := strconv.Atoi(o.values[flood])
	require.NoError(t, err)
	require.Less(t, n, most)
	require.Greater(t, n, ProcessLimit*9/10)
}
