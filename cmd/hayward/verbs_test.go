package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/fakeservice"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The values that differ from run to run.
var varying = []struct{ pattern, with string }{
	{`"[0-9a-f]{8}-[0-9a-f-]{27}`, `"ID`},
	{`/[0-9a-f]{8}-[0-9a-f-]{27}`, `/ID`},
	{`"\d{4}-\d\d-\d\dT[^"]*Z"`, `"TIME"`},
	{`"(duration_ms|elapsed_ms|pid|uptime_ms)":\d+`, `"$1":0`},
	{`"(version|go|platform)":"[^"]*"`, `"$1":"V"`},
	{`"(PATH|HOME)":"[^"]*"`, `"$1":"V"`},
	{`"cwd":"[^"]*"`, `"cwd":"DIR"`},
}

// golden compares JSON with a file, values that vary left out. Shapes only grow:
// a member that goes away breaks whoever reads it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, v := range varying {
		got = regexp.MustCompile(v.pattern).ReplaceAllString(got, v.with)
	}
	got = strings.NewReplacer(`,"`, ",\n\"", `{"`, "{\n\"", `}`, "\n}").Replace(got)
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestJSONShapes(t *testing.T) {
	b := newBench(t)
	b.ended(events.Spawn{Name: "good", Command: []string{"echo", "hi"}, ParentPromptID: "p", Labels: map[string]string{"k": "v"}})
	b.ended(events.Spawn{Name: "bad", Command: []string{"exit", "3"}, ParentPromptID: "p"})
	live := b.accept(events.Spawn{Name: "live", Command: []string{"gentle"}, ParentPromptID: "p", RunInBackground: true})
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"spawn":       {args: []string{"spawn", "--session", "other", "--", "both"}},
		"detach":      {args: []string{"spawn", "-d", "--session", "other", "--", "echo"}},
		"query":       {args: []string{"query", "good", "bad", "nobody"}, code: 4},
		"ps":          {args: []string{"ps", "--session", "default"}},
		"completions": {args: []string{"completions", "--peek"}},
		"outstanding": {args: []string{"outstanding", "--parent-prompt", "p"}},
		"inspect":     {args: []string{"inspect", "good"}},
		"logs":        {args: []string{"logs", "good"}},
		"dry-run":     {args: []string{"cancel", "--parent-prompt", "p", "--dry-run"}},
		"version":     {args: []string{"version"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.run(append(c.args, "--json")...)
			if len(c.args) > 2 && c.args[len(c.args)-2] == "--" { // flags go before a command
				args := append([]string{c.args[0], "--json"}, c.args[1:]...)
				r = b.run(args...)
			}
			require.Equal(t, c.code, r.code, r.stderr)
			require.Equal(t, 1, strings.Count(r.stdout, "\n"), "one object on one line")
			golden(t, name, r.stdout)
		})
	}
	golden(t, "cancel", b.run("cancel", "--json", "live", "good", "nobody").stdout)
	require.Equal(t, events.StatusCancelled, live.Snapshot().Status)
}

func TestQueryAndWait(t *testing.T) {
	b := newBench(t)
	good := b.ended(events.Spawn{Name: "good", Command: []string{"echo", "hi"}})
	b.ended(events.Spawn{Name: "bad", Command: []string{"exit", "3"}})
	b.accept(events.Spawn{Name: "live", Command: []string{"gentle"}})
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"completed":             {[]string{"query", "good"}, 0},
		"by the end of its id":  {[]string{"query", good.ID()[30:]}, 0},
		"running":               {[]string{"query", "live"}, 0},
		"failed":                {[]string{"query", "good", "bad"}, 1},
		"unknown":               {[]string{"query", "nobody"}, 4},
		"unknown, waiting":      {[]string{"query", "--wait", "nobody"}, 4},
		"wait for unknown":      {[]string{"wait", "nobody"}, 4},
		"foreign":               {[]string{"query", "--session", "other", "good"}, 4},
		"wait for ended":        {[]string{"wait", "good"}, 0},
		"wait for failed":       {[]string{"wait", "bad"}, 1},
		"wait any":              {[]string{"wait", "--any", "live", "good"}, 0},
		"wait and time out":     {[]string{"wait", "--timeout", "10ms", "live"}, 124},
		"query and time out":    {[]string{"query", "--wait", "--timeout", "10ms", "live", "bad"}, 124},
		"any without wait":      {[]string{"query", "--any", "good"}, 2},
		"negative timeout":      {[]string{"wait", "--timeout", "-1s", "good"}, 2},
		"neither id nor a name": {[]string{"query", "a b"}, 2},
		"no id":                 {[]string{"wait"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.run(c.args...)
			require.Equal(t, c.code, r.code, r.stdout+r.stderr)
		})
	}
	require.Zero(t, b.s.Acks(), "looking reads nothing")
}

