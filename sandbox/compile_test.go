//go:build linux && cgo

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/internal/layout"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// able is a system that has everything.
func able() Support {
	return Support{Constructor: true, LandlockABI: 7, Seccomp: true, Namespaces: NamespacesDirect, NetworkNamespace: true, MountTrees: true, PIDMax: true, Root: true}
}

func TestCompileUnavailable(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		lacks func(*Support)
		names string
	}{
		"user namespaces": {func(s *Support) {
			s.Namespaces, s.NamespacesReason = NamespacesNone, "user namespaces: operation not permitted"
		}, "user namespaces: operation not permitted"},
		"landlock":     {func(s *Support) { s.LandlockABI, s.LandlockReason = 0, "it was disabled at boot" }, "Landlock: it was disabled at boot"},
		"old landlock": {func(s *Support) { s.LandlockABI = 5 }, "Landlock ABI 6 (found 5)"},
		"seccomp":      {func(s *Support) { s.Seccomp = false }, "seccomp filters"},
		"mount trees":  {func(s *Support) { s.MountTrees = false }, "mount_setattr"},
		"constructor":  {func(s *Support) { s.Constructor = false }, "constructor"},
	} {
		s := able()
		c.lacks(&s)
		p, e := Compile(w.request(), s)
		require.Nil(t, p, name)
		require.NotNil(t, e, name)
		require.Equal(t, events.CodeSandboxUnavailable, e.Code, name)
		require.Equal(t, events.LayerSandbox, e.Layer)
		require.Contains(t, e.Message, c.names, name)
		require.Contains(t, e.Remedy, "--sandbox-best-effort", name)
		require.Contains(t, e.Remedy, "--sandbox off", name)
	}
	r := w.request()
	r.BestEffort = true
	s := able()
	s.Constructor = false
	_, e := Compile(r, s)
	require.Equal(t, events.CodeSandboxUnavailable, e.Code, "without a constructor nothing can be enforced at all")
	require.NotContains(t, e.Remedy, "best-effort")
}

func TestCompileProfiles(t *testing.T) {
	w := newWorld(t)
	for name, code := range map[string]events.Code{
		"stricht": events.CodeUnknownProfile, " strict": events.CodeUnknownProfile,
	} {
		r := w.request()
		r.Profile = name
		_, e := Compile(r, able())
		require.NotNil(t, e, name)
		require.Equal(t, code, e.Code, name)
	}
}

func TestCompilePaths(t *testing.T) {
	w := newWorld(t)
	put(t, w.base+"/file", "")
	require.NoError(t, os.Symlink(w.state, w.base+"/alias"))
	for name, c := range map[string]struct {
		change func(*Request)
		code   events.Code
	}{
		"root":                  {func(r *Request) { r.Workspace = "/" }, events.CodeWorkspaceRefused},
		"home":                  {func(r *Request) { r.Home = r.Workspace }, events.CodeWorkspaceRefused},
		"parent of home":        {func(r *Request) { r.Home = r.Workspace + "/home" }, events.CodeWorkspaceRefused},
		"parent of hidden":      {func(r *Request) { r.Workspace = w.base }, events.CodeWorkspaceRefused},
		"hidden":                {func(r *Request) { r.Workspace = w.state }, events.CodeWorkspaceRefused},
		"below hidden":          {func(r *Request) { r.Workspace = w.state + "/bus" }, events.CodeWorkspaceRefused},
		"hidden by a link":      {func(r *Request) { r.Workspace = w.base + "/alias/bus" }, events.CodeWorkspaceRefused},
		"cwd below hidden":      {func(r *Request) { r.Cwd = w.state }, events.CodeWorkspaceRefused},
		"added below hidden":    {func(r *Request) { r.AddDirs = []string{w.state + "/bin"} }, events.CodeWorkspaceRefused},
		"temp below hidden":     {func(r *Request) { r.TempDir = w.state + "/bin" }, events.CodeWorkspaceRefused},
		"workspace missing":     {func(r *Request) { r.Workspace = w.base + "/none" }, events.CodeSandboxFailed},
		"workspace relative":    {func(r *Request) { r.Workspace = "ws" }, events.CodeSandboxFailed},
		"workspace a file":      {func(r *Request) { r.Workspace = w.base + "/file" }, events.CodeSandboxFailed},
		"added a file":          {func(r *Request) { r.AddDirs = []string{w.base + "/file"} }, events.CodeSandboxFailed},
		"no child binary":       {func(r *Request) { r.ChildBinary = w.base + "/none" }, events.CodeSandboxFailed},
		"hidden missing":        {func(r *Request) { r.Hidden = []string{w.base + "/none"} }, events.CodeSandboxFailed},
		"no temp":               {func(r *Request) { r.TempDir = "" }, events.CodeSandboxFailed},
		"input outside of temp": {func(r *Request) { r.Inputs[0].Target = w.base + "/file" }, events.CodeSandboxFailed},
		"input missing":         {func(r *Request) { r.Inputs[0].Source = w.base + "/none" }, events.CodeSandboxFailed},
		"input a directory":     {func(r *Request) { r.Inputs[0].Source = w.workspace }, events.CodeSandboxFailed},
		"cache below a file":    {func(r *Request) { r.CacheRoot = w.base + "/file/cache" }, events.CodeSandboxFailed},
	} {
		before := descriptors(t)
		r := w.request()
		if name == "parent of home" {
			require.NoError(t, os.MkdirAll(w.workspace+"/home", 0o700))
		}
		c.change(&r)
		p, e := Compile(r, able())
		require.Nil(t, p, name)
		require.NotNil(t, e, name)
		require.Equal(t, c.code, e.Code, "%s: %v", name, e)
		require.Equal(t, before, descriptors(t), "%s: a descriptor leaked", name)
	}
}

