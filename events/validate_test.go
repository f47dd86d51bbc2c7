package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ms(v int64) *int64 { return &v }

// refusal is one request that must be refused, with the code of its first
// fault and a part of what the message says of it.
type refusal struct {
	name  string
	event SubagentEvent
	code  Code
	says  string
}

func (r refusal) run(t *testing.T) {
	t.Run(r.name, func(t *testing.T) {
		err := r.event.Validate()
		require.NotNil(t, err)
		require.Equal(t, r.code, err.Code, "%s", err.Message)
		require.Equal(t, LayerGate, err.Layer)
		require.Contains(t, err.Message, r.says)
		require.True(t, strings.HasPrefix(err.Message, string(r.event.EventKind())+": "), "%s", err.Message)
	})
}

func spawnWith(change func(*Spawn)) Spawn {
	s := Spawn{ParentSessionID: "s", Command: []string{"true"}}
	change(&s)
	return s
}

func many(n int, entry func(int) string) map[string]string {
	m := make(map[string]string, n)
	for i := range n {
		m[entry(i)] = someID
	}
	return m
}

func TestSpawnValidate(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, tc := range []refusal{
		{"no session", Spawn{}, CodeInvalidRequest, "parent_session_id is required"},
		{"session with a space", Spawn{ParentSessionID: "a b"}, CodeInvalidRequest, `parent_session_id "a b"`},
		{"session with a wildcard", Spawn{ParentSessionID: "a.*"}, CodeInvalidRequest, "parent_session_id"},
		{"session with a line feed", Spawn{ParentSessionID: "a\n"}, CodeInvalidRequest, "parent_session_id"},
		{"long session", Spawn{ParentSessionID: strings.Repeat("s", 129)}, CodeInvalidRequest, "parent_session_id"},
		{"bad prompt id", spawnWith(func(s *Spawn) { s.ParentPromptID = "p/1" }), CodeInvalidRequest, "parent_prompt_id"},
		{"id is a name", spawnWith(func(s *Spawn) { s.ID = "build" }), CodeInvalidID, `id "build"`},
		{"id in upper case", spawnWith(func(s *Spawn) { s.ID = strings.ToUpper(someID) }), CodeInvalidID, "lower case"},
		{"id with a path", spawnWith(func(s *Spawn) { s.ID = "../" + someID[3:] }), CodeInvalidID, "id"},
		{"bad resume_from", spawnWith(func(s *Spawn) { s.ResumeFrom = "a b" }), CodeInvalidID, "resume_from"},
		{"name with a space", spawnWith(func(s *Spawn) { s.Name = "a b" }), CodeInvalidRequest, "name"},
		{"name begins with a dash", spawnWith(func(s *Spawn) { s.Name = "-rf" }), CodeInvalidRequest, "name"},
		{"long name", spawnWith(func(s *Spawn) { s.Name = strings.Repeat("n", 65) }), CodeInvalidRequest, "name"},
		{"name is an id", spawnWith(func(s *Spawn) { s.Name = someID }), CodeInvalidRequest, "taken for an id"},
		{"long prompt", spawnWith(func(s *Spawn) { s.Prompt = strings.Repeat("p", MaxPrompt+1) }), CodeTooLarge, "use prompt_file"},
		{"two prompts", spawnWith(func(s *Spawn) { s.Prompt, s.PromptFile = "p", "/p" }), CodeInvalidRequest, "exclude each other"},
		{"relative prompt file", spawnWith(func(s *Spawn) { s.PromptFile = "p.txt" }), CodeInvalidRequest, "prompt_file"},
		{"unknown stdin", spawnWith(func(s *Spawn) { s.Stdin = "tty" }), CodeInvalidRequest, `stdin "tty"`},
		{"stream and a prompt", spawnWith(func(s *Spawn) { s.Stdin, s.Prompt = StdinStream, "p" }), CodeInvalidRequest, "excludes a prompt"},
		{"stream and a prompt file", spawnWith(func(s *Spawn) { s.Stdin, s.PromptFile = StdinStream, "/p" }), CodeInvalidRequest, "excludes a prompt"},
		{"long description", spawnWith(func(s *Spawn) { s.Description = long }), CodeTooLarge, "description"},
		{"empty command word", spawnWith(func(s *Spawn) { s.Command = []string{"", "a"} }), CodeMissingCommand, "command[0]"},
		{"NUL in an argument", spawnWith(func(s *Spawn) { s.Command = []string{"echo", "a\x00b"} }), CodeInvalidRequest, "command[1]"},
		{"many arguments", spawnWith(func(s *Spawn) { s.Command = make([]string, MaxArgv+1); s.Command[0] = "true" }), CodeTooLarge, "arguments"},
		{"long arguments", spawnWith(func(s *Spawn) { s.Command = []string{"echo", strings.Repeat("a", MaxArgvBytes)} }), CodeTooLarge, "arguments"},
		{"long type", spawnWith(func(s *Spawn) { s.SubagentType = long }), CodeInvalidRequest, "subagent_type"},
		{"control character in a profile", spawnWith(func(s *Spawn) { s.Sandbox = "off\x1b[2J" }), CodeInvalidRequest, "sandbox"},
		{"long model", spawnWith(func(s *Spawn) { s.Model = long }), CodeInvalidRequest, "model"},
		{"long persona", spawnWith(func(s *Spawn) { s.Persona = long }), CodeInvalidRequest, "persona"},
		{"long capability mode", spawnWith(func(s *Spawn) { s.CapabilityMode = long }), CodeInvalidRequest, "capability_mode"},
		{"unknown isolation", spawnWith(func(s *Spawn) { s.Isolation = "sandbox" }), CodeInvalidRequest, `isolation "sandbox"`},
		{"relative cwd", spawnWith(func(s *Spawn) { s.Cwd = "." }), CodeInvalidRequest, "cwd"},
		{"NUL in cwd", spawnWith(func(s *Spawn) { s.Cwd = "/a\x00" }), CodeInvalidRequest, "cwd"},
		{"long cwd", spawnWith(func(s *Spawn) { s.Cwd = "/" + strings.Repeat("d", MaxPathBytes) }), CodeInvalidRequest, "cwd"},
		{"relative workspace", spawnWith(func(s *Spawn) { s.Workspace = "~/w" }), CodeInvalidRequest, "workspace"},
		{"empty add_dirs entry", spawnWith(func(s *Spawn) { s.AddDirs = []string{"/a", ""} }), CodeInvalidRequest, "add_dirs[1] is empty"},
		{"relative add_dirs entry", spawnWith(func(s *Spawn) { s.AddDirs = []string{"a"} }), CodeInvalidRequest, "add_dirs[0]"},
		{"empty deny entry", spawnWith(func(s *Spawn) { s.Deny = []string{"**/.env", ""} }), CodeInvalidRequest, "deny[1] is empty"},
		{"many deny entries", spawnWith(func(s *Spawn) { s.Deny = strings.Split(strings.Repeat("a ", MaxDeny)+"a", " ") }), CodeTooLarge, "deny"},
		{"many add_dirs", spawnWith(func(s *Spawn) { s.AddDirs = strings.Split(strings.Repeat("/a ", MaxAddDirs)+"/a", " ") }), CodeTooLarge, "add_dirs"},
		{"negative budget", spawnWith(func(s *Spawn) { s.AwaitBudgetMS = ms(-1) }), CodeInvalidRequest, "await_budget_ms"},
		{"endless runtime", spawnWith(func(s *Spawn) { s.MaxRuntimeMS = ms(MaxDurationMS + 1) }), CodeInvalidRequest, "max_runtime_ms"},
		{"negative idle", spawnWith(func(s *Spawn) { s.IdleTimeoutMS = ms(-5) }), CodeInvalidRequest, "idle_timeout_ms"},
		{"many variables", spawnWith(func(s *Spawn) { s.Env = many(MaxEnv+1, func(i int) string { return fmt.Sprintf("V%d", i) }) }), CodeTooLarge, "env"},
		{"variable with =", spawnWith(func(s *Spawn) { s.Env = map[string]string{"A=B": ""} }), CodeInvalidRequest, "variable's name"},
		{"NUL in a value", spawnWith(func(s *Spawn) { s.Env = map[string]string{"A": "\x00"} }), CodeInvalidRequest, "A holds a NUL"},
		{"many labels", spawnWith(func(s *Spawn) { s.Labels = many(MaxLabels+1, func(i int) string { return fmt.Sprintf("l%d", i) }) }), CodeTooLarge, "labels"},
		{"bad label", spawnWith(func(s *Spawn) { s.Labels = map[string]string{"a b": ""} }), CodeInvalidRequest, `labels: "a b"`},
		{"long label value", spawnWith(func(s *Spawn) { s.Labels = map[string]string{"a": long} }), CodeInvalidRequest, "value of a"},
		{"many inputs", spawnWith(func(s *Spawn) { s.Inputs = many(MaxInputs+1, func(i int) string { return fmt.Sprintf("i%d", i) }) }), CodeTooLarge, "inputs"},
		{"bad input name", spawnWith(func(s *Spawn) { s.Inputs = map[string]string{"a-b": someID} }), CodeInvalidRequest, `inputs: "a-b"`},
		{"bad input id", spawnWith(func(s *Spawn) { s.Inputs = map[string]string{"a": "../x"} }), CodeInvalidID, "inputs: a"},
		{"schema is a string", spawnWith(func(s *Spawn) { s.OutputSchema = json.RawMessage(`"object"`) }), CodeInvalidRequest, "output_schema"},
		{"schema is torn", spawnWith(func(s *Spawn) { s.OutputSchema = json.RawMessage(`{"type":`) }), CodeInvalidRequest, "output_schema"},
	} {
		tc.run(t)
	}
	for _, name := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_FUNC_ls", "BASH_ENV", "ENV", "PROMPT_COMMAND", "GCONV_PATH"} {
		refusal{name, spawnWith(func(s *Spawn) { s.Env = map[string]string{name: "x"} }), CodeInvalidRequest, name + " loads code"}.run(t)
	}
}

