package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/modelstub"
)

// The keys of both model APIs, which the gateway has and no agent may see.
const (
	anthropicKey = "sk-ant-the-key-of-the-user"
	openaiKey    = "sk-openai-the-key-of-the-user"
)

// realAgents are the CLIs that TestRealAgents runs, unmodified.
var realAgents = []string{"claude", "codex"}

// The real claude and codex run as subagents, in parallel, against scripted models:
// what each does and what it may not is seen from outside. scripts/agents.sh
// installs them.
func TestRealAgents(t *testing.T) {
	dir := os.Getenv(agentCLIs)
	if dir == "" {
		t.Skip("needs the agent CLIs of HAYWARD_AGENT_CLIS")
	}
	shown := &proofs{}
	t.Cleanup(func() { shown.print(t) })
	asUsers(t, func(t *testing.T, u *user) {
		w := newRealWorld(t, u, filepath.Join(dir, "node_modules", ".bin"), shown)
		for _, profile := range []string{"", "strict"} {
			w.work(profile)
		}
		w.demands()
		w.cancel()
		w.crash()
		for _, r := range w.model.Requests() {
			key := map[bool]string{true: openaiKey, false: anthropicKey}[strings.HasSuffix(r.Path, "/responses")]
			require.Equal(t, modelstub.Fingerprint(key), r.Key, "the model API sees the user's key")
		}
	})
}

// realWorld is a user with both CLIs, a model that knows what they are to do, and a
// coordinator.
type realWorld struct {
	t     *testing.T
	u     *user
	c     *coordinator
	model *modelstub.Server
	shown *proofs
	// port is that of a listener on the machine's own loopback.
	port int

	mu     sync.Mutex
	meets  map[string]*meeting // by round; guarded by mu
	middle chan struct{}       // a value for each answer that is half sent
	resume chan struct{}
}

// meeting holds the first answers of a round back until both agents have asked.
type meeting struct {
	asked map[string]bool
	both  chan struct{}
}

func newRealWorld(t *testing.T, u *user, bin string, shown *proofs) *realWorld {
	w := &realWorld{t: t, u: u, shown: shown, meets: map[string]*meeting{}, middle: make(chan struct{}, 16), resume: make(chan struct{})}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	w.port = l.Addr().(*net.TCPAddr).Port
	w.model, err = modelstub.Start(modelstub.Script{Keys: []string{anthropicKey, openaiKey}, Scenarios: []modelstub.Scenario{{Respond: w.turn}}}, modelstub.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.model.Close()) })
	config := "[gateway]\n"
	for api, key := range map[string]string{"anthropic": anthropicKey, "openai": openaiKey} {
		file := filepath.Join(u.home, api+".key")
		u.file(file, key+"\n", 0o600)
		config += fmt.Sprintf("%s_url = %q\n%s_key_file = %q\n", api, w.model.URL(), api, file)
	}
	u.configure("config.toml", config)
	for i, kv := range u.env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			u.env[i] = "PATH=" + bin + ":" + path
		}
	}
	w.c = u.serve(nil)
	return w
}

// task is what a prompt of this test says.
var task = regexp.MustCompile(`task=(\w+) round=(\w+) dir=([^ "\\]+)`)

// turn is what the model answers. Which API is asked tells which agent asks.
func (w *realWorld) turn(r modelstub.Request, n int) modelstub.Turn {
	agent := "claude"
	if strings.HasSuffix(r.Path, "/responses") {
		agent = "codex"
	}
	said := task.FindStringSubmatch(r.Body)
	if said == nil {
		return modelstub.Turn{Text: "ok"} // what a CLI asks beside its task
	}
	what, round, dir := said[1], said[2], said[3]
	var turns []modelstub.Turn
	switch what {
	case "work":
		turns = []modelstub.Turn{{Text: "I look around.", Tools: shellCall(agent, w.look(agent))}}
		turns = append(turns, editTurns(agent, dir)...)
	case "cancel":
		turns = []modelstub.Turn{{Text: "I wait.", Tools: shellCall(agent, "setsid sleep 86398 & (nohup setsid sleep 86398 >/dev/null 2>&1 &); sleep 86398")}}
	case "crash":
		turns = []modelstub.Turn{{
			Text:  strings.Repeat("I say much before I do anything. ", 20),
			Tools: shellCall(agent, "echo done >> made.txt"), Middle: w.middle, Resume: w.resume,
		}}
	}
	if turns == nil {
		turns = demandTurns(agent, what, dir)
	}
	turn := modelstub.Turn{Text: "All is done."}
	switch {
	case n < len(turns):
		turn = turns[n]
	case len(turns) > 0 && turns[len(turns)-1].Repeat:
		turn = turns[len(turns)-1]
	}
	if n == 0 {
		turn.Until = w.meet(round, agent)
	}
	turn.Usage = modelstub.Usage{Input: 100 + int64(n), Output: 20, CacheRead: 7}
	return turn
}

