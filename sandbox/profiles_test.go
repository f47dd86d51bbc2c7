//go:build linux && cgo

package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// under is a request for a profile whose TMPDIR is one of several below a root.
func (w *world) under(t testing.TB, profile string) Request {
	t.Helper()
	r := w.request()
	r.Profile = profile
	r.TempRoot = w.base + "/temps"
	r.TempDir = r.TempRoot + "/own"
	if p, _ := ParseProfile(profile); p.Base() == Strict {
		w.command = w.workspace + "/.probe"
		b, err := os.ReadFile(w.probe)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(w.command, b, 0o755))
	}
	require.NoError(t, os.MkdirAll(r.TempDir, 0o700))
	require.NoError(t, os.MkdirAll(r.TempRoot+"/other", 0o700))
	put(t, r.TempRoot+"/other/file", "another subagent's")
	put(t, r.TempDir+"/input", "")
	r.Inputs = []Bind{{Source: w.state + "/stdout.log", Target: r.TempDir + "/input"}}
	return r
}

var refusals = []string{"EACCES", "EROFS", "EPERM"}

func TestConfinedDevbox(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	w.check(t, w.under(t, "DevBox"), []expectation{
		may("create|%s/new", w.outside), may("create|%s/new", w.workspace), may("read|/etc/passwd"),
		mayNot("write|/proc/sys/kernel/pid_max", refusals...), mayNot("create|/dev/new", refusals...),
		mayNot("create|/new", refusals...), mayNot("create|/boot/new", append(refusals, "ENOENT")...),
		mayNot("list|"+w.state, "EACCES"), mayNot("rename|"+w.base+"/deep|"+w.base+"/away", "EBUSY", "EXDEV"),
		may("socket|%d|%d|0", unix.AF_INET, unix.SOCK_STREAM), mayNot(fmt.Sprintf("syscall|%d", unix.SYS_BPF), "EPERM"),
	})
}

func TestConfinedReadOnly(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	put(t, w.workspace+"/file", "mine")
	r := w.under(t, "read_only")
	w.check(t, r, []expectation{
		may("read|%s/file", w.workspace), may("read|%s/file", w.outside), may("create|%s/t", r.TempDir),
		may("create|/tmp/%s/t", filepath.Base(w.base)), may("read|%s/input", r.TempDir),
		// The workspace lies below /tmp, which is writable; it is not.
		mayNot("create|"+w.workspace+"/new", refusals...), mayNot("write|"+w.workspace+"/file", refusals...),
		mayNot("chmod|"+w.workspace+"/file|0777", refusals...), mayNot("unlink|"+w.workspace+"/file", append(refusals, "EBUSY")...),
		mayNot("rename|"+w.workspace+"|"+w.base+"/away", "EBUSY", "EXDEV", "EROFS"),
		mayNot("create|"+w.outside+"/new", refusals...),
		mayNot(fmt.Sprintf("socket|%d|%d|0", unix.AF_INET, unix.SOCK_STREAM), "EACCES"),
		may("socket|%d|%d|0", unix.AF_UNIX, unix.SOCK_STREAM),
	})
	require.NotContains(t, compile(t, r, Probe()).Env, "GOCACHE")
}

func TestConfinedStrict(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	tools := w.outside + "/tools"
	require.NoError(t, os.Mkdir(tools, 0o755))
	put(t, tools+"/tool", "#!/bin/sh\n")
	put(t, w.workspace+"/file", "mine")
	r := w.under(t, Strict)
	r.Path = tools + ":/usr/bin::relative:/nonexistent:" + w.state + "/bin"
	plan := compile(t, r, Probe())
	require.Equal(t, "/tmp", plan.TempDir)
	require.Equal(t, "/tmp", plan.Env["TMPDIR"])
	require.Equal(t, "/tmp/input", plan.Inside(r.TempDir+"/input"))
	require.Equal(t, events.NetworkNone, plan.Network)
	w.check(t, r, []expectation{
		may("read|%s/file", w.workspace), may("create|%s/new", w.workspace), may("create|%s/new", w.cache),
		may("read|/proc/self/status"), may("list|/proc"), mayNot("read|/proc/1/mem", "EACCES", "EPERM"),
		may("read|/etc/passwd"), may("exec|/bin/true"), may("read|%s/tool", tools), may("read|/tmp/input"),
		may("create|/tmp/t"), may("create|/dev/shm/s"), may("rename|%s/new|%s/newer", w.workspace, w.workspace),
		mayNot("read|"+w.outside+"/file", "EACCES"), mayNot("list|"+w.outside, "EACCES"),
		mayNot("create|"+tools+"/new", refusals...), mayNot("list|/root", "EACCES"), mayNot("list|/home", "EACCES"),
		// The host's /tmp is not there; the workspace, which lies in it, is.
		mayNot("read|"+r.TempRoot+"/other/file", "ENOENT"), mayNot("list|"+w.state, "ENOENT"),
		mayNot("ptrace|1", "EPERM"), mayNot("vmread|1", "EPERM"),
		mayNot(fmt.Sprintf("socket|%d|%d|0", unix.AF_INET, unix.SOCK_DGRAM), "EACCES"),
		mayNot(fmt.Sprintf("socket|%d|%d|0", unix.AF_NETLINK, unix.SOCK_RAW), "EACCES"),
		mayNot(fmt.Sprintf("syscall|%d|%#x", unix.SYS_UNSHARE, unix.CLONE_NEWUSER), "EPERM"),
		mayNot(fmt.Sprintf("syscall|%d", 435), "ENOSYS"),
	})
	require.FileExists(t, r.TempDir+"/t", "the private /tmp is the child's own TMPDIR")
	require.FileExists(t, w.workspace+"/newer")

	r.Cwd = w.outside
	_, e := Compile(r, Probe())
	require.NotNil(t, e)
	require.Equal(t, events.CodeWorkspaceRefused, e.Code)
}

