package adapter

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/modelstub"
)

// clis is the variable that names the directory into which npm installed the CLIs.
const clis = "HAYWARD_AGENT_CLIS"

var record = flag.Bool("record", false, "run the real CLIs and write what they print into testdata")

// programs returns the directory of the real CLIs, or skips the test.
func programs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(clis)
	if dir == "" {
		t.Skipf("needs the agent CLIs: %s names no directory", clis)
	}
	return filepath.Join(dir, "node_modules", ".bin")
}

// live is one run of a real CLI.
type live struct {
	stdout, stderr []byte
	items          []events.Item
	outcome        Outcome
	exit           events.Exit
}

// runLive runs the command of a request in dir against the model API at url. When
// an item of kind came, on is called with the process.
func runLive(t *testing.T, r Request, dir string, kind events.ItemKind, on func(*os.Process) error, ended events.Reason) live {
	t.Helper()
	r.Command = []string{filepath.Join(programs(t), r.Agent)}
	setup, refusal := New(r)
	require.Nil(t, refusal)
	for _, f := range setup.Files {
		path := filepath.Join(r.Home, filepath.FromSlash(f.Path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, f.Data, 0o600))
	}
	argv := setup.Argv
	if r.Agent == events.AgentCodex { // so that a failure takes no minutes
		at := slices.Index(argv, "--skip-git-repo-check")
		argv = slices.Insert(argv, at, "-c", "model_providers.hayward.request_max_retries=1", "-c", "model_providers.hayward.stream_max_retries=1")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(setup.Stdin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(r.Home), "LANG=C.UTF-8", "CLAUDE_CODE_MAX_RETRIES=1"}
	for k, v := range setup.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	// What the CLI leaves behind goes with its group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	var out live
	var errs bytes.Buffer
	cmd.Stderr = &errs
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	reader := NewReader(setup.Adapter)
	buf := make([]byte, 4096)
	for {
		n, err := pipe.Read(buf)
		out.stdout = append(out.stdout, buf[:n]...)
		items := reader.Write(buf[:n])
		out.items = append(out.items, items...)
		if on != nil && slices.ContainsFunc(items, func(i events.Item) bool { return i.Kind == kind }) {
			require.NoError(t, on(cmd.Process))
			on = nil
		}
		if err != nil {
			require.True(t, errors.Is(err, io.EOF), "read stdout: %v", err)
			break
		}
	}
	err = cmd.Wait()
	require.NoError(t, ctx.Err(), "it did not end: %s\n%s", out.stdout, errs.Bytes())
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // nobody left is what is wanted
	var failed *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &failed)
	}
	if st := cmd.ProcessState.Sys().(syscall.WaitStatus); st.Signaled() {
		out.exit.Signal = unix.SignalName(st.Signal())
	} else {
		code := st.ExitStatus()
		out.exit.Code = &code
	}
	var last []events.Item
	last, out.outcome = reader.End("x", &out.exit, ended)
	out.items = append(out.items, last...)
	out.stderr = errs.Bytes()
	return out
}

// liveRequest is a request in an active sandbox, as far as the CLI is told.
func liveRequest(t *testing.T, agent string, stub *modelstub.Server) (r Request, dir string) {
	t.Helper()
	root := t.TempDir()
	r = Request{
		Agent: agent, Prompt: prompt, Confined: true, UID: os.Getuid(), Home: filepath.Join(root, "home"),
		Relay: Relay{URL: stub.URL(), Token: "relay-token"},
	}
	if agent == events.AgentClaude {
		r.Model = "claude-opus-4-8"
	}
	dir = filepath.Join(root, "project")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Mkdir(r.Home, 0o700))
	return r, dir
}

