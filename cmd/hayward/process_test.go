package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

// process is the program in a process of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	out    *os.File
	stderr buffer
	exited chan error
}

func (b *bench) command(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(b.t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = b.env
	return cmd
}

// start runs the program; stdin nil is /dev/null.
func (b *bench) start(stdin *os.File, args ...string) *process {
	b.t.Helper()
	p := &process{t: b.t, cmd: b.command(args...), exited: make(chan error, 1)}
	out, in, err := os.Pipe()
	require.NoError(b.t, err)
	p.out, p.stdout = out, bufio.NewReader(out)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, in, &p.stderr
	if stdin == nil {
		p.cmd.Stdin = nil // a nil *os.File would not be a nil reader
	}
	require.NoError(b.t, p.cmd.Start())
	require.NoError(b.t, in.Close())
	go func() { p.exited <- p.cmd.Wait() }()
	b.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended unless the test failed
		p.out.Close()
	})
	return p
}

func (p *process) line(want string) {
	p.t.Helper()
	require.NoError(p.t, p.out.SetReadDeadline(time.Now().Add(testDeadline)))
	line, err := p.stdout.ReadString('\n')
	require.NoError(p.t, err, p.stderr.String())
	require.Equal(p.t, want, line)
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// exit waits for the end and returns the exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case err := <-p.exited:
		p.exited <- err
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(testDeadline):
		p.t.Fatalf("%v does not end; stderr: %s", p.cmd.Args, p.stderr.String())
		return -1
	}
}

// eventually waits for a condition outside that announces nothing.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(testDeadline); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", testDeadline, what)
		}
	}
}

func TestFirstInterruptEndsGracefully(t *testing.T) {
	for signal, code := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		b := newBench(t)
		p := b.start(nil, "spawn", "--name", "x", "--", "gentle")
		p.line("started\n")
		p.signal(signal)
		require.Equal(t, code, p.exit(), p.stderr.String())
		a := b.coord.Agent("x")
		stop, ok := a.Stop(1)
		require.True(t, ok)
		require.False(t, stop.Kill)
		require.Equal(t, events.StatusCancelled, a.Snapshot().Status, "it returns once everything is gone")
		require.Contains(t, p.stderr.String(), "interrupt again to kill it")
	}
}

func TestSecondInterruptKills(t *testing.T) {
	b := newBench(t)
	p := b.start(nil, "spawn", "--name", "x", "--", "stubborn")
	p.line("started\n")
	p.signal(os.Interrupt)
	p.line("not yet\n")
	p.signal(os.Interrupt)
	require.Equal(t, 130, p.exit(), p.stderr.String())
	stop, ok := b.coord.Agent("x").Stop(2)
	require.True(t, ok)
	require.True(t, stop.Kill)
	require.Equal(t, "SIGKILL", b.coord.Agent("x").Snapshot().Signal)
}

func TestHangupDetaches(t *testing.T) {
	// Whoever runs the tests may ignore it, as nohup does, and that is inherited:
	// a signal that is caught here has its default there.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	b := newBench(t)
	p := b.start(nil, "spawn", "--name", "x", "--", "gentle")
	p.line("started\n")
	p.signal(syscall.SIGHUP)
	require.Equal(t, 129, p.exit(), p.stderr.String())
	require.Contains(t, p.stderr.String(), b.coord.Agent("x").ID())
	require.Equal(t, events.StatusRunning, b.coord.Agent("x").Snapshot().Status)
}

func TestClosedStdoutEndsTheCommand(t *testing.T) {
	b := newBench(t)
	p := b.start(nil, "spawn", "--name", "x", "--", "gentle")
	p.line("started\n")
	require.NoError(t, p.out.Close())
	a := b.coord.Agent("x")
	a.Write("stdout", "nobody reads this\n")
	require.Equal(t, 141, p.exit(), p.stderr.String())
	require.Equal(t, events.StatusCancelled, a.Snapshot().Status)
	require.Empty(t, p.stderr.String())
	require.Zero(t, b.s.Acks())
}