func TestQueryTakesMoreThanOnePage(t *testing.T) {
	b := newBench(t)
	var ids []string
	for range events.MaxQueryIDs + 5 {
		ids = append(ids, b.accept(events.Spawn{Command: []string{"echo"}}).ID())
	}
	r := b.run(append([]string{"wait"}, ids...)...)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, len(ids)+1, strings.Count(r.stdout, "\n"))
	require.Equal(t, strings.Join(ids, "\n")+"\n", b.run("ps", "-aq").stdout)
}

func TestCancelTargets(t *testing.T) {
	b := newBench(t)
	for _, s := range []events.Spawn{
		{Name: "a", ParentPromptID: "p"}, {Name: "b", ParentPromptID: "p", RunInBackground: true}, {Name: "c", ParentPromptID: "q"},
		{Name: "d", ParentPromptID: "p", ParentSessionID: "S"}, {Name: "e", Labels: map[string]string{"k": "v", "x": "y"}},
		{Name: "f", ParentSessionID: "T"}, {Name: "g", ParentSessionID: "T"},
	} {
		s.Command = []string{"gentle"}
		b.accept(s)
	}
	names := func(r result) string {
		var all []string
		for _, line := range strings.Split(strings.TrimSpace(r.stdout), "\n")[1:] {
			all = append(all, strings.Fields(line)[1])
		}
		return strings.Join(all, " ")
	}
	require.Equal(t, "a b", names(b.run("cancel", "--parent-prompt", "p", "--dry-run")))
	require.Equal(t, "a b", names(b.run("cancel", "--parent-prompt", "p")))
	require.Equal(t, "d", names(b.run("stop", "--parent-prompt", "p", "--session", "S")))
	require.Equal(t, "e", names(b.run("cancel", "--label", "k=v", "--label", "x=y")))
	require.Equal(t, "f g", names(b.run("cancel", "--session", "T")))
	r := b.run("kill", "c")
	require.Equal(t, "c", names(r))
	stop, ok := b.coord.Agent("c").Stop(1)
	require.True(t, ok)
	require.True(t, stop.Kill, "called as kill")
	require.Equal(t, events.ReasonUser, stop.Reason)

	require.Equal(t, 4, b.run("cancel", "nobody").code)
	require.Equal(t, 2, b.run("cancel").code)
	require.Equal(t, 2, b.run("cancel", "a", "--parent-prompt", "p").code, "two targets")
	r = b.run("cancel", "--parent-prompt", "none")
	require.Zero(t, r.code)
	require.Contains(t, r.stderr, "nothing to cancel")
}

func TestCancelThatIsDrainingIsADeadline(t *testing.T) {
	b := newBench(t)
	b.s.Handle(events.RequestSubject(events.KindCancel), func(r *fakeservice.Request) {
		r.Reply(events.CancelReply{Results: []events.CancelResult{{SubagentID: events.NewID(), Outcome: events.CancelDraining}}})
	})
	require.Equal(t, 124, b.run("cancel", "abcd").code)
}

func TestCompletionsAreReadOnceTheyArePrinted(t *testing.T) {
	b := newBench(t)
	one := b.ended(events.Spawn{Name: "one", Command: []string{"echo"}})
	require.Zero(t, b.run("completions", "--peek").code)
	require.Zero(t, b.run("completions", "--lease", "1m").code)
	require.Zero(t, b.s.Acks())
	var stderr buffer
	require.NotZero(t, b.runTo(nil, failing{os.ErrClosed}, &stderr, "completions", "--json"))
	require.Zero(t, b.s.Acks(), "not printed, not read")

	r := b.run("completions")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "one")
	b.ack()

	r = b.run("completions", "--json", "--suppress", "one")
	require.Equal(t, `{"completions":[]}`+"\n", r.stdout)
	r = b.run("completions", "--json", "--ack", one.ID()[28:])
	require.Equal(t, `{"completions":[],"acked":["`+one.ID()+`"]}`+"\n", r.stdout)
	require.Equal(t, 4, b.run("completions", "--ack", "nobody").code)
	require.Equal(t, 2, b.run("completions", "positional").code)
	require.Equal(t, 2, b.run("completions", "--max", "101").code)
	require.Equal(t, 2, b.run("completions", "--peek", "--lease", "1s").code)
	require.Equal(t, 2, b.run("outstanding").code)
}