func TestCompileNamedOnPurpose(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	r := w.request()
	r.Workspace, r.AddDirs = w.base, []string{w.base}
	w.check(t, r, []expectation{
		may("create|%s/new", w.base), mayNot("list|"+w.state, "EACCES"),
		mayNot("rename|"+w.base+"/deep|"+w.base+"/away", "EBUSY", "EXDEV"),
	})
	r.Workspace, r.AddDirs = "/", []string{"/"}
	w.check(t, r, []expectation{
		may("create|%s/new", w.outside), mayNot("list|"+w.state, "EACCES"), mayNot("read|"+w.state+"/secret", "EACCES"),
		mayNot("rename|"+w.base+"/deep|"+w.base+"/away", "EBUSY", "EXDEV"), mayNot("umount|"+w.state, "EPERM"),
	})
}

func TestCompilePlan(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	p := compile(t, w.request(), Probe())
	require.Equal(t, map[string]string{
		"TMPDIR": w.temp, "XDG_CACHE_HOME": w.cache, "GOCACHE": w.cache + "/go-build", "GOMODCACHE": w.cache + "/go-mod",
		"npm_config_cache": w.cache + "/npm", "PIP_CACHE_DIR": w.cache + "/pip", "UV_CACHE_DIR": w.cache + "/uv",
		"CARGO_HOME": w.cache + "/cargo",
	}, p.Env)
	info, err := os.Stat(w.cache)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.Subset(t, p.Writable, []string{w.workspace, w.temp, w.cache, "/tmp"})
	for _, f := range []*os.File{p.PlanFile, p.FilterFile} {
		got, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
		require.NoError(t, err)
		const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
		require.Equal(t, seals, got&seals)
		_, err = f.WriteAt([]byte{0}, 0)
		require.ErrorIs(t, err, unix.EPERM)
	}
	require.True(t, p.SysProcAttr().Setsid)

	again := compile(t, w.request(), Probe())
	require.Equal(t, p.Hash, again.Hash, "the hash is that of the content")
	require.Len(t, p.Hash, 64)
	put(t, w.temp+"/other", "")
	two := w.request()
	two.Inputs = append(two.Inputs, Bind{Source: w.state + "/secret", Target: w.temp + "/other"})
	swapped := w.request()
	swapped.Inputs = []Bind{two.Inputs[1], two.Inputs[0]}
	require.Equal(t, compile(t, two, Probe()).Hash, compile(t, swapped, Probe()).Hash, "whatever the order of the inputs")
	changed := w.request()
	changed.AddDirs = []string{w.outside}
	require.NotEqual(t, p.Hash, compile(t, changed, Probe()).Hash)

	before := descriptors(t)
	for range 8 {
		q, e := Compile(w.request(), Probe())
		require.Nil(t, e)
		require.NoError(t, q.Close())
		require.NoError(t, q.Close())
	}
	require.Equal(t, before, descriptors(t))
}

