//go:build linux && cgo

package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
)

// probeVariable names the probe to the test process that runs as an ordinary
// user, outsideVariable a directory of that user beyond every writable root.
const (
	probeVariable   = "HAYWARD_TEST_PROBE"
	outsideVariable = "HAYWARD_TEST_OUTSIDE"
	deadline        = 60 * time.Second
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(finish)) }

var probeDir string

func finish(code int) {
	if probeDir != "" {
		if err := os.RemoveAll(probeDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// probeBinary builds the test child once, static and without the race detector.
var probeBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(probeVariable); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "hayward-probe-")
	if err != nil {
		return "", err
	}
	probeDir = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "probe")
	cmd := exec.Command("go", "build", "-tags", "netgo,osusergo",
		"-ldflags", `-linkmode external -extldflags "-static"`, "-o", path, "./internal/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the probe: %w\n%s", err, out)
	}
	return path, nil
})

// world is a coordinator's surroundings for one test.
type world struct {
	base, state, workspace, temp, cache, outside, probe string
	// command is a probe that the profile lets be executed, if it is not the same.
	command string
}

// newWorld makes directories below /tmp, which is a writable root itself, so
// that the state directory has ancestors that must be pinned.
func newWorld(t testing.TB) *world {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "hayward-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(base, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	w := &world{
		base: base, state: base + "/deep/state", workspace: base + "/ws",
		temp: base + "/tmp", cache: base + "/cache", outside: outsideDir(t), command: "/proc/self/exe",
	}
	for _, d := range []string{w.state + "/bus", w.state + "/bin", w.workspace, w.temp} {
		require.NoError(t, os.MkdirAll(d, 0o700))
	}
	put(t, w.state+"/secret", "the store")
	put(t, w.state+"/stdout.log", "an input")
	put(t, w.outside+"/file", "theirs")
	put(t, w.temp+"/input", "")
	source, err := probeBinary()
	require.NoError(t, err)
	w.probe = w.state + "/bin/child"
	b, err := os.ReadFile(source)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.probe, b, 0o555))
	return w
}

func put(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// outsideDir is a directory that this uid may write but no profile opens.
func outsideDir(t testing.TB) string {
	t.Helper()
	cwd, err := os.Getwd()
	require.NoError(t, err)
	for _, parent := range []string{os.Getenv(outsideVariable), cwd, os.Getenv("HOME")} {
		shared := slices.ContainsFunc(sharedTemp(), func(dir string) bool { return within(parent, dir) })
		if parent == "" || shared {
			continue
		}
		dir, err := os.MkdirTemp(parent, ".outside-")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		return dir
	}
	t.Skip("needs a directory outside the shared temporary ones: neither the source nor the home is in one")
	return ""
}

func (w *world) request() Request {
	return Request{
		Profile: Workspace, Workspace: w.workspace, Cwd: w.workspace, Home: "/nonexistent", TempDir: w.temp,
		CacheRoot: w.cache, ChildBinary: w.probe, Hidden: []string{w.state}, Bus: w.state + "/bus",
		Inputs: []Bind{{Source: w.state + "/stdout.log", Target: w.temp + "/input"}},
	}
}

// compile makes a plan that the test closes.
func compile(t *testing.T, r Request, s Support) *Plan {
	t.Helper()
	p, e := Compile(r, s)
	if e != nil {
		t.Fatal(e)
	}
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// launch is how a child is started in a test.
type launch struct {
	// noStart closes the start pipe instead of writing to it.
	noStart bool
	// files replace descriptors.
	files map[int]*os.File
	attr  *syscall.SysProcAttr
	// before runs while the child blocks on its start pipe.
	before func(pid int)
}

type outcome struct {
	records []handoff.Record
	results map[string]string
	values  map[string]string
	stderr  string
	state   *os.ProcessState
}

// run starts the probe with the descriptors of handoff, lets it go, and returns
// what it reported.
func (w *world) run(t *testing.T, p *Plan, l launch, actions ...string) outcome {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	bus, err := os.OpenFile(w.state+"/bus", unix.O_PATH|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	defer bus.Close()
	log, err := os.OpenFile(w.state+"/report.json", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer log.Close()
	outR, outW := pipe(t)
	errR, errW := pipe(t)
	startR, startW := pipe(t)
	statusR, statusW := pipe(t)
	files := []*os.File{null, outW, errW, p.PlanFile, startR, statusW, null, bus, log, log, log, log, p.RulesetFile, p.FilterFile}
	for fd, f := range l.files {
		files[fd] = f
	}
	attr := p.SysProcAttr()
	if l.attr != nil {
		attr = l.attr
	}
	child, err := os.StartProcess(w.probe, append([]string{"probe", "supervise", "command:" + w.command}, actions...),
		&os.ProcAttr{Files: files, Env: []string{}, Sys: attr, Dir: "/"})
	require.NoError(t, err)
	for _, f := range []*os.File{outW, errW, startR, statusW} {
		require.NoError(t, f.Close())
	}
	overdue := time.AfterFunc(deadline, func() { _ = child.Kill() })
	defer overdue.Stop()

	if l.before != nil {
		l.before(child.Pid)
	}
	var wg sync.WaitGroup
	var stdout, stderr, status bytes.Buffer
	for _, c := range []struct {
		to   *bytes.Buffer
		from *os.File
	}{{&stdout, outR}, {&stderr, errR}, {&status, statusR}} {
		wg.Go(func() { _, _ = io.Copy(c.to, c.from) })
	}
	if !l.noStart {
		// EPIPE: a child that refuses its plan does not wait for the start.
		if _, err := startW.Write([]byte{1}); err != nil {
			require.ErrorIs(t, err, syscall.EPIPE)
		}
	}
	require.NoError(t, startW.Close())
	wg.Wait()
	o := outcome{results: make(map[string]string), values: make(map[string]string), stderr: stderr.String()}
	o.state, err = child.Wait()
	require.NoError(t, err)
	require.True(t, overdue.Stop(), "the child did not end in %v", deadline)
	for _, f := range []*os.File{outR, errR, statusR} {
		require.NoError(t, f.Close())
	}
	for b := status.Bytes(); len(b) >= handoff.RecordSize; b = b[handoff.RecordSize:] {
		o.records = append(o.records, handoff.Decode(b))
	}
	for line := range strings.Lines(stdout.String()) {
		var r struct{ Action, Result, Value string }
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		o.results[r.Action], o.values[r.Action] = r.Result, r.Value
	}
	return o
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	return r, w
}

// confined runs the probe under a plan that must be applied.
func (w *world) confined(t *testing.T, r Request, actions ...string) outcome {
	t.Helper()
	p := compile(t, r, Probe())
	o := w.run(t, p, launch{}, actions...)
	report, e := p.Report(o.records)
	if e != nil {
		t.Fatalf("%v\n%s", e, o.stderr)
	}
	require.True(t, report.Active)
	require.Zero(t, o.state.ExitCode(), o.stderr)
	return o
}

// requireEnforceable skips where this kernel or user cannot have workspace.
func requireEnforceable(t *testing.T) {
	t.Helper()
	if lacks := Probe().missing(events.NetworkOpen); len(lacks) > 0 {
		t.Skipf("needs an enforceable workspace profile: %v", lacks)
	}
}
