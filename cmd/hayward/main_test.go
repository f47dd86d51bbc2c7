package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/daemon"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

// asProgram makes this test binary the program itself, so that tests can run it
// in processes of its own and it can start itself as a daemon.
const asProgram = "HAYWARD_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	runDaemon = serveFake
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// testDeadline bounds every wait of a test; nothing is meant to reach it.
const testDeadline = 60 * time.Second

// serveFake is a daemon that pretends to run commands, see script.
func serveFake(ctx context.Context, o daemon.Options) error {
	if os.Getenv("HAYWARD_TEST_BAD_DAEMON") != "" {
		return events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "the bucket is missing").WithRemedy("restore it")
	}
	for _, dir := range []string{o.Paths.State, o.Paths.Runtime} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	lock, err := os.OpenFile(o.Paths.Lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return events.Errorf(events.CodeStoreConflict, events.LayerCoordinator, "another coordinator holds %s", o.Paths.Lock())
	}
	s, err := fakeservice.StartAt(o.Paths.ClientSocket(), o.Paths.ClientToken())
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	newFakeCoordinator(s, func(events.ShutdownRequest) { time.AfterFunc(50*time.Millisecond, leave) })
	o.Ready()
	<-ctx.Done()
	return nil
}

func newFakeCoordinator(s *fakeservice.Service, shutdown func(events.ShutdownRequest)) *fakeservice.Coordinator {
	return fakeservice.NewCoordinator(s, func(c *fakeservice.Coordinator) {
		c.Script, c.Shutdown = script, shutdown
		c.Status = events.StatusReply{
			Version: buildVersion(), PID: os.Getpid(), Limits: map[string]int64{"per_session": 32}, Origins: map[string]string{"per_session": "default"},
		}
	})
}

// script is the life of a pretended command.
func script(a *fakeservice.Agent) {
	a.Activate()
	argv := a.Spawn.Command
	switch argv[0] {
	case "echo":
		a.Write("stdout", strings.Join(argv[1:], " ")+"\n")
		a.Exit(0)
	case "both":
		a.Write("stdout", "out\n")
		a.Write("stderr", "err\n")
		a.Exit(0)
	case "cat":
		a.Write("stdout", a.ReadStdin())
		a.Exit(0)
	case "prompt":
		a.Write("stdout", a.Spawn.Prompt+"|"+a.Spawn.PromptFile+"|"+string(a.Spawn.Stdin))
		a.Exit(0)
	case "exit":
		code, _ := strconv.Atoi(argv[1]) // 0 would fail the test that asked for more
		a.Exit(code)
	case "signal":
		a.End(func(s *events.Snapshot) {
			s.Status, s.Reason, s.Signal = events.StatusFailed, events.ReasonExit, argv[1]
		})
	case "reason":
		a.End(func(s *events.Snapshot) { s.Status, s.Reason = events.StatusFailed, events.Reason(argv[1]) })
	case "error":
		a.End(func(s *events.Snapshot) {
			s.Status, s.Reason = events.StatusFailed, events.ReasonStart
			s.Error = events.Errorf(events.Code(argv[1]), events.LayerGate, "it cannot be started")
		})
	case "gentle": // ends when asked
		a.Write("stdout", "started\n")
		if _, ok := a.Stop(1); ok {
			a.Cancelled("SIGTERM")
		}
	case "stubborn": // ends when killed
		a.Write("stdout", "started\n")
		for n := 1; ; n++ {
			stop, ok := a.Stop(n)
			if !ok {
				return
			}
			if stop.Kill {
				a.Cancelled("SIGKILL")
				return
			}
			a.Write("stdout", "not yet\n")
		}
	}
}

// bench is a command line with a pretended daemon in this process.
type bench struct {
	t     *testing.T
	dir   string
	env   []string
	s     *fakeservice.Service
	coord *fakeservice.Coordinator
}

func newBench(t *testing.T) *bench {
	b := newIdleBench(t)
	state := filepath.Join(b.dir, "state")
	require.NoError(t, os.MkdirAll(filepath.Join(state, "run"), 0o700))
	s, err := fakeservice.Start(filepath.Join(state, "run"))
	require.NoError(t, err)
	t.Cleanup(s.Close)
	b.s, b.coord = s, newFakeCoordinator(s, nil)
	return b
}

// newIdleBench has no daemon yet.
func newIdleBench(t *testing.T) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "h") // short: it holds sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return &bench{t: t, dir: dir, env: []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "HAYWARD_STATE_DIR=" + filepath.Join(dir, "state"), asProgram + "=1",
		"GORACE=atexit_sleep_ms=0", // else each process ends a second late
	}}
}

// result is what a command line printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

func (b *bench) run(args ...string) result {
	b.t.Helper()
	return b.runWith(nil, args...)
}

// runWith runs a command line in this process; stdin nil is /dev/null.
func (b *bench) runWith(stdin *os.File, args ...string) result {
	b.t.Helper()
	var stdout, stderr buffer
	code := b.runTo(stdin, &stdout, &stderr, args...)
	return result{stdout.String(), stderr.String(), code}
}

func (b *bench) runTo(stdin *os.File, stdout, stderr io.Writer, args ...string) int {
	b.t.Helper()
	if stdin == nil {
		null, err := os.Open(os.DevNull)
		require.NoError(b.t, err)
		defer null.Close()
		stdin = null
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), testDeadline)
	defer cancel()
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, environ: b.env}
	return a.run(ctx, args)
}

// buffer may be written by several goroutines.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// pipe is a stdin that yields text and then ends.
func pipe(t *testing.T, text string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	go func() {
		_, err := io.WriteString(w, text)
		if closeErr := w.Close(); err == nil {
			err = closeErr
		}
		if err != nil && !errors.Is(err, unix.EPIPE) {
			panic(err)
		}
	}()
	t.Cleanup(func() { r.Close() })
	return r
}

// accept puts a subagent into the pretended daemon.
func (b *bench) accept(s events.Spawn) *fakeservice.Agent {
	b.t.Helper()
	if s.ParentSessionID == "" {
		s.ParentSessionID = "default"
	}
	a, err := b.coord.Accept(s)
	require.Nil(b.t, err)
	return a
}

// ended is accept for one that has ended.
func (b *bench) ended(s events.Spawn) *fakeservice.Agent {
	b.t.Helper()
	a := b.accept(s)
	c, err := client.Connect(b.t.Context(), client.Options{Socket: b.s.Socket, TokenFile: b.s.TokenFile})
	require.NoError(b.t, err)
	defer c.Close()
	r, err := c.Wait(b.t.Context(), events.Query{IDs: []string{a.ID()}}, testDeadline)
	require.NoError(b.t, err)
	require.False(b.t, r.Value.TimedOut)
	return a
}

// ack waits for an acknowledgement.
func (b *bench) ack() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), testDeadline)
	defer cancel()
	_, err := b.s.Ack(ctx)
	require.NoError(b.t, err)
}
