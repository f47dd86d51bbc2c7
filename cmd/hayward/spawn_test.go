package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

func TestForegroundSpawnBehavesLikeTheCommand(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		args           []string
		stdout, stderr string
		code           int
	}{
		"stdout and stderr":  {args: []string{"both"}, stdout: "out\n", stderr: "err\n"},
		"flags of a command": {args: []string{"echo", "-d", "--json"}, stdout: "-d --json\n"},
		"exit code":          {args: []string{"exit", "7"}, code: 7},
		"signal":             {args: []string{"signal", "SIGKILL"}, code: 137},
		"deadline":           {args: []string{"reason", "deadline"}, code: 124, stderr: "deadline"},
		"idle":               {args: []string{"reason", "idle"}, code: 124, stderr: "idle"},
		"crash":              {args: []string{"reason", "crash"}, code: 125, stderr: "crash"},
		"sandbox":            {args: []string{"reason", "sandbox"}, code: 126, stderr: "sandbox"},
		"not found":          {args: []string{"error", "command_not_found"}, code: 127, stderr: "it cannot be started"},
		"not executable":     {args: []string{"error", "command_not_executable"}, code: 126, stderr: "it cannot be started"},
		"start timeout":      {args: []string{"error", "start_timeout"}, code: 125, stderr: "it cannot be started"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dashes := range [][]string{{"spawn", "--"}, {"spawn"}} {
				r := b.run(append(dashes, c.args...)...)
				require.Equal(t, c.code, r.code, r.stderr)
				require.Equal(t, c.stdout, r.stdout)
				if c.stderr == "" {
					require.Empty(t, r.stderr)
				}
				require.Contains(t, r.stderr, c.stderr)
			}
		})
	}
}

func TestForegroundSpawnIsAcknowledged(t *testing.T) {
	b := newBench(t)
	require.Zero(t, b.run("spawn", "--", "echo", "hi").code)
	b.ack()
	require.Zero(t, b.run("spawn", "--json", "--", "echo", "hi").code)
	b.ack()
}

func TestSpawnForwardsStdin(t *testing.T) {
	b := newBench(t)
	r := b.runWith(pipe(t, "x\n"), "spawn", "--", "cat")
	require.Equal(t, result{stdout: "x\n"}, r)

	much := strings.Repeat("0123456789abcde\n", 64<<10)
	r = b.runWith(pipe(t, much), "spawn", "--", "cat")
	require.True(t, r.stdout == much, "%d of %d bytes; %s", len(r.stdout), len(much), r.stderr)

	file := filepath.Join(b.dir, "input")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "from a file\n", b.runWith(f, "spawn", "--", "cat").stdout)

	require.Equal(t, result{}, b.runWith(pipe(t, ""), "spawn", "--", "cat"), "an empty pipe is an empty stdin")

	r = b.runWith(pipe(t, "in the object"), "spawn", "--json", "--", "cat")
	require.Contains(t, r.stdout, `"output":"in the object"`)
}

func TestStdinIsNotForwarded(t *testing.T) {
	b := newBench(t)
	require.Equal(t, "||", b.run("spawn", "--", "prompt").stdout, "/dev/null")
	require.Equal(t, "do it||", b.runWith(pipe(t, "x"), "spawn", "--prompt", "do it", "--", "prompt").stdout, "a prompt was given")

	closed, err := os.Open(os.DevNull)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.Equal(t, "||", b.runWith(closed, "spawn", "--", "prompt").stdout, "no stdin at all")
}

func TestPromptSources(t *testing.T) {
	b := newBench(t)
	require.Equal(t, "from stdin||", b.runWith(pipe(t, "from stdin"), "spawn", "--prompt", "-", "--", "prompt").stdout)

	short, long := filepath.Join(b.dir, "short"), filepath.Join(b.dir, "long")
	require.NoError(t, os.WriteFile(short, []byte("from a file"), 0o600))
	require.NoError(t, os.WriteFile(long, make([]byte, events.MaxPrompt+1), 0o600))
	require.Equal(t, "from a file||", b.run("spawn", "--prompt", "@"+short, "--", "prompt").stdout)
	require.Equal(t, "|"+long+"|", b.run("spawn", "--prompt", "@"+long, "--", "prompt").stdout)

	r := b.run("spawn", "--prompt", "@"+filepath.Join(b.dir, "none"), "--", "prompt")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "none")
	r = b.runWith(pipe(t, strings.Repeat("x", events.MaxPrompt+1)), "spawn", "--prompt", "-", "--", "prompt")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "@FILE")
}

func TestDetachPrintsTheID(t *testing.T) {
	b := newBench(t)
	for _, flag := range []string{"-d", "--detach", "--background"} {
		r := b.run("spawn", flag, "--", "gentle")
		require.Zero(t, r.code, r.stderr)
		id := strings.TrimSpace(r.stdout)
		require.True(t, events.ValidID(id), r.stdout)
		require.True(t, b.coord.Agent(id).Spawn.RunInBackground)
	}
	id := events.NewID()
	require.Equal(t, id+"\n", b.run("spawn", "-d", "--id", id, "--", "gentle").stdout)
	r := b.run("spawn", "-d", "--id", id, "--", "gentle")
	require.Equal(t, 125, r.code)
	require.Contains(t, r.stderr, id)
}