// TestCompileRuleset holds the rights of each ABI against the kernel's list.
func TestCompileRuleset(t *testing.T) {
	r := &roots{
		workspace: "/w", temp: "/t", writable: []tree{{path: "/t", dir: true}, {path: "/w", dir: true}}, bus: "/s/bus",
		caps: policy.Capabilities{DefaultRead: true},
	}
	for abi := 1; abi <= newestABI; abi++ {
		rs := compileRules(abi, r, events.NetworkOpen)
		require.Zero(t, rs.net)
		require.Equal(t, abi >= 4, compileRules(abi, r, events.NetworkNone).net != 0)
		has := func(right uint64) bool { return rs.handled&right != 0 }
		require.Equal(t, abi >= 2, has(ll.AccessFSRefer), abi)
		require.Equal(t, abi >= 3, has(ll.AccessFSTruncate), abi)
		require.Equal(t, abi >= 5, has(ll.AccessFSIoctlDev), abi)
		require.Equal(t, abi >= 9, has(ll.AccessFSResolveUnix), abi)
		require.Equal(t, abi >= 6, rs.scoped == ll.ScopeSignal|ll.ScopeAbstractUnixSocket, abi)
		require.True(t, has(ll.AccessFSMakeChar) && has(ll.AccessFSMakeBlock), "handled, so that no rule gives them")
		for _, rule := range rs.rules {
			require.Zero(t, rule.rights&(ll.AccessFSMakeChar|ll.AccessFSMakeBlock), rule.path)
			if rule.path == "/" {
				require.Equal(t, uint64(accessRead), rule.rights)
			}
			connects := rule.path == r.bus || rule.path == r.workspace || rule.path == r.temp
			require.Equal(t, connects, rule.rights&ll.AccessFSResolveUnix != 0, rule.path)
		}
	}
	r.bus = ""
	require.Zero(t, compileRules(9, r, events.NetworkOpen).handled&ll.AccessFSResolveUnix)
}

// Another subagent of the user may put a link in the place of a TMPDIR: it must
// not make what it leads to writable.
func TestCompileRefusesLinkedTempDir(t *testing.T) {
	dir, victim := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "tmp")
	require.NoError(t, os.Symlink(victim, link))
	_, err := Compile(Request{Profile: Workspace, Workspace: dir, Cwd: dir, TempDir: link, ChildBinary: "/bin/true"}, able())
	require.NotNil(t, err)
	require.Equal(t, events.CodeWorkspaceRefused, err.Code, err)
}

func TestCompileGaps(t *testing.T) {
	r := &roots{bus: "/s/bus", tempRoot: "/t"}
	gaps := func(s Support, r *roots) []string { return gaps(s, r, events.NetworkOpen) }
	require.Equal(t, []string{GapBindAliases, GapLaterSockets}, gaps(able(), r))
	require.Contains(t, gaps(able(), &roots{bus: "/s/bus"}), GapSharedTemp, "a TMPDIR that stands alone")
	s := able()
	s.LandlockABI = 9
	require.NotContains(t, gaps(s, r), GapLaterSockets)
	s = able()
	s.PIDMax = false
	require.Contains(t, gaps(s, r), GapProcessLimit)
	s.Namespaces, s.Root = NamespacesUser, false
	require.NotContains(t, gaps(s, r), GapProcessLimit)
	require.Contains(t, gaps(able(), &roots{outermost: []string{"/"}}), GapMetadata)
	s = Support{Constructor: true, Namespaces: NamespacesNone}
	require.Subset(t, gaps(s, r), []string{GapNamespaces, GapHidden, GapSockets, GapMetadata, GapLandlock, GapAbstract, GapSignals, GapSeccomp})
}

func TestCompileEncodesBounds(t *testing.T) {
	_, err := layout.Plan{Ops: make([]layout.Op, layout.MaxOps+1)}.Encode()
	require.ErrorContains(t, err, "mount operations")
	_, err = layout.Plan{Ops: []layout.Op{{Kind: layout.OpPin, Target: "/a\x00b"}}}.Encode()
	require.ErrorContains(t, err, "zero byte")
	_, err = layout.Plan{Ops: []layout.Op{{Kind: layout.OpPin, Target: "/" + strings.Repeat("a", layout.MaxSize)}}}.Encode()
	require.ErrorContains(t, err, "too long")
}

// descriptors counts this process's open files.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