func TestLogs(t *testing.T) {
	b := newBench(t)
	a := b.accept(events.Spawn{Name: "x", Command: []string{"none"}})
	a.Write("stdout", "1\n2\n\xff\xfe\n")
	a.Write("stderr", "warn\n")
	other := b.accept(events.Spawn{Name: "y", Command: []string{"none"}})
	other.Write("stdout", "no newline")

	require.Equal(t, "1\n2\n\xff\xfe\n", b.run("logs", "x").stdout)
	require.Equal(t, "warn\n", b.run("logs", "--stderr", "x").stdout)
	require.Equal(t, "2\n\xff\xfe\n", b.run("logs", "--tail", "2", "x").stdout)
	require.Equal(t, "==> x <==\n1\n2\n\xff\xfe\n\n==> y <==\nno newline", b.run("logs", "x", "y").stdout)
	require.Equal(t, `{"subagent_id":"`+a.ID()+`","stream":"stdout","offset":4,"bytes":3,"text":"//4K","encoding":"base64"}`+"\n",
		b.run("logs", "--json", "--tail", "1", "x").stdout)
	require.Equal(t, 4, b.run("logs", "nobody").code)
	require.Equal(t, 4, b.run("logs", "-f", "x", "nobody").code)
	require.Equal(t, 2, b.run("logs", "--tail", "-1", "x").code)
	require.Equal(t, 2, b.run("logs", "--tail", "1", "--since", "1s", "x").code)

	a.Exit(0)
	other.Exit(0)
	r := b.run("logs", "-f", "x", "y")
	require.Zero(t, r.code, r.stderr)
	lines := strings.Split(r.stdout, "\n")
	require.ElementsMatch(t, []string{"x | 1", "x | 2", "x | \xff\xfe", "y | no newline", ""}, lines)
}

func TestTranscriptAndSince(t *testing.T) {
	b := newBench(t)
	a := b.accept(events.Spawn{Name: "x", Command: []string{"none"}})
	a.Write("stdout", "old\nnew\n")
	code := 0
	old, now := time.Now().Add(-time.Hour).UTC(), time.Now().UTC()
	for _, item := range []events.Item{
		{Seq: 1, At: old, Kind: events.ItemCommand, Argv: []string{"sh", "-c", "x"}},
		{Seq: 2, At: old, Kind: events.ItemOutput, Stream: "stdout", Bytes: 4, Text: "old\n"},
		{Seq: 3, At: now, Kind: events.ItemOutput, Stream: "stdout", Offset: 4, Bytes: 4, Text: "new\n\x1b[31m"},
		{Seq: 4, At: now, Kind: events.ItemExit, Exit: &events.Exit{Code: &code}},
	} {
		line, err := events.Marshal(item)
		require.NoError(t, err)
		a.Write("transcript", string(line)+"\n")
	}
	require.Equal(t, "new\n", b.run("logs", "--since", "1m", "x").stdout)
	require.Equal(t, "old\nnew\n", b.run("logs", "--since", "2h", "x").stdout)
	require.Empty(t, b.run("logs", "--since", "1ns", "x").stdout)

	r := b.run("transcript", "x")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "command | sh -c x\n")
	require.Contains(t, r.stdout, "output stdout | new\n")
	require.NotContains(t, r.stdout, "\x1b")
	require.Contains(t, r.stdout, "exit | code 0\n")
	require.Equal(t, 4, strings.Count(b.run("transcript", "--json", "x").stdout, "\n"))
	require.Equal(t, 2, strings.Count(b.run("transcript", "--json", "--since", "1m", "x").stdout, "\n"))

	a.Write("transcript", "{not an item}\n")
	r = b.run("transcript", "x")
	require.Equal(t, 125, r.code)
	require.Contains(t, r.stderr, "damaged")
}