// TestLive runs the real CLIs and compares what they come to with the table of the
// recordings; with -record it writes the recordings.
func TestLive(t *testing.T) {
	programs(t)
	for _, c := range recordings {
		t.Run(c.name, func(t *testing.T) {
			stub, err := modelstub.Start(modelstub.Script{Keys: c.keys, Scenarios: []modelstub.Scenario{{Turns: c.turns}}}, modelstub.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, stub.Close()) }()
			r, dir := liveRequest(t, c.agent, stub)
			if c.ask != nil {
				c.ask(&r)
			}
			var on func(*os.Process) error
			kind := c.interrupt
			switch {
			case c.interrupt != "":
				on = func(p *os.Process) error { return unix.Kill(-p.Pid, unix.SIGINT) }
			case c.kill != "":
				kind, on = c.kill, func(p *os.Process) error { return unix.Kill(-p.Pid, unix.SIGKILL) }
			}
			got := runLive(t, r, dir, kind, on, c.ended)
			t.Logf("stderr: %s", got.stderr)
			if *record {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(filepath.Join("testdata", c.name+".jsonl"), scrub(got.stdout, r, dir, stub.URL()), 0o644))
			}
			require.Equal(t, c.exit, got.exit)
			c.check(t, got.outcome)
		})
	}
}

// TestResume lets each CLI work, and then go on in its session: what it did before
// is sent to the model again.
func TestResume(t *testing.T) {
	programs(t)
	for agent, call := range map[string][]modelstub.ToolCall{
		events.AgentClaude: tool("Bash", claudeWrites), events.AgentCodex: tool("exec_command", codexWrites),
	} {
		t.Run(agent, func(t *testing.T) {
			stub, err := modelstub.Start(modelstub.Script{Scenarios: []modelstub.Scenario{{Turns: []modelstub.Turn{
				{Text: "I write the file.", Tools: call, Usage: use(100, 20, 0)},
				{Text: done, Usage: use(130, 9, 0)},
				{Text: "It says hello, as I said.", Usage: use(40, 8, 139)},
			}}}}, modelstub.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, stub.Close()) }()
			r, dir := liveRequest(t, agent, stub)
			r.SystemPrompt = "You are the first among the testers."
			first := runLive(t, r, dir, "", nil, "")
			require.Nil(t, first.outcome.Error)
			made, err := os.ReadFile(filepath.Join(dir, "made.txt"))
			require.NoError(t, err)
			require.Equal(t, "hello\n", string(made))

			r.Resume, r.Prompt = first.outcome.Result.SessionID, "What does made.txt say?"
			r.SessionUsage = first.outcome.Result.SessionUsage
			again := runLive(t, r, dir, "", nil, "")
			require.Nil(t, again.outcome.Error, "%s", again.stderr)
			require.Equal(t, "It says hello, as I said.", again.outcome.Answer)
			require.Equal(t, r.Resume, again.outcome.Result.SessionID)
			require.Equal(t, events.Usage{InputTokens: 40, OutputTokens: 8, CacheReadTokens: 139}, again.outcome.Result.Usage)

			sent := stub.Requests()
			last := sent[len(sent)-1]
			for _, text := range []string{prompt, done, "echo hello", "What does made.txt say?", "first among the testers"} {
				require.Contains(t, last.Body, text)
			}
			for _, request := range sent {
				require.Equal(t, modelstub.Fingerprint("relay-token"), request.Key)
			}
		})
	}
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// scrub takes out of a recording what is of this machine and this run.
func scrub(b []byte, r Request, dir, url string) []byte {
	s := strings.NewReplacer(dir, "/project", r.Home, "/home/agent", url, "http://127.0.0.1:1", strings.ReplaceAll(dir, "/", "-"), "-project").Replace(string(b))
	seen := map[string]string{}
	return []byte(uuids.ReplaceAllStringFunc(s, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("00000000-0000-7000-8000-%012d", len(seen)+1)
		}
		return seen[id]
	}))
}

// check compares what a run came to with what it is to come to.
func (c recording) check(t *testing.T, got Outcome) {
	t.Helper()
	require.Equal(t, c.stop, got.Result.StopReason)
	if c.code == "" {
		require.Nil(t, got.Error)
	} else {
		require.NotNil(t, got.Error)
		require.Equal(t, c.code, got.Error.Code, got.Error.Error())
	}
	require.Equal(t, c.reason, got.Reason)
	require.Equal(t, c.answer, got.Answer)
	require.Equal(t, c.usage, got.Result.Usage)
	require.Equal(t, c.denials, got.Result.DenialCount)
	require.NotEmpty(t, got.Result.SessionID)
	require.Equal(t, c.agent, got.Result.Agent)
}