func TestSpawnValidateAccepts(t *testing.T) {
	for name, s := range map[string]Spawn{
		"least": {ParentSessionID: "s"},
		"most": {
			ParentSessionID: strings.Repeat("s", 128), ID: NewID(), Name: strings.Repeat("n", 64),
			Prompt: strings.Repeat("p", MaxPrompt), Description: strings.Repeat("d", MaxDescription),
			SubagentType: strings.Repeat("t", MaxWord), Command: []string{"echo", "", "-n"},
			ParentPromptID: "turn:1.2_3-4", ResumeFrom: "build", Cwd: "/", Workspace: "/a b",
			AddDirs: []string{"/é"}, Isolation: IsolationWorktree, Sandbox: "Read_Only", Model: "vendor/model@1:2",
			AwaitBudgetMS: ms(0), MaxRuntimeMS: ms(MaxDurationMS), IdleTimeoutMS: ms(1),
			Env:          map[string]string{"PATH": "/bin", "_": "", "LDFLAGS": "-s"},
			Labels:       map[string]string{"app.kubernetes.io/name": strings.Repeat("v", 256)},
			Inputs:       map[string]string{"vet": someID},
			OutputSchema: json.RawMessage(`{"type":"object"}`),
		},
		"prompt file":    {ParentSessionID: "s", PromptFile: "/p"},
		"stream":         {ParentSessionID: "s", Stdin: StdinStream},
		"prompt":         {ParentSessionID: "s", Stdin: StdinPrompt, Prompt: "p"},
		"boolean schema": {ParentSessionID: "s", OutputSchema: json.RawMessage(` false `)},
	} {
		require.Nil(t, s.Validate(), name)
	}
}

