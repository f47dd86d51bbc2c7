//go:build unix

package plan

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// deadline bounds every wait on the process of a test.
const deadline = 60 * time.Second

// verb returns the command that runs this test binary as the verb on a plan,
// and the directory of its files.
func verb(t *testing.T, text string) (*exec.Cmd, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), helperVariable+"=1", helperPlan+"="+path, helperDir+"="+dir, "TERM=xterm", "NO_COLOR=1")
	return cmd, dir
}

// reader collects what a terminal or pipe says.
type reader struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
	done chan struct{}
}

func read(r io.Reader) *reader {
	c := &reader{more: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		buffer := make([]byte, 4096)
		for {
			n, err := r.Read(buffer)
			c.mu.Lock()
			c.text.Write(buffer[:n])
			c.mu.Unlock()
			select {
			case c.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

func (c *reader) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// wait returns the groups of the first match of pattern.
func (c *reader) wait(t *testing.T, pattern string) []string {
	t.Helper()
	late := time.After(deadline)
	expression := regexp.MustCompile(pattern)
	for {
		if m := expression.FindStringSubmatch(c.String()); m != nil {
			return m
		}
		select {
		case <-c.more:
		case <-c.done:
			if m := expression.FindStringSubmatch(c.String()); m != nil {
				return m
			}
			t.Fatalf("no %q before the end of: %s", pattern, c)
		case <-late:
			t.Fatalf("no %q in time in: %s", pattern, c)
		}
	}
}

// exitOf waits for the verb's process.
func exitOf(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	case <-time.After(deadline):
		require.NoError(t, cmd.Process.Kill())
		<-ended
		t.Fatal("the process did not end in time")
		return -1
	}
}

// release opens the FIFO that a subagent reads and closes it again: the
// subagent goes on.
func release(t *testing.T, fifo string) {
	t.Helper()
	meet(t, fifo, os.O_WRONLY)
}

// meet opens a FIFO as soon as a subagent has opened its other side.
func meet(t *testing.T, fifo string, flag int) {
	t.Helper()
	opened := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(fifo, flag, 0)
		if err == nil {
			err = f.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		require.NoError(t, err)
	case <-time.After(deadline):
		t.Fatal("nobody opens the other side of the FIFO")
	}
}

const gatedPlan = `
[[subagent]]
name = "first"
shell = "cat gate"
[[subagent]]
name = "second"
shell = "echo ran >second"
needs = ["first"]
[[subagent]]
name = "third"
shell = "echo shown; echo ran >third"
needs = ["second"]
show = true
`

// TestTerminalClosedMidRun: the terminal goes away while the first subagent
// runs; the later ones run all the same, and the process ends as if nothing had
// happened.
func TestTerminalClosedMidRun(t *testing.T) {
	cmd, dir := verb(t, gatedPlan)
	gate := filepath.Join(dir, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
	require.NoError(t, err)
	screen := read(terminal)
	screen.wait(t, `running    first`)
	// Closing the other side hangs up: SIGHUP to the session's leader, which is the
	// process, and an error for every write from then on.
	require.NoError(t, terminal.Close())
	<-screen.done
	release(t, gate)
	require.Equal(t, ExitCompleted, exitOf(t, cmd))
	require.FileExists(t, filepath.Join(dir, "second"))
	require.FileExists(t, filepath.Join(dir, "third"))
	code, err := os.ReadFile(filepath.Join(dir, "exit"))
	require.NoError(t, err)
	require.Equal(t, "0", string(code))
}

// TestPipeClosedMidRun: the reader of stdout and stderr goes away, as in
// "run 2>&1 | head"; the run completes and is not ended by SIGPIPE.
func TestPipeClosedMidRun(t *testing.T) {
	cmd, dir := verb(t, gatedPlan)
	gate := filepath.Join(dir, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	lines := read(r)
	lines.wait(t, `running    first`)
	require.NoError(t, r.Close())
	<-lines.done
	release(t, gate)
	require.Equal(t, ExitOwnError, exitOf(t, cmd), "the summary could not be written and no terminal was closed")
	require.FileExists(t, filepath.Join(dir, "third"))
}

// TestRunOnATerminal: progress is redrawn in place, then come the table and the
// output.
func TestRunOnATerminal(t *testing.T) {
	cmd, dir := verb(t, gatedPlan)
	gate := filepath.Join(dir, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
	require.NoError(t, err)
	screen := read(terminal)
	screen.wait(t, `running    first\s+[0-9.]+s  pid`)
	release(t, gate)
	require.Equal(t, ExitCompleted, exitOf(t, cmd))
	<-screen.done
	require.NoError(t, terminal.Close())
	text := screen.String()
	require.Regexp(t, `(?s)NAME.*first  +completed.*third  +completed.*\r\n\r\nshown\r\n$`, text)
	require.Greater(t, strings.LastIndex(text, showCursor), strings.LastIndex(text, hideCursor))
}

// TestInterruptTwice: the first Ctrl-C is graceful and says so, the second
// kills, and then every process is gone.
func TestInterruptTwice(t *testing.T) {
	cmd, dir := verb(t, `
[[subagent]]
name = "stubborn"
shell = "trap '' TERM; mkfifo never; : >ready; read x <>never"
[[subagent]]
name = "later"
shell = "true"
needs = ["stubborn"]
`)
	ready := filepath.Join(dir, "ready")
	require.NoError(t, syscall.Mkfifo(ready, 0o600))
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
	require.NoError(t, err)
	screen := read(terminal)
	pid, err := strconv.Atoi(screen.wait(t, `running    stubborn\s+[0-9.]+s  pid (\d+)`)[1])
	require.NoError(t, err)
	meet(t, ready, os.O_RDONLY)
	_, err = terminal.Write([]byte{3})
	require.NoError(t, err)
	screen.wait(t, `interrupted: ending 1 subagent; interrupt again to kill`)
	require.NoError(t, syscall.Kill(pid, 0))
	_, err = terminal.Write([]byte{3})
	require.NoError(t, err)
	screen.wait(t, `killing 1 subagent`)
	require.Equal(t, ExitInterrupted, exitOf(t, cmd))
	<-screen.done
	require.NoError(t, terminal.Close())
	require.ErrorIs(t, syscall.Kill(-pid, 0), syscall.ESRCH, "a process is left")
	require.Contains(t, screen.String(), "later     cancelled(user)")
	require.FileExists(t, filepath.Join(dir, "exit"))
}

// TestTerminatedGracefully: SIGTERM is an interrupt; a subagent that obeys it
// ends, and plain lines tell.
func TestTerminatedGracefully(t *testing.T) {
	cmd, _ := verb(t, `
[[subagent]]
name = "obedient"
shell = "mkfifo never; exec cat never"
`)
	var out strings.Builder
	cmd.Stdout = &out
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stderr = w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	lines := read(r)
	lines.wait(t, `running    obedient`)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, ExitInterrupted, exitOf(t, cmd))
	<-lines.done
	require.NoError(t, r.Close())
	require.Contains(t, lines.String(), "cancelled  obedient")
	require.Contains(t, out.String(), "obedient  cancelled(user)")
}

// TestInputsReachTheDependent: the output of each need is readable, whole, at
// the path in its variable.
func TestInputsReachTheDependent(t *testing.T) {
	cmd, _ := verb(t, `
[[subagent]]
name = "part"
for_each = ["a", "b/c"]
command = ["echo", "from {item}"]
[[subagent]]
name = "last"
needs = ["part"]
shell = 'cat "$HAYWARD_INPUT_part_b_c" "$HAYWARD_INPUT_part_a"'
show = true
`)
	var out strings.Builder
	cmd.Stdout = &out
	require.NoError(t, cmd.Run())
	require.True(t, strings.HasSuffix(out.String(), "\n\nfrom b/c\nfrom a\n"), out.String())
}