// meet is closed once both agents of a round have asked.
func (w *realWorld) meet(round, agent string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.meets[round]
	if m == nil {
		m = &meeting{asked: map[string]bool{}, both: make(chan struct{})}
		w.meets[round] = m
	}
	if !m.asked[agent] {
		m.asked[agent] = true
		if len(m.asked) == len(realAgents) {
			close(m.both)
		}
	}
	return m.both
}

// alone lets an agent of a round go on without the other.
func (w *realWorld) alone(round string) {
	for _, agent := range realAgents {
		w.meet(round, agent)
	}
}

// look is a command that writes down what an agent can see and reach.
func (w *realWorld) look(agent string) string {
	return fmt.Sprintf("{ echo seen by %s; env; echo --; cat /proc/net/dev; "+
		"timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d' 2>/dev/null && echo REACHED || echo OUT OF REACH; "+
		"cat ~/*.key 2>&1; } > seen.txt", agent, w.port)
}

// shellCall calls an agent's own shell tool.
func shellCall(agent, command string) []modelstub.ToolCall {
	if agent == "codex" {
		return []modelstub.ToolCall{{Name: "exec_command", Input: encoded(map[string]any{"cmd": command, "yield_time_ms": 600_000})}}
	}
	return []modelstub.ToolCall{{Name: "Bash", Input: encoded(map[string]any{"command": command, "description": "Do it", "timeout": 600_000})}}
}

// editTurns change notes.txt by the agent's own means for that.
func editTurns(agent, dir string) []modelstub.Turn {
	if agent == "codex" {
		patch := "*** Begin Patch\n*** Update File: notes.txt\n@@\n-before\n+after\n*** End Patch\n"
		return []modelstub.Turn{{Tools: []modelstub.ToolCall{{Name: "apply_patch", Input: encoded(patch)}}}}
	}
	file := filepath.Join(dir, "notes.txt")
	return []modelstub.Turn{
		{Tools: []modelstub.ToolCall{{Name: "Read", Input: encoded(map[string]any{"file_path": file})}}},
		{Tools: []modelstub.ToolCall{{Name: "Edit", Input: encoded(map[string]any{"file_path": file, "old_string": "before", "new_string": "after"})}}},
	}
}

func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers
	}
	return b
}

// spawn starts both agents with a task and returns their ids and directories.
func (w *realWorld) spawn(what, round string, flags ...string) (ids, dirs map[string]string) {
	w.t.Helper()
	ids, dirs = map[string]string{}, map[string]string{}
	for _, agent := range realAgents {
		dir := w.directory(round + "-" + agent)
		args := append([]string{"--type", "general-purpose", "--cwd", dir, "--workspace", dir, "--max-runtime", "4m",
			"--prompt", prompt(what, round, dir)}, flags...)
		ids[agent], dirs[agent] = w.u.detach(append(args, "--", agent)...), dir
	}
	return ids, dirs
}

// directory makes one for an agent to work in.
func (w *realWorld) directory(name string) string {
	w.t.Helper()
	dir := filepath.Join(w.u.work, name)
	require.NoError(w.t, os.Mkdir(dir, 0o755))
	require.NoError(w.t, os.Chown(dir, w.u.uid, w.u.uid))
	w.u.file(filepath.Join(dir, "notes.txt"), "before\n", 0o644)
	return dir
}

// prompt tells an agent, and the model, what to do.
func prompt(what, round, dir string) string {
	return fmt.Sprintf("Do this: task=%s round=%s dir=%s .", what, round, dir)
}

// ended waits for the end of both.
func (w *realWorld) ended(ids map[string]string) map[string]map[string]any {
	w.t.Helper()
	snaps := w.u.await(ids["claude"], ids["codex"])
	return map[string]map[string]any{"claude": snaps[0], "codex": snaps[1]}
}