func TestQueryValidate(t *testing.T) {
	ids := func(n int) []string { return strings.Fields(strings.Repeat(someID+" ", n)) }
	for _, tc := range []refusal{
		{"no ids", Query{}, CodeInvalidRequest, "ids is required"},
		{"many ids", Query{IDs: ids(MaxQueryIDs + 1)}, CodeInvalidRequest, "101 entries"},
		{"bad id", Query{IDs: []string{someID, "a/b"}}, CodeInvalidID, `"a/b"`},
		{"empty id", Query{IDs: []string{""}}, CodeInvalidID, "ids"},
		{"bad session", Query{IDs: ids(1), ParentSessionID: "\x00"}, CodeInvalidRequest, "parent_session_id"},
		{"unknown mode", Query{IDs: ids(1), Mode: "some"}, CodeInvalidRequest, `mode "some"`},
		{"count without its mode", Query{IDs: ids(2), Count: 1}, CodeInvalidRequest, "count goes with mode count"},
		{"no count", Query{IDs: ids(2), Mode: QueryCount}, CodeInvalidRequest, "count 0"},
		{"count over ids", Query{IDs: ids(2), Mode: QueryCount, Count: 3}, CodeInvalidRequest, "count 3"},
		{"negative timeout", Query{IDs: ids(1), TimeoutMS: ms(-1)}, CodeInvalidRequest, "timeout_ms"},
		{"long timeout", Query{IDs: ids(1), TimeoutMS: ms(MaxQueryMS + 1)}, CodeInvalidRequest, "timeout_ms"},
	} {
		tc.run(t)
	}
	for name, q := range map[string]Query{
		"least":      {IDs: ids(1)},
		"most":       {IDs: ids(MaxQueryIDs), Block: true, Mode: QueryCount, Count: MaxQueryIDs, TimeoutMS: ms(MaxQueryMS), MarkRead: true, ParentSessionID: "s"},
		"by name":    {IDs: []string{"build", "00000000000a"}, Mode: QueryAny, TimeoutMS: ms(0)},
		"same twice": {IDs: ids(2), Mode: QueryAll},
	} {
		require.Nil(t, q.Validate(), name)
	}
}

