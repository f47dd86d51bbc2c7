package e2e

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// coordinator is a `hayward serve` that the test started itself.
type coordinator struct {
	t   *testing.T
	cmd *exec.Cmd
	// ended is closed once the process has ended and was reaped.
	ended chan struct{}
	err   error // of its Wait; read after ended
}

// serve starts a coordinator and returns once it is ready. Its log goes where
// that of one started on demand goes.
func (u *user) serve(env []string, args ...string) *coordinator {
	u.t.Helper()
	state := filepath.Join(u.home, "state")
	require.NoError(u.t, os.MkdirAll(state, 0o700))
	log, err := os.OpenFile(filepath.Join(state, "hayward.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(u.t, err)
	defer log.Close()
	if u.uid != os.Getuid() {
		require.NoError(u.t, os.Chown(state, u.uid, u.uid))
		require.NoError(u.t, log.Chown(u.uid, u.uid))
	}
	ready, theirs, err := os.Pipe()
	require.NoError(u.t, err)
	defer ready.Close()

	c := &coordinator{t: u.t, ended: make(chan struct{})}
	c.cmd = u.command(context.Background(), append([]string{"serve", "--ready-fd", "3"}, args...)...)
	c.cmd.Env = append(append([]string{}, u.env...), env...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.ExtraFiles = []*os.File{theirs}
	err = c.cmd.Start()
	theirs.Close()
	require.NoError(u.t, err)
	go func() {
		defer close(c.ended)
		c.err = c.cmd.Wait()
	}()
	u.t.Cleanup(func() {
		c.kill()
		c.wait()
	})
	require.NoError(u.t, ready.SetReadDeadline(time.Now().Add(deadline)))
	line, err := bufio.NewReader(ready).ReadString('\n')
	require.NoError(u.t, err)
	require.Equal(u.t, "ready\n", line)
	return c
}

// kill sends SIGKILL. One that has ended stays ended.
func (c *coordinator) kill() { c.signal(syscall.SIGKILL) }

func (c *coordinator) signal(sig os.Signal) {
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Errorf("send %v to the coordinator: %v", sig, err)
	}
}

// wait returns how the coordinator ended.
func (c *coordinator) wait() error {
	select {
	case <-c.ended:
		return c.err
	case <-time.After(deadline):
		c.t.Errorf("the coordinator has not ended")
		return nil
	}
}

// crash kills and buries it.
func (c *coordinator) crash() {
	c.kill()
	c.wait()
}

// killedItself reports whether the coordinator has ended by SIGKILL.
func (c *coordinator) killedItself() bool {
	select {
	case <-c.ended:
	default:
		return false
	}
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// begin starts a command of the user's and returns what waits for its result.
func (u *user) begin(args ...string) (outcome func() result) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	cmd := u.command(ctx, args...)
	done := make(chan struct{})
	var r resultOrError
	go func() {
		defer close(done)
		defer cancel()
		r = collect(cmd)
	}()
	return func() result {
		u.t.Helper()
		<-done // bounded by the command's own deadline
		require.NoError(u.t, r.err, "%v\nstdout: %s\nstderr: %s", args, r.stdout, r.stderr)
		return r.result
	}
}

type resultOrError struct {
	result
	err error
}

// collect runs a command outside of the test's goroutine.
func collect(cmd *exec.Cmd) resultOrError {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		err = nil
	}
	r := resultOrError{result: result{stdout: stdout.String(), stderr: stderr.String()}, err: err}
	if cmd.ProcessState != nil {
		r.code = cmd.ProcessState.ExitCode()
	}
	return r
}

// snapshot asks for one subagent.
func (u *user) snapshot(id string) map[string]any {
	u.t.Helper()
	r := u.run("query", "--json", id)
	require.NotEqual(u.t, 4, r.code, "%s is not known: %s", id, r.stderr)
	snaps := list(u.t, r.object(u.t), "snapshots")
	require.Len(u.t, snaps, 1)
	return snaps[0]
}

// await waits until the subagents have ended.
func (u *user) await(ids ...string) []map[string]any {
	u.t.Helper()
	r := u.run(append([]string{"wait", "--json"}, ids...)...)
	require.Contains(u.t, []int{0, 1}, r.code, r.stderr)
	snaps := list(u.t, r.object(u.t), "snapshots")
	require.Len(u.t, snaps, len(ids))
	return snaps
}

// completions returns the dedupe ids of unread ends, in order.
func (u *user) completions(args ...string) []string {
	u.t.Helper()
	r := u.run(append([]string{"completions", "--json"}, args...)...)
	require.Zero(u.t, r.code, r.stderr)
	return dedupeIDs(u.t, r)
}

func dedupeIDs(t *testing.T, r result) (ids []string) {
	t.Helper()
	for _, c := range list(t, r.object(t), "completions") {
		ids = append(ids, c["dedupe_id"].(string))
	}
	return ids
}

// lines reads a file of the workspace by lines; none if it is not there.
func (u *user) lines(name string) []string {
	u.t.Helper()
	b, err := os.ReadFile(filepath.Join(u.work, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(u.t, err)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// runDirectories are the ids that have one.
func (u *user) runDirectories() []string {
	u.t.Helper()
	entries, err := os.ReadDir(filepath.Join(u.home, "state", "subagents"))
	require.NoError(u.t, err)
	var ids []string
	for _, e := range entries {
		if e.Name() != ".gates" { // of cancelled prompts
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// requireNothingLeft proves from outside that of ended subagents nothing is left
// but their records: no process beside the coordinator, no TMPDIR, and for each
// run directory a record.
func (u *user) requireNothingLeft(ids ...string) {
	u.t.Helper()
	require.True(u.t, u.eventually(func() bool { return len(u.subagentProcesses()) == 0 }), "processes are left: %v", u.subagentProcesses())
	for _, id := range append(u.runDirectories(), ids...) {
		require.True(u.t, events.ValidID(id), "%q is left among the run directories", id)
		require.NoDirExists(u.t, u.tempDir(id))
		require.Empty(u.t, cgroupsOf(u.t, id))
		require.Contains(u.t, u.runDirectories(), id, "it has a record and no run directory")
		u.snapshot(id)
	}
}

// subagentProcesses are the user's processes without coordinators and clients.
func (u *user) subagentProcesses() []string {
	var found []string
	for _, p := range u.processes() {
		if _, args, _ := strings.Cut(p, " "); !strings.HasPrefix(args, u.bin+" ") {
			found = append(found, p)
		}
	}
	return found
}

// supervisors are the pids of the user's living hayward-child processes.
func (u *user) supervisors() []int {
	var pids []int
	for _, p := range u.processes() {
		pid, args, _ := strings.Cut(p, " ")
		if n, err := strconv.Atoi(pid); err == nil && strings.HasPrefix(args, "hayward-child") {
			pids = append(pids, n)
		}
	}
	return pids
}

// signalAll sends a signal to the user's processes with that command line.
func (u *user) signalAll(args string, sig syscall.Signal) {
	u.t.Helper()
	for _, p := range u.matching(args) {
		if err := syscall.Kill(p, sig); !errors.Is(err, syscall.ESRCH) {
			require.NoError(u.t, err)
		}
	}
}