func TestOpenStdinDoesNotHoldTheEnd(t *testing.T) {
	b := newBench(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	defer r.Close()
	p := b.start(r, "spawn", "--", "echo", "hi")
	p.line("hi\n")
	require.Zero(t, p.exit(), p.stderr.String())
}

func TestInterruptedWaitLeavesTheSubagent(t *testing.T) {
	b := newBench(t)
	a := b.accept(events.Spawn{Name: "x", Command: []string{"gentle"}})
	queried := make(chan struct{})
	b.s.Handle(events.RequestSubject(events.KindQuery), func(*fakeservice.Request) { close(queried) })
	p := b.start(nil, "wait", "x")
	<-queried
	p.signal(os.Interrupt)
	require.Equal(t, 130, p.exit())
	require.Empty(t, p.stderr.String())
	require.Equal(t, events.StatusRunning, a.Snapshot().Status)
}

func TestWatchPrintsEachPicture(t *testing.T) {
	b := newBench(t)
	p := b.start(nil, "ps", "-w", "--json")
	p.line(`{"subagents":[]}` + "\n")
	b.accept(events.Spawn{Name: "x", Command: []string{"gentle"}})
	require.NoError(t, p.out.SetReadDeadline(time.Now().Add(testDeadline)))
	line, err := p.stdout.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `"name":"x"`)
	p.signal(os.Interrupt)
	require.Equal(t, 130, p.exit())
}