func TestCancelValidate(t *testing.T) {
	target := CancelTarget{IDs: []string{someID}}
	for _, tc := range []refusal{
		{"no target", Cancel{}, CodeInvalidRequest, "0 are set"},
		{"empty target lists", Cancel{Target: CancelTarget{IDs: []string{}, Label: map[string]string{}}}, CodeInvalidRequest, "0 are set"},
		{"two targets", Cancel{ParentSessionID: "s", Target: CancelTarget{IDs: []string{someID}, Session: true}}, CodeInvalidRequest, "2 are set"},
		{"four targets", Cancel{ParentSessionID: "s", Target: CancelTarget{IDs: []string{someID}, ParentPromptID: "p", Session: true, Label: map[string]string{"a": "b"}}}, CodeInvalidRequest, "4 are set"},
		{"prompt without session", Cancel{Target: CancelTarget{ParentPromptID: "p"}}, CodeInvalidRequest, "parent_session_id is required"},
		{"session without its id", Cancel{Target: CancelTarget{Session: true}}, CodeInvalidRequest, "parent_session_id is required"},
		{"bad prompt", Cancel{ParentSessionID: "s", Target: CancelTarget{ParentPromptID: "a b"}}, CodeInvalidRequest, "target.parent_prompt_id"},
		{"bad id", Cancel{Target: CancelTarget{IDs: []string{">"}}}, CodeInvalidID, "target.ids"},
		{"many ids", Cancel{Target: CancelTarget{IDs: strings.Fields(strings.Repeat("a ", MaxQueryIDs+1))}}, CodeInvalidRequest, "101 entries"},
		{"bad label", Cancel{Target: CancelTarget{Label: map[string]string{"": "x"}}}, CodeInvalidRequest, "target.label"},
		{"reason of the coordinator", Cancel{Target: target, Reason: ReasonCrash}, CodeInvalidRequest, `reason "crash"`},
		{"unknown reason", Cancel{Target: target, Reason: "boredom"}, CodeInvalidRequest, `reason "boredom"`},
		{"long actor", Cancel{Target: target, Actor: strings.Repeat("a", MaxActor+1)}, CodeInvalidRequest, "actor"},
		{"long timeout", Cancel{Target: target, TimeoutMS: ms(MaxQueryMS + 1)}, CodeInvalidRequest, "timeout_ms"},
	} {
		tc.run(t)
	}
	for name, c := range map[string]Cancel{
		"by id":      {Target: target},
		"by name":    {Target: CancelTarget{IDs: []string{"build"}}, Kill: true, DryRun: true},
		"by prompt":  {ParentSessionID: "s", Target: CancelTarget{ParentPromptID: "p"}, Reason: ReasonPrompt},
		"by session": {ParentSessionID: "s", Target: CancelTarget{Session: true}, Reason: ReasonSession, TimeoutMS: ms(0)},
		"by label":   {Target: CancelTarget{Label: map[string]string{"a": ""}}, Actor: "é"},
	} {
		require.Nil(t, c.Validate(), name)
	}
}

