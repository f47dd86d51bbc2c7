package child_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// shell is a spec that runs a script.
func shell(script string, args ...string) events.ChildSpec {
	return events.ChildSpec{
		Argv:    append([]string{"sh", "-c", script, "sh"}, args...),
		Env:     []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"},
		GraceMS: 5_000,
	}
}

// run runs spec to its end without a bus.
func run(t *testing.T, spec events.ChildSpec) (*testkit.ChildProcess, events.Report) {
	t.Helper()
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec})
	r := c.Report()
	require.Equal(t, 0, c.Wait().ExitCode())
	require.NoError(t, testkit.Processes())
	return c, r
}

func requireCode(t *testing.T, code int, r events.Report) {
	t.Helper()
	require.Nil(t, r.Error)
	require.NotNil(t, r.Exit)
	require.NotNil(t, r.Exit.Code, "exit %+v", r.Exit)
	require.Equal(t, code, *r.Exit.Code)
	require.Empty(t, r.Exit.Signal)
}

func requireSignal(t *testing.T, signal string, r events.Report) {
	t.Helper()
	require.Nil(t, r.Error)
	require.NotNil(t, r.Exit)
	require.Nil(t, r.Exit.Code)
	require.Equal(t, signal, r.Exit.Signal)
}

func TestEcho(t *testing.T) {
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: shell("echo hi; echo oops >&2")})
	require.Equal(t, handoff.StepMain, (<-c.Records).Step)
	require.Positive(t, c.Record(handoff.StepRunner).Value)
	_, more := <-c.Records
	require.False(t, more, "the status pipe is closed after the runner started")

	r := c.Report()
	requireCode(t, 0, r)
	require.Empty(t, r.Ended)
	require.Equal(t, 1, r.Schema)
	require.Equal(t, "hi\n", string(c.File("stdout.log")))
	require.Equal(t, "oops\n", string(c.File("stderr.log")))
	require.Equal(t, []int64{3, 5}, []int64{r.StdoutBytes, r.StderrBytes})
	require.Equal(t, "oops\n", r.StderrTail)
	require.Contains(t, []string{"hi", "oops"}, r.LastLine)
	require.NotZero(t, r.Exit.MaxRSSKiB)
}

func TestExitCode(t *testing.T) {
	_, r := run(t, shell("exit 7"))
	requireCode(t, 7, r)
}

func TestEndBySignal(t *testing.T) {
	for _, name := range []string{"TERM", "KILL", "SEGV", "USR1"} {
		t.Run(name, func(t *testing.T) {
			_, r := run(t, shell("kill -$1 $$", name))
			requireSignal(t, "SIG"+name, r)
			require.Empty(t, r.Ended)
		})
	}
	t.Run("real-time", func(t *testing.T) {
		_, r := run(t, shell("kill -36 $$"))
		requireSignal(t, "SIGRTMIN+2", r)
	})
}

func TestPrompt(t *testing.T) {
	spec := shell("cat")
	spec.Prompt = strings.Repeat("do it\n", 50_000) // more than a pipe holds
	c, r := run(t, spec)
	requireCode(t, 0, r)
	require.Equal(t, spec.Prompt, string(c.File("stdout.log")))

	items := c.Transcript()
	require.Equal(t, events.ItemPrompt, items[0].Kind)
	require.Equal(t, spec.Prompt, items[0].Text)
	require.Equal(t, events.ItemCommand, items[1].Kind)
	require.Equal(t, spec.Argv, items[1].Argv)
}

func TestPromptNobodyReads(t *testing.T) {
	for name, script := range map[string]string{"ends": "exit 3", "closes stdin": "exec <&-; exit 3"} {
		t.Run(name, func(t *testing.T) {
			spec := shell(script)
			spec.Prompt = strings.Repeat("x", 1<<20)
			_, r := run(t, spec)
			requireCode(t, 3, r)
		})
	}
}

func TestNoPromptIsDevNull(t *testing.T) {
	c, r := run(t, shell("readlink /proc/self/fd/0; cat"))
	requireCode(t, 0, r)
	require.Equal(t, "/dev/null\n", string(c.File("stdout.log")))
}