// work lets both work at once under a profile, the default one if it is empty.
func (w *realWorld) work(profile string) {
	name, flags := "default", []string(nil)
	if profile != "" {
		name, flags = profile, []string{"--sandbox", profile}
	}
	ids, dirs := w.spawn("work", name, flags...)
	for agent, s := range w.ended(ids) {
		p := w.shown.of(w, name, agent)
		p.check("completes beside the other", s["status"] == "completed" && s["output"] == "All is done.", s["status"], s["error"], s["output"])
		seen := w.text(filepath.Join(dirs[agent], "seen.txt"))
		p.check("runs a command by its own tool", strings.HasPrefix(seen, "seen by "+agent+"\n"), seen)
		p.check("changes a file by its own tool", w.text(filepath.Join(dirs[agent], "notes.txt")) == "after\n")
		home := filepath.Join(w.u.home, "state/subagents", ids[agent])
		keys := []string{anthropicKey, openaiKey}
		p.check("no key in environment, home or output", !holds(w.t, home, keys...) && !containsAny(seen, keys...), seen)
		sandbox := s["sandbox"].(map[string]any)
		if profile == "strict" {
			p.check("no route out", strings.Contains(seen, "OUT OF REACH") && !strings.Contains(seen, "eth0") && sandbox["network"] == "loopback", sandbox["network"], seen)
		} else {
			p.check("the probe of the network works", strings.Contains(seen, "REACHED"), seen)
		}
		result, _ := s["agent"].(map[string]any)
		p.check("stop reason and session id", result["stop_reason"] == "end" && result["session_id"] != nil && result["session_id"] != "", result)
		told, metered := usageOf(result["usage"]), w.metered(ids[agent])
		p.check("usage, as it was metered", told == metered && told[1] > 0, told, metered)
	}
}

// text is a file's content, empty if there is none.
func (w *realWorld) text(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(w.t, err)
	}
	return string(b)
}

// usageOf are input, output and cache reads.
func usageOf(v any) [3]float64 {
	m, _ := v.(map[string]any)
	var u [3]float64
	for i, name := range []string{"input_tokens", "output_tokens", "cache_read_tokens"} {
		u[i], _ = m[name].(float64)
	}
	return u
}

// metered sums the calls in the ledger of a subagent.
func (w *realWorld) metered(id string) (sum [3]float64) {
	for line := range strings.Lines(w.text(filepath.Join(w.u.home, "state/subagents", id, "usage.jsonl"))) {
		var call map[string]any
		require.NoError(w.t, json.Unmarshal([]byte(line), &call))
		for i, n := range usageOf(call["usage"]) {
			sum[i] += n
		}
	}
	return sum
}

// cancel ends both while what they started sleeps, one of it behind a double fork.
func (w *realWorld) cancel() {
	ids, _ := w.spawn("cancel", "cancel")
	const each = 3
	require.True(w.t, w.u.eventually(func() bool { return w.u.running("sleep\x0086398") == each*len(realAgents) }), "%v", w.u.subagentProcesses())
	clean := true
	for _, line := range w.u.subagentProcesses() {
		pid, _, _ := strings.Cut(line, " ")
		for _, name := range []string{"environ", "cmdline"} {
			b, err := os.ReadFile(filepath.Join("/proc", pid, name))
			clean = clean && (err != nil || !containsAny(string(b), anthropicKey, openaiKey)) // an error: it is gone
		}
	}
	began := time.Now()
	r := w.u.run("cancel", "--json", ids["claude"], ids["codex"])
	left := w.u.subagentProcesses()
	for i, agent := range realAgents {
		p := w.shown.of(w, "default", agent)
		p.check("no key in any process of its tree", clean)
		outcome := list(w.t, r.object(w.t), "results")[i]["outcome"]
		p.check("cancel ends its whole tree", outcome == "cancelled" && len(left) == 0, outcome, left, time.Since(began))
		s := w.u.snapshot(ids[agent])
		result, _ := s["agent"].(map[string]any)
		p.check("says that it was cancelled", s["status"] == "cancelled" && result["stop_reason"] == "cancelled", s["status"], result)
	}
}

// crash kills the coordinator while both models' answers are half sent.
func (w *realWorld) crash() {
	ids, dirs := w.spawn("crash", "crash")
	for range realAgents {
		select {
		case <-w.middle:
		case <-time.After(deadline):
			require.Fail(w.t, "no answer is under way")
		}
	}
	w.c.crash()
	require.Len(w.t, w.u.supervisors(), len(realAgents), "they go on without a coordinator")
	close(w.resume)
	w.c = w.u.serve(nil)
	for agent, s := range w.ended(ids) {
		p := w.shown.of(w, "default", agent)
		made := w.text(filepath.Join(dirs[agent], "made.txt"))
		p.check("completes after SIGKILL of serve in its stream", s["status"] == "completed" && s["output"] == "All is done.", s["status"], s["error"])
		p.check("and did its work once", made == "done\n", made)
	}
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// holds reports whether a file below dir has one of the texts.
func holds(t *testing.T, dir string, texts ...string) bool {
	t.Helper()
	found := false
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		found = found || containsAny(string(b), texts...)
		return err
	}))
	return found
}
