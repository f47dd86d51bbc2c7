package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hayward-dev/hayward/internal/testkit"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// deadline bounds every wait in these tests; it is reached only when they fail.
const deadline = 60 * time.Second

func TestMain(m *testing.M) { testkit.LeakCheck(m) }

// fixture is a state directory with a server, a store and its run directories.
type fixture struct {
	*Store
	ctx      context.Context
	dir      string
	bus      *bus.Server
	nc       *nats.Conn
	root     rundir.Root
	logs     *observer.ObservedLogs
	observed zapcore.Core
	live     bool
}

func open(t *testing.T, dir string) *fixture {
	t.Helper()
	f := prepare(t, dir)
	var err error
	f.Store, err = Open(f.ctx, f.nc, f.root, zap.New(f.observed), WithBackend(f.bus))
	require.NoError(t, err)
	return f
}

// prepare starts everything but the store.
func prepare(t *testing.T, dir string) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	core, logs := observer.New(zap.InfoLevel)
	f := &fixture{ctx: ctx, dir: dir, logs: logs, live: true}
	var err error
	f.bus, err = bus.Start(ctx, bus.Options{StoreDir: filepath.Join(dir, "jetstream"), Log: zap.New(core)})
	require.NoError(t, err)
	t.Cleanup(func() { f.stop(t) })
	f.nc, err = f.bus.Conn("store")
	require.NoError(t, err)
	f.root, err = rundir.Open(filepath.Join(dir, "subagents"))
	require.NoError(t, err)
	f.observed = core
	return f
}

func (f *fixture) stop(t *testing.T) {
	t.Helper()
	if !f.live {
		return
	}
	f.live = false
	require.NoError(t, f.bus.Shutdown(context.WithoutCancel(f.ctx)))
	require.NoError(t, f.root.Close())
}

// restart opens the same directory again, as after a restart.
func (f *fixture) restart(t *testing.T) *fixture {
	t.Helper()
	f.stop(t)
	return open(t, f.dir)
}

func (f *fixture) load(t *testing.T) Loaded {
	t.Helper()
	l, err := f.Load(f.ctx)
	require.NoError(t, err)
	return l
}

// runFile is the path of a file in id's run directory.
func (f *fixture) runFile(id, name string) string {
	return filepath.Join(f.dir, "subagents", id, name)
}

// subagent makes one and walks it through its states.
type subagent struct {
	spec     events.Spec
	record   events.Record
	revision uint64
}

func newSubagent() *subagent {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	limit := int64(5000)
	s := &subagent{spec: events.Spec{
		Schema: 1, ID: events.NewID(), Run: 1, CreatedAt: at,
		Request: events.Spawn{
			ParentSessionID: "session", ParentPromptID: "prompt", Name: "name", SubagentType: "command",
			Command: []string{"sh", "-c", "echo hi"}, Cwd: "/", Workspace: "/", Isolation: "none",
			Labels: map[string]string{"k": "v"}, MaxRuntimeMS: &limit,
		},
	}}
	s.record = events.Record{
		Schema: 1, ID: s.spec.ID, Run: 1, Seq: 1, Name: "name", SubagentType: "command",
		ParentSessionID: "session", ParentPromptID: "prompt", Labels: map[string]string{"k": "v"},
		CommandLine: "sh -c echo hi", Cwd: "/", Workspace: "/", Isolation: "none", MaxRuntimeMS: limit,
		State: events.StateQueued, Status: events.StatusInitializing, CreatedAt: at,
	}
	return s
}

// put writes the current state of s.
func (f *fixture) put(t *testing.T, s *subagent) {
	t.Helper()
	require.NoError(t, f.try(s))
}

func (f *fixture) try(s *subagent) error {
	p := coordinator.Put{Record: s.record, Revision: s.revision}
	if s.revision == 0 {
		p.Spec = &s.spec
	}
	revision, err := f.Put(f.ctx, p)
	if err == nil {
		s.revision = revision
	}
	return err
}

func (s *subagent) active() *subagent {
	s.record.Seq++
	s.record.State, s.record.Status = events.StateActive, events.StatusRunning
	s.record.Process = &events.Process{PID: 7, StartTime: 8, BootID: "boot", PIDNamespace: 9}
	s.record.TokenHash = bus.HashToken("token")
	return s
}

func (s *subagent) completed() *subagent {
	s.record.Seq++
	at := s.record.CreatedAt.Add(time.Second)
	s.record.State, s.record.Status = events.StateCompleted, events.StatusCompleted
	s.record.EndedAt, s.record.EndOrder = &at, 3
	s.record.Output = &events.Output{Text: "hi\n", Bytes: 3}
	return s
}

func (s *subagent) stored() coordinator.Stored {
	st := coordinator.Stored{Record: s.record, Revision: s.revision}
	if s.record.Live() {
		st.Spec = &s.spec
	}
	return st
}

func remove(t *testing.T, path string) {
	t.Helper()
	_, err := os.Lstat(path)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(path))
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}