// TestConfinedTempDirs shows that a child reaches nobody else's TMPDIR.
func TestConfinedTempDirs(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	for _, profile := range []string{Workspace, Devbox, ReadOnly} {
		r := w.under(t, profile)
		put(t, r.TempDir+"/mine", "")
		o := w.confined(t, r, "list|"+r.TempRoot, "read|"+r.TempRoot+"/other/file", "create|"+r.TempRoot+"/new",
			"create|"+r.TempDir+"/new", "unlink|"+r.TempDir+"/mine", "rename|"+r.TempRoot+"|"+w.base+"/away",
			"rename|"+r.TempDir+"|"+r.TempRoot+"/away", "umount|"+r.TempRoot, "read|"+r.TempDir+"/input")
		require.Equal(t, "own", o.values["list|"+r.TempRoot], profile)
		require.Equal(t, "ENOENT", o.results["read|"+r.TempRoot+"/other/file"])
		require.Contains(t, refusals, o.results["create|"+r.TempRoot+"/new"])
		require.Equal(t, "ok", o.results["create|"+r.TempDir+"/new"])
		require.Equal(t, "ok", o.results["unlink|"+r.TempDir+"/mine"])
		require.Equal(t, "an input", o.values["read|"+r.TempDir+"/input"])
		require.Contains(t, []string{"EBUSY", "EXDEV"}, o.results["rename|"+r.TempRoot+"|"+w.base+"/away"])
		require.NotEqual(t, "ok", o.results["rename|"+r.TempDir+"|"+r.TempRoot+"/away"])
		require.Equal(t, "EPERM", o.results["umount|"+r.TempRoot])
		require.NotContains(t, compile(t, r, Probe()).gaps, GapSharedTemp)
		require.FileExists(t, r.TempDir+"/new")
		require.FileExists(t, r.TempRoot+"/other/file")
	}
}

func TestConfinedNetwork(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dial := "dial|" + l.Addr().String()
	r := w.under(t, Workspace)
	o := w.confined(t, r, dial, "loopback")
	require.Equal(t, "ok", o.results[dial])

	r = w.under(t, ReadOnly)
	o = w.confined(t, r, dial, "loopback")
	require.Equal(t, "EACCES", o.results[dial])
	require.Equal(t, "EACCES", o.results["loopback"])
	if !Probe().NetworkNamespace {
		t.Skip("needs network namespaces for the loopback device")
	}
	r.Loopback = true
	require.Equal(t, events.NetworkLoopback, compile(t, r, Probe()).Network)
	o = w.confined(t, r, dial, "loopback", fmt.Sprintf("socket|%d|%d|0", unix.AF_NETLINK, unix.SOCK_RAW))
	require.Equal(t, "ECONNREFUSED", o.results[dial], "a network of its own")
	require.Equal(t, "ok", o.results["loopback"])
	require.Equal(t, "ok", o.results[fmt.Sprintf("socket|%d|%d|0", unix.AF_NETLINK, unix.SOCK_RAW)])

	s := Probe()
	s.NetworkNamespace = false
	_, e := Compile(r, s)
	require.NotNil(t, e)
	require.Equal(t, events.CodeSandboxUnavailable, e.Code)
}

// A host's temporary directory that is opened on purpose is the host's under
// strict too; other subagents' files in it are still out of reach.
func TestConfinedStrictOpensTemp(t *testing.T) {
	requireEnforceable(t)
	for name, change := range map[string]func(*world, *Request){
		"added": func(_ *world, r *Request) { r.AddDirs = []string{"/tmp"} },
		"all":   func(_ *world, r *Request) { r.AddDirs = []string{"/"} },
		"read": func(w *world, r *Request) {
			require.NoError(t, r.Profiles.Add("f", "[profiles.x]\nextends = \"strict\"\nread_only = [\"/tmp\"]\n", false))
			r.Profile = "x"
		},
	} {
		w := newWorld(t)
		r := w.under(t, Strict)
		change(w, &r)
		plan := compile(t, r, Probe())
		require.Equal(t, r.TempDir, plan.TempDir, name)
		o := w.confined(t, r, "read|"+r.TempRoot+"/other/file", "read|"+r.TempDir+"/input", "list|"+w.state, "create|"+r.TempDir+"/new", "list|/tmp")
		require.Equal(t, "ENOENT", o.results["read|"+r.TempRoot+"/other/file"], name)
		require.Equal(t, "an input", o.values["read|"+r.TempDir+"/input"], name)
		require.Equal(t, "EACCES", o.results["list|"+w.state], name)
		require.Equal(t, "ok", o.results["create|"+r.TempDir+"/new"], name)
		require.Equal(t, "ok", o.results["list|/tmp"], name)
	}
}