// daemons lists the processes that serve the bench's state.
func (b *bench) daemons() []int {
	var pids []int
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(b.t, err)
	for _, file := range procs {
		cmdline, _ := os.ReadFile(file) // gone: not one of them
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if bytes.Contains(cmdline, []byte("\x00serve\x00")) && bytes.Contains(environ, []byte("HAYWARD_STATE_DIR="+filepath.Join(b.dir, "state")+"\x00")) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(b.t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// endDaemon ends the daemon that was started on demand, and proves that it is
// gone when the verb returns.
func (b *bench) endDaemon() {
	b.t.Helper()
	p := b.start(nil, "shutdown")
	require.Zero(b.t, p.exit(), p.stderr.String())
	eventually(b.t, "the daemon's process is gone", func() bool { return len(b.daemons()) == 0 })
}

func TestProgramsThatStartAtOnceShareOneDaemon(t *testing.T) {
	b := newIdleBench(t)
	var all sync.WaitGroup
	results := make([]*process, 5)
	for i := range results {
		results[i] = b.start(nil, "spawn", "--", "echo", strconv.Itoa(i))
	}
	for i, p := range results {
		all.Go(func() {
			out, err := io.ReadAll(p.out)
			if err != nil || string(out) != strconv.Itoa(i)+"\n" {
				t.Errorf("%d: %q, %v", i, out, err)
			}
		})
		require.Zero(t, p.exit(), p.stderr.String())
	}
	all.Wait()
	require.Len(t, b.daemons(), 1)
	log, err := os.ReadFile(filepath.Join(b.dir, "state", "hayward.log"))
	require.NoError(t, err)
	require.Empty(t, string(log), "no second daemon was tried")

	p := b.start(nil, "ps", "-a", "-q")
	require.Zero(t, p.exit(), p.stderr.String())
	b.endDaemon()
}

func TestADaemonIsOfItsOwnSession(t *testing.T) {
	b := newIdleBench(t)
	p := b.start(nil, "ps")
	require.Zero(t, p.exit(), p.stderr.String())
	daemons := b.daemons()
	require.Len(t, daemons, 1)
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(daemons[0]) + "/stat")
	require.NoError(t, err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	require.Equal(t, strconv.Itoa(daemons[0]), fields[3], "session leader")
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(daemons[0]) + "/cwd")
	require.NoError(t, err)
	require.Equal(t, "/", cwd)
	stdin, err := os.Readlink("/proc/" + strconv.Itoa(daemons[0]) + "/fd/0")
	require.NoError(t, err)
	require.Equal(t, os.DevNull, stdin)
	b.endDaemon()
}

func TestADaemonThatCannotStartSaysWhy(t *testing.T) {
	b := newIdleBench(t)
	b.env = append(b.env, "HAYWARD_TEST_BAD_DAEMON=1")
	for _, verb := range [][]string{{"ps"}, {"spawn", "--", "echo"}} {
		p := b.start(nil, verb...)
		require.Equal(t, 125, p.exit())
		require.Equal(t, "hayward "+verb[0]+": the daemon did not start: the bucket is missing (restore it)\n", p.stderr.String())
	}
	log, err := os.ReadFile(filepath.Join(b.dir, "state", "hayward.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "the bucket is missing")
}

func TestTwoServesOnOneState(t *testing.T) {
	b := newIdleBench(t)
	p := b.start(nil, "ps")
	require.Zero(t, p.exit(), p.stderr.String())
	second := b.start(nil, "serve")
	require.Equal(t, 125, second.exit())
	require.Contains(t, second.stderr.String(), "another coordinator")
	b.endDaemon()
}

func TestServeEndsOnSIGTERM(t *testing.T) {
	b := newIdleBench(t)
	p := b.start(nil, "serve")
	socket := filepath.Join(b.dir, "state", "run", "bus.sock")
	eventually(t, "it listens", func() bool { return client.Listening(socket) })
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit(), p.stderr.String())
}

func TestAKilledDaemonIsStartedAgain(t *testing.T) {
	b := newIdleBench(t)
	p := b.start(nil, "spawn", "--name", "x", "--", "gentle")
	p.line("started\n")
	first := b.daemons()
	require.Len(t, first, 1)
	require.NoError(t, syscall.Kill(first[0], syscall.SIGKILL))
	// This pretended daemon forgets, so the spawn is made again; a real one keeps
	// it and would answer that it has it.
	eventually(t, "another daemon runs it", func() bool {
		c, err := client.Connect(t.Context(), client.Options{
			Socket: filepath.Join(b.dir, "state", "run", "bus.sock"), TokenFile: filepath.Join(b.dir, "state", "run", "client.token"),
		})
		if err != nil {
			return false
		}
		defer c.Close()
		r, err := c.Query(t.Context(), events.Query{IDs: []string{"x"}})
		return err == nil && len(r.Value.Snapshots) == 1 && r.Value.Snapshots[0].State == events.StateActive
	})
	require.NotEqual(t, first, b.daemons())
	p.signal(os.Interrupt)
	require.Equal(t, 130, p.exit(), p.stderr.String())
	b.endDaemon()
}

func TestReadOnlyStateDirectory(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become a user without rights")
	}
	dir, err := os.MkdirTemp("/var/tmp", "h")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o555))
	exe, err := os.Executable()
	require.NoError(t, err)
	reachable := filepath.Join(dir, "hayward")
	copyFile(t, exe, reachable)
	cmd := exec.Command(reachable, "ps")
	cmd.Env = []string{"HOME=" + dir, "HAYWARD_STATE_DIR=" + filepath.Join(dir, "state"), asProgram + "=1"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64322, Gid: 64322}}
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 125, cmd.ProcessState.ExitCode(), string(out))
	require.Contains(t, string(out), "permission denied")
	require.Contains(t, string(out), "HAYWARD_STATE_DIR")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// Output that has nowhere to go is an error: a closed descriptor is not
// /dev/null. What writes nothing needs none.
func TestClosedStdout(t *testing.T) {
	b := newBench(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	for args, code := range map[string]int{
		"version": 125, "--help": 125, "ps": 125, "spawn -- echo hi": 125, "spawn --json -- echo hi": 125,
		"spawn -- exit 0": 0, "spawn -- exit 3": 3,
	} {
		cmd := exec.Command("/bin/sh", append([]string{"-c", `exec "$0" "$@" >&-`, exe}, strings.Fields(args)...)...)
		var stderr buffer
		cmd.Env, cmd.Stderr = b.env, &stderr
		err := cmd.Run()
		require.Equal(t, code, cmd.ProcessState.ExitCode(), "%s: %v: %s", args, err, stderr.String())
		if code == 125 {
			require.Contains(t, stderr.String(), "file already closed", args)
		}
	}
}