// What a real agent's stream was read into is shown as a conversation.
func TestTranscriptOfAnAgent(t *testing.T) {
	b := newBench(t)
	a := b.accept(events.Spawn{Name: "x", Command: []string{"claude"}})
	golden, err := os.ReadFile(filepath.Join("..", "..", "adapter", "testdata", "claude-denied.golden"))
	require.NoError(t, err)
	items := strings.Split(strings.TrimSpace(string(golden)), "\n")
	items = items[:len(items)-1] // the last line is the result of the run
	a.Write("transcript", strings.Join(items, "\n")+"\n")
	r := b.run("transcript", "x")
	require.Zero(t, r.code, r.stderr)
	shown := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `).ReplaceAllString(r.stdout, "")
	require.Equal(t, `session 00000000-0000-7000-8000-000000000001 (claude-opus-4-8)

assistant
  I write the file.

tool Write
  made.txt

result of Write, an error
  Claude requested permissions to write to /project/made.txt, but you haven't granted it yet.

assistant
  I was not allowed to write.

end: end, 230 tokens in, 29 out

`, shown)
	require.Equal(t, strings.Join(items, "\n")+"\n", b.run("transcript", "--json", "x").stdout)
}

func TestTablesAreTheSameWhenPiped(t *testing.T) {
	b := newBench(t)
	b.ended(events.Spawn{Name: "bad", Command: []string{"exit", "3"}})
	b.accept(events.Spawn{Name: "live", Command: []string{"gentle", "\x1b[31m"}})
	r := b.run("ps", "-a")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Equal(t, strings.Fields("ID NAME STATUS EXIT ELAPSED SANDBOX SESSION COMMAND"), strings.Fields(lines[0]))
	require.Equal(t, []string{"bad", "failed", "3"}, strings.Fields(lines[1])[1:4])
	require.Equal(t, []string{"live", "running", "-"}, strings.Fields(lines[2])[1:4])
	require.NotContains(t, r.stdout, "\x1b", "neither colors nor what a command put there")
	require.NotContains(t, b.run("ps").stdout, "bad")
}

func TestTreeOfSubagents(t *testing.T) {
	snapshot := func(id, name, parent, session, prompt string) events.Snapshot {
		return events.Snapshot{SubagentID: id, Name: name, ParentID: parent, ParentSessionID: session, ParentPromptID: prompt}
	}
	tab := treeTable([]events.Snapshot{
		snapshot("1", "root", "", "S", "p"), snapshot("2", "other", "gone", "S", "p"), snapshot("3", "leaf", "4", "S", "p"),
		snapshot("4", "node", "1", "S", "p"), snapshot("5", "", "", "T", ""), snapshot("6", "last", "", "S", "q"),
	})
	var lines []string
	for _, row := range tab.rows {
		lines = append(lines, row[0])
	}
	require.Equal(t, []string{
		"session S",
		"├ prompt p",
		"│ ├ 1 root",
		"│ │ └ 4 node",
		"│ │   └ 3 leaf",
		"│ └ 2 other",
		"└ prompt q",
		"  └ 6 last",
		"session T",
		"└ 5",
	}, lines)

	b := newBench(t)
	b.ended(events.Spawn{Name: "over", Command: []string{"exit", "3"}, ParentPromptID: "turn"})
	b.accept(events.Spawn{Name: "live", Command: []string{"gentle"}, ParentPromptID: "turn"})
	r := b.run("ps", "--tree", "--since", "1h")
	require.Regexp(t, `(?m)^session default\n└ prompt turn\n  ├ [0-9a-f]{8} over +failed +3 .*\n  └ [0-9a-f]{8} live +running +- `, r.stdout)
	require.NotContains(t, b.run("ps", "--tree").stdout, "over")
}

func TestNarrowTerminals(t *testing.T) {
	tab := &table{header: []string{"A", "B"}}
	tab.add("1", "longer than the line")
	require.Equal(t, "A  B\n1  longer…\n", tab.render(10, false))
	require.Equal(t, "a\nb\n", fit("a\nb\n", 3))
	require.Equal(t, "a\n… and 3 more\n", fit("a\nb\nc\nd\n", 3))
}

func TestDoctor(t *testing.T) {
	idle := newIdleBench(t)
	r := idle.run("doctor", "--json")
	var d diagnosis
	require.NoError(t, events.DecodeRecord([]byte(r.stdout), &d))
	require.Nil(t, d.Daemon)
	require.Equal(t, d.OK, r.code == 0)
	names := map[string]finding{}
	for _, f := range d.Findings {
		names[f.Name] = f
	}
	for _, name := range []string{"kernel", "landlock", "seccomp", "namespaces", "user namespace", "network namespace", "tree kill", "sandbox workspace", "state directory", "runtime directory", "daemon"} {
		require.Contains(t, names, name)
	}
	require.NoDirExists(t, filepath.Join(idle.dir, "state"), "looking makes nothing")

	b := newBench(t)
	r = b.run("doctor")
	require.Contains(t, r.stdout, "limit per_session")
	require.Contains(t, r.stdout, "32 (default)")

	require.NoError(t, os.Chmod(filepath.Join(b.dir, "state"), 0o777))
	r = b.run("doctor")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "remedy: chmod 700")
}

func TestShutdownWithoutADaemon(t *testing.T) {
	b := newIdleBench(t)
	r := b.run("shutdown", "--json")
	require.Equal(t, result{stdout: `{"running":false,"ended":0,"left":0}` + "\n"}, r)
	require.NoDirExists(t, filepath.Join(b.dir, "state"))
	require.Equal(t, 2, b.run("shutdown", "--kill", "--handover").code)
}

func TestRunVerb(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(b.dir, "plan.toml")
	require.NoError(t, os.WriteFile(file, []byte("[[subagent]]\nname = \"one\"\ncommand = [\"echo\", \"hi\"]\n"), 0o600))
	r := b.run("run", file)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "one")
	require.NoError(t, os.WriteFile(file, []byte("[[subagent]]\nname = \"one\"\ncommand = [\"exit\", \"4\"]\n"), 0o600))
	require.Equal(t, 1, b.run("run", file).code)
	require.Equal(t, 2, b.run("run", filepath.Join(b.dir, "none.toml")).code)
	require.Equal(t, 2, b.run("run").code)
}

// A bad plan is one object with --json, as any other bad input is.
func TestRunSaysWhatIsWrongWithAPlan(t *testing.T) {
	b := newIdleBench(t)
	file := func(name, text string) string {
		path := filepath.Join(b.dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	items, err := os.Open(file("items", "a\n\xff\n"))
	require.NoError(t, err)
	defer items.Close()
	bad := file("bad.toml", "nam = 1\n[[subagent]]\nname = \"a\"\ncomand = [\"true\"]\n")
	none := filepath.Join(b.dir, "none.toml")
	for _, c := range []struct {
		about string
		args  []string
		says  []string
	}{
		{"no such file", []string{none}, []string{none + ": open the plan: no such file or directory"}},
		{"faults", []string{bad}, []string{bad + ":1: nam: unknown key", bad + ":2: subagent[0]: has no command", bad + ":4: subagent[0].comand: unknown key"}},
		{"item", []string{"--for-each", "-", "--", "echo"}, []string{`stdin: item 2, "\xff": is not UTF-8`}},
		{"jobs", []string{"-j", "-1", bad}, []string{"-j -1 is not between 1 and 10000"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			for _, flags := range [][]string{nil, {"--json"}} {
				_, err := items.Seek(0, io.SeekStart)
				require.NoError(t, err)
				r := b.runWith(items, append(append([]string{"run"}, flags...), c.args...)...)
				require.Equal(t, 2, r.code)
				lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
				for i, says := range c.says {
					require.True(t, strings.HasPrefix(lines[i], "hayward run: "+says), r.stderr)
				}
				if flags == nil {
					require.Empty(t, r.stdout)
					continue
				}
				var said failure
				require.NoError(t, json.Unmarshal([]byte(r.stdout), &said), r.stdout)
				require.Equal(t, events.CodeInvalidRequest, said.Error.Code)
				for _, says := range c.says {
					require.Contains(t, said.Error.Message, says)
				}
			}
		})
	}
	require.NoDirExists(t, filepath.Join(b.dir, "state"))
}