func TestListActiveValidate(t *testing.T) {
	for _, tc := range []refusal{
		{"bad session", ListActive{ParentSessionID: " "}, CodeInvalidRequest, "parent_session_id"},
		{"after is a name", ListActive{After: "build"}, CodeInvalidID, `after "build"`},
		{"negative max", ListActive{Max: -1}, CodeInvalidRequest, "max -1"},
		{"large max", ListActive{Max: MaxPage + 1}, CodeInvalidRequest, "max 101"},
		{"negative since", ListActive{SinceMS: ms(-1)}, CodeInvalidRequest, "since_ms"},
	} {
		tc.run(t)
	}
	require.Nil(t, ListActive{}.Validate())
	require.Nil(t, ListActive{ParentSessionID: "s", IncludeFinished: true, SinceMS: ms(0), After: someID, Max: MaxPage}.Validate())
}

func TestCompletionsValidate(t *testing.T) {
	most := func(n int) *int { return &n }
	with := func(change func(*Completions)) Completions {
		c := Completions{ParentSessionID: "s"}
		change(&c)
		return c
	}
	for _, tc := range []refusal{
		{"no session", Completions{}, CodeInvalidRequest, "parent_session_id is required"},
		{"ack of a name", with(func(c *Completions) { c.AckIDs = []string{"build"} }), CodeInvalidID, `ack_ids: "build"`},
		{"ack without a run", with(func(c *Completions) { c.AckIDs = []string{someID + "."} }), CodeInvalidID, "ack_ids"},
		{"ack of a bad run", with(func(c *Completions) { c.AckIDs = []string{someID + ".one"} }), CodeInvalidID, "ack_ids"},
		{"suppress of a name", with(func(c *Completions) { c.SuppressIDs = []string{"x"} }), CodeInvalidID, "suppress_ids"},
		{"many acks", with(func(c *Completions) { c.AckIDs = strings.Fields(strings.Repeat(someID+" ", 1001)) }), CodeTooLarge, "ack_ids has 1001"},
		{"negative lease", with(func(c *Completions) { c.LeaseMS = ms(-1) }), CodeInvalidRequest, "lease_ms"},
		{"long lease", with(func(c *Completions) { c.LeaseMS = ms(MaxLeaseMS + 1) }), CodeInvalidRequest, "lease_ms"},
		{"negative max", with(func(c *Completions) { c.Max = most(-1) }), CodeInvalidRequest, "max -1"},
		{"large max", with(func(c *Completions) { c.Max = most(MaxPage + 1) }), CodeInvalidRequest, "max 101"},
	} {
		tc.run(t)
	}
	require.Nil(t, with(func(c *Completions) {
		c.AckIDs, c.SuppressIDs = []string{someID, DedupeID(someID, 0), DedupeID(someID, 12)}, []string{someID}
		c.LeaseMS, c.Max, c.Peek = ms(0), most(0), true
	}).Validate())
}

func TestOutstandingValidate(t *testing.T) {
	for _, tc := range []refusal{
		{"nothing", Outstanding{}, CodeInvalidRequest, "parent_session_id is required; parent_prompt_id is required"},
		{"no prompt", Outstanding{ParentSessionID: "s"}, CodeInvalidRequest, "parent_prompt_id is required"},
		{"bad prompt", Outstanding{ParentSessionID: "s", ParentPromptID: "é"}, CodeInvalidRequest, "parent_prompt_id"},
	} {
		tc.run(t)
	}
	require.Nil(t, Outstanding{ParentSessionID: "s", ParentPromptID: "p"}.Validate())
}

// TestValidateListsEveryFault: one error tells all, up to a bound.
func TestValidateListsEveryFault(t *testing.T) {
	err := Spawn{Name: "a b", Cwd: "x", Stdin: "tty", MaxRuntimeMS: ms(-1)}.Validate()
	require.NotNil(t, err)
	for _, part := range []string{"parent_session_id", "name", "cwd", "stdin", "max_runtime_ms"} {
		require.Contains(t, err.Message, part)
	}
	bad := make([]string, 50)
	for i := range bad {
		bad[i] = "!"
	}
	err = Query{IDs: bad}.Validate()
	require.NotNil(t, err)
	require.Contains(t, err.Message, "and 30 more")
}