func TestSpawnRequestFromFlags(t *testing.T) {
	b := newBench(t)
	b.env = append(b.env, "NAMED=here", "HAYWARD_SESSION=mine", "HAYWARD_SANDBOX=strict", "SECRET=x", "LC_ALL=C")
	r := b.run("spawn", "-d", "--name", "n", "--parent-prompt", "p", "--description", "what", "--sandbox-best-effort",
		"--isolation", "none", "--workspace", "/w", "--add-dir", "/a", "--add-dir", "/b", "--cwd", "/c", "--env", "NAMED", "--env", "K=v=w",
		"--label", "kind=check", "--input", "IN=abcd", "--max-runtime", "1m", "--idle-timeout", "1500ms", "--", "gentle", "-x")
	require.Zero(t, r.code, r.stderr)
	s := b.coord.Agent("n").Spawn
	minute, idle := int64(60000), int64(1500)
	require.Equal(t, events.Spawn{
		ParentSessionID: "mine", ID: s.ID, Name: "n", Description: "what", Command: []string{"gentle", "-x"}, ParentPromptID: "p",
		Cwd: "/c", Workspace: "/w", AddDirs: []string{"/a", "/b"}, Isolation: "none", Sandbox: "strict", SandboxBestEffort: true,
		RunInBackground: true, MaxRuntimeMS: &minute, IdleTimeoutMS: &idle,
		Env: map[string]string{
			"NAMED": "here", "K": "v=w", "LC_ALL": "C", "HOME": b.dir, "PATH": os.Getenv("PATH"),
		},
		Labels: map[string]string{"kind": "check"}, Inputs: map[string]string{"IN": "abcd"},
	}, s)

	require.Zero(t, b.run("spawn", "-d", "--name", "m", "--session", "S", "--sandbox", "off", "--", "gentle").code)
	s = b.coord.Agent("m").Spawn
	cwd, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, "S", s.ParentSessionID)
	require.Equal(t, "off", s.Sandbox)
	require.Equal(t, cwd, s.Cwd)
}

func TestBadSpawnsStartNothing(t *testing.T) {
	b := newIdleBench(t) // a daemon would be started to ask it
	for name, args := range map[string][]string{
		"no command":        {"spawn"},
		"unknown flag":      {"spawn", "--frobnicate", "--", "x"},
		"env not set":       {"spawn", "--env", "NOT_SET_HERE", "--", "x"},
		"env that loads":    {"spawn", "--env", "LD_PRELOAD=x", "--", "x"},
		"label":             {"spawn", "--label", "novalue", "--", "x"},
		"label twice":       {"spawn", "--label", "a=1", "--label", "a=2", "--", "x"},
		"bad id":            {"spawn", "--id", "../x", "--", "x"},
		"bad name":          {"spawn", "--name", "-x", "--", "x"},
		"bad session":       {"spawn", "--session", "a b", "--", "x"},
		"negative deadline": {"spawn", "--max-runtime", "-1s", "--", "x"},
		"empty add-dir":     {"spawn", "--add-dir", "", "--", "x"},
		"detached in here":  {"spawn", "--no-daemon", "-d", "--", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.run(args...)
			require.Equal(t, 2, r.code, r.stderr)
			require.Empty(t, r.stdout)
			require.Equal(t, 1, strings.Count(r.stderr, "\n"), r.stderr)
			require.True(t, strings.HasPrefix(r.stderr, "hayward spawn: "), r.stderr)
		})
	}
	require.NoDirExists(t, filepath.Join(b.dir, "state"))
}

func TestRefusalsMapToExitCodes(t *testing.T) {
	b := newBench(t)
	for code, exit := range map[events.Code]int{
		events.CodeUnknownType: 2, events.CodeCwdMissing: 2, events.CodeUnknownProfile: 2,
		events.CodeBusy: 125, events.CodePromptCancelled: 125, events.CodeStorageFull: 125, events.CodeDuplicateName: 125,
		events.CodeWorkspaceRefused: 125, events.CodeUnsupported: 125,
		events.CodeSandboxUnavailable: 126, events.CodeCommandNotExec: 126, events.CodeCommandNotFound: 127,
	} {
		b.s.Handle(events.RequestSubject(events.KindSpawn), func(r *fakeservice.Request) {
			r.Refuse(events.Errorf(code, events.LayerGate, "no: %s", code).WithRemedy("do otherwise"))
		})
		r := b.run("spawn", "--json", "--", "x")
		require.Equal(t, exit, r.code, code)
		require.Equal(t, "hayward spawn: no: "+string(code)+" (do otherwise)\n", r.stderr)
		require.Equal(t, `{"error":{"code":"`+string(code)+`","layer":"gate","message":"no: `+string(code)+`","remedy":"do otherwise"}}`+"\n", r.stdout)
		r = b.run("spawn", "--detach", "--", "x")
		require.Equal(t, exit, r.code, code)
		require.Empty(t, r.stdout)
	}
}

func TestNoDaemonRunsInProcess(t *testing.T) {
	b := newIdleBench(t)
	r := b.run("spawn", "--no-daemon", "--", "both")
	require.Equal(t, result{stdout: "out\n", stderr: "err\n"}, r)
	require.NoDirExists(t, filepath.Join(b.dir, "state"))
	require.Equal(t, 9, b.run("spawn", "--no-daemon", "--", "exit", "9").code)
}

// failing is a stdout that nobody reads.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestOutputThatIsNotTakenIsNotAcknowledged(t *testing.T) {
	b := newBench(t)
	var stderr buffer
	full := errors.New("no space left on device")
	code := b.runTo(nil, failing{full}, &stderr, "spawn", "--", "echo", "hi")
	require.Equal(t, 125, code)
	require.Contains(t, stderr.String(), full.Error())
	code = b.runTo(nil, failing{full}, &stderr, "spawn", "--json", "--", "echo", "hi")
	require.Equal(t, 125, code)
	require.Zero(t, b.s.Acks())
}

// refuser answers every request with an error.
func refuser(e *events.Error) fakeservice.Handler {
	return func(r *fakeservice.Request) { r.Refuse(e) }
}