// A command finds its own environment and directory, three descriptors that
// block, default dispositions for every signal, and a session of its own.
func TestCommandSurroundings(t *testing.T) {
	dir := testkit.Dir(t)
	spec := shell(`
		env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD= | sort
		pwd
		ls /proc/$$/fd
		grep -h ^flags /proc/$$/fdinfo/0 /proc/$$/fdinfo/1 /proc/$$/fdinfo/2
		grep -e ^SigBlk -e ^SigIgn /proc/$$/status
		read -r _ _ _ _ group session _ </proc/$$/stat
		test $group = $$ && test $session = $$ && echo own session
	`)
	spec.Prompt, spec.Cwd = "x", dir
	spec.Env = append(spec.Env, "HAYWARD_TEST=a b")
	c, r := run(t, spec)
	requireCode(t, 0, r)
	require.Equal(t, strings.Join([]string{
		"HAYWARD_TEST=a b",
		"LC_ALL=C",
		"PATH=" + os.Getenv("PATH"),
		dir,
		"0", "1", "2",
		"flags:\t00", "flags:\t01", "flags:\t01",
		"SigBlk:\t0000000000000000",
		"SigIgn:\t0000000000000000",
		"own session", "",
	}, "\n"), string(c.File("stdout.log")))
}

func TestRefusedStarts(t *testing.T) {
	dir := testkit.Dir(t)
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	closed := filepath.Join(dir, "closed")
	require.NoError(t, os.Mkdir(closed, 0))
	for name, c := range map[string]struct {
		argv0, path, cwd string
		code             events.Code
		errno            syscall.Errno
	}{
		"not in PATH":     {argv0: "hayward-no-such-program", code: events.CodeCommandNotFound, errno: syscall.ENOENT},
		"closed PATH":     {argv0: "hayward-no-such-program", path: closed + ":/usr/bin:/bin", code: events.CodeCommandNotFound, errno: syscall.ENOENT},
		"no such path":    {argv0: "/no/such/program", code: events.CodeCommandNotFound, errno: syscall.ENOENT},
		"below a file":    {argv0: "/etc/passwd/x", code: events.CodeCommandNotFound, errno: syscall.ENOTDIR},
		"not executable":  {argv0: write("plain", "#!/bin/sh\n", 0o644), code: events.CodeCommandNotExec, errno: syscall.EACCES},
		"in PATH only so": {argv0: "plain", path: dir, code: events.CodeCommandNotExec, errno: syscall.EACCES},
		"a directory":     {argv0: dir, code: events.CodeCommandNotExec, errno: syscall.EACCES},
		"no interpreter":  {argv0: write("orphan", "#!/no/such/shell\n", 0o755), code: events.CodeCommandNotExec, errno: syscall.ENOENT},
		"no format":       {argv0: write("text", "echo hi\n", 0o755), code: events.CodeCommandNotExec, errno: syscall.ENOEXEC},
		"cwd missing":     {argv0: "true", cwd: dir + "/none", code: events.CodeCwdMissing, errno: syscall.ENOENT},
		"cwd is a file":   {argv0: "true", cwd: "/etc/passwd", code: events.CodeCwdMissing, errno: syscall.ENOTDIR},
	} {
		t.Run(name, func(t *testing.T) {
			spec := shell("")
			spec.Argv, spec.Cwd = []string{c.argv0}, c.cwd
			if c.path != "" {
				spec.Env = []string{"PATH=" + c.path}
			}
			child := testkit.StartChild(t, testkit.ChildOptions{Spec: spec})
			require.Equal(t, handoff.StepMain, (<-child.Records).Step)
			refused := <-child.Records
			require.Equal(t, handoff.StepRefused, refused.Step)
			require.Equal(t, int32(c.errno), refused.Errno)
			// The record comes after the report: whoever saw it may read that.
			var early events.Report
			require.NoError(t, events.DecodeRecord(child.File("report.json"), &early))
			r := child.Report()
			require.Equal(t, 0, child.Wait().ExitCode())
			require.Nil(t, r.Exit)
			require.NotNil(t, r.Error)
			require.Equal(t, c.code, r.Error.Code, "%v", r.Error)
			require.Equal(t, early, r)
		})
	}
}

// PATH and relative names are looked up as the command's own shell would.
func TestProgramIsFoundInItsOwnPath(t *testing.T) {
	dir := testkit.Dir(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "tool"), []byte("#!/bin/sh\necho tool $0\n"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "shadow"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "shadow", "tool"), nil, 0o644))
	for name, c := range map[string]struct{ argv0, path string }{
		"relative path":      {"./bin/tool", "/usr/bin:/bin"},
		"absolute PATH":      {"tool", "/no/such:" + dir + "/bin:/bin"},
		"relative PATH":      {"tool", "bin:/bin"},
		"past an unfit file": {"tool", dir + "/shadow:" + dir + "/bin:/bin"},
	} {
		t.Run(name, func(t *testing.T) {
			c2, r := run(t, events.ChildSpec{Argv: []string{c.argv0}, Env: []string{"PATH=" + c.path}, Cwd: dir})
			requireCode(t, 0, r)
			require.Contains(t, string(c2.File("stdout.log")), "tool ")
		})
	}
}

func TestBinaryOutput(t *testing.T) {
	want := make([]byte, 300_000)
	for i := range want {
		want[i] = byte(i * 7)
	}
	path := filepath.Join(testkit.Dir(t), "data")
	require.NoError(t, os.WriteFile(path, want, 0o644))
	c, r := run(t, shell(`cat "$1"; cat "$1" >&2`, path))
	requireCode(t, 0, r)
	require.True(t, bytes.Equal(want, c.File("stdout.log")))
	require.True(t, bytes.Equal(want, c.File("stderr.log")))
	require.LessOrEqual(t, len(r.StderrTail), events.MaxStderrTail)
	require.LessOrEqual(t, len(r.LastLine), events.MaxLastLine)
}

func TestOneLongLine(t *testing.T) {
	const size = 10 << 20
	c, r := run(t, shell(`head -c "$1" /dev/zero | tr '\0' x; echo; printf end`, strconv.Itoa(size)))
	requireCode(t, 0, r)
	out := c.File("stdout.log")
	require.Len(t, out, size+len("\nend"))
	require.Equal(t, size, bytes.Count(out, []byte("x")))
	require.Equal(t, "end", r.LastLine)
}

func TestLargeOutputInBoundedMemory(t *testing.T) {
	const size = 100 << 20
	bus := startBus(t)
	// It begins once the bus is there: what comes before is in the files alone.
	spec := shell(`read go; head -c "$1" /dev/urandom; head -c "$1" /dev/urandom >&2; read line`, strconv.Itoa(size))
	spec.Stdin, spec.ID, spec.Token = events.StdinStream, events.NewID(), "secret"
	bus.grant(spec.ID, spec.Token)
	items := bus.items(t, spec.ID)
	c := testkit.StartChild(t, testkit.ChildOptions{Spec: spec, BusDir: bus.dir})
	bus.send(t, spec.ID, events.Control{Kind: events.ControlStdin, Data: []byte("go\n")})
	bus.await(t, spec.ID, func(h events.Heartbeat) bool {
		return h.Progress.StdoutBytes == size && h.Progress.StderrBytes == size
	})
	peak := peakRSS(t, c.PID)
	require.Less(t, peak, 64<<10, "KiB of memory at most")
	bus.send(t, spec.ID, events.Control{Kind: events.ControlStdin, Offset: 3, EOF: true})

	r := c.Report()
	requireCode(t, 1, r) // read met the end of stdin
	require.Equal(t, []int64{size, size}, []int64{r.StdoutBytes, r.StderrBytes})
	require.Len(t, c.File("stdout.log"), size)
	require.Less(t, len(c.File("transcript.jsonl")), 4<<20)
	// What went over the bus covers every byte, most of it by number only.
	requireCoverage(t, items, map[string]int64{"stdout": size, "stderr": size})
	t.Logf("peak memory %d KiB, transcript %d bytes", peak, len(c.File("transcript.jsonl")))
}

// peakRSS returns the most memory that a process ever had resident, in KiB.
func peakRSS(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			return kib
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
