package resume

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

const (
	sourceID = "01890a5d-ac96-774b-bcce-b302099a8057"
	agentID  = "5f3a77c0-1111-4222-8333-444455556666"
)

// found is evidence that was gathered before.
type found struct {
	persona, session, tree, cwd error
	summary                     Summary
	unreadable                  error
	model                       string
	asked                       []string
}

func (f *found) Persona(name string) error {
	f.asked = append(f.asked, "persona "+name)
	return f.persona
}
func (f *found) Transcript() (Summary, error) {
	f.asked = append(f.asked, "transcript")
	return f.summary, f.unreadable
}
func (f *found) Session(id string) (string, error) {
	f.asked = append(f.asked, "session "+id)
	return f.model, f.session
}
func (f *found) Tree() error {
	f.asked = append(f.asked, "tree")
	return f.tree
}
func (f *found) Directory(path string) error {
	f.asked = append(f.asked, "directory "+path)
	return f.cwd
}

// agentSource is an agent in a working tree that ended, whose model has a window of
// 1000 tokens.
func agentSource() Source {
	return Source{
		Record: events.Record{
			ID: sourceID, SubagentType: "reviewer", State: events.StateCompleted, Status: events.StatusFailed,
			Agent:    &events.AgentResult{Agent: events.AgentClaude, SessionID: agentID, Model: "stub"},
			Worktree: &events.Worktree{Path: "/trees/" + sourceID + "/repo", Repository: "/home/u/repo"},
		},
		Spec: events.Spec{
			ID: sourceID,
			Request: events.Spawn{
				SubagentType: "reviewer", Command: []string{"claude"}, Cwd: "/home/u/repo/sub", Workspace: "/home/u/repo", Isolation: events.IsolationWorktree,
				Sandbox: "strict", Prompt: "Review it.", Env: map[string]string{"PATH": "/bin", "A": "1", "TRACEPARENT": "x"}, Labels: map[string]string{"k": "v"},
			},
			Agent: &events.AgentSpec{Runner: events.AgentClaude, Persona: "terse", Model: "opus"},
		},
	}
}

func commandSource() Source {
	s := Source{Record: events.Record{ID: sourceID, SubagentType: "command", State: events.StateCompleted, Status: events.StatusCompleted}}
	s.Spec.Request = events.Spawn{SubagentType: "command", Command: []string{"cat"}, Prompt: "first", Cwd: "/w", Workspace: "/w", Isolation: events.IsolationNone, Sandbox: "off"}
	return s
}

func goodEvidence() *found {
	return &found{summary: Summary{Items: 3, Tokens: 10, SessionID: agentID, Model: "stub"}}
}

var testPolicy = Policy{Models: Models{"stub": 1000, "gone": 0, events.AgentClaude: 500, events.AgentCodex: 400}, MaxContextPercent: 80}

// Each gate has a code of its own, and none asks for more once one has refused.
func TestGates(t *testing.T) {
	failed := errors.New("no")
	for name, c := range map[string]struct {
		src   func(*Source)
		req   events.Spawn
		ev    func(*found)
		code  events.Code
		asked []string
	}{
		"live":              {src: func(s *Source) { s.Record.State = events.StateActive }, code: events.CodeResumeLive},
		"nested":            {src: func(s *Source) { s.Record.Depth, s.Record.ParentID = 1, "x" }, code: events.CodeResumeNested},
		"another command":   {req: events.Spawn{Command: []string{"ls"}}, code: events.CodeInvalidRequest},
		"type":              {req: events.Spawn{SubagentType: "explore"}, code: events.CodeResumeType},
		"type in capitals":  {req: events.Spawn{SubagentType: "Reviewer"}, code: events.CodeResumeType},
		"persona":           {req: events.Spawn{Persona: "kind"}, code: events.CodeResumePersona},
		"persona gone":      {ev: func(f *found) { f.persona = failed }, code: events.CodeResumePersonaGone, asked: []string{"persona terse"}},
		"model gone":        {src: func(s *Source) { s.Record.Agent.Model = "gone" }, code: events.CodeResumeModelGone, asked: []string{"persona terse"}},
		"model unknown":     {src: func(s *Source) { s.Record.Agent.Model = "elsewhere" }, code: events.CodeResumeModelGone, asked: []string{"persona terse"}},
		"unreadable":        {ev: func(f *found) { f.unreadable = failed }, code: events.CodeResumeUnreadable, asked: []string{"persona terse", "transcript"}},
		"empty":             {ev: func(f *found) { f.summary = Summary{} }, code: events.CodeResumeEmpty, asked: []string{"persona terse", "transcript"}},
		"too long":          {ev: func(f *found) { f.summary.Tokens = 801 }, code: events.CodeResumeTooLong, asked: []string{"persona terse", "transcript"}},
		"session gone":      {ev: func(f *found) { f.session = failed }, code: events.CodeResumeSessionGone, asked: []string{"persona terse", "transcript", "session " + agentID}},
		"session not named": {src: func(s *Source) { s.Record.Agent.SessionID = "" }, ev: func(f *found) { f.summary.SessionID = "" }, code: events.CodeResumeSessionGone, asked: []string{"persona terse", "transcript"}},
		"cwd gone":          {ev: func(f *found) { f.cwd = failed }, code: events.CodeResumeCwdGone, asked: []string{"persona terse", "transcript", "session " + agentID, "directory /home/u/repo/sub"}},
		"worktree gone": {ev: func(f *found) { f.tree = failed }, code: events.CodeResumeWorktreeGone,
			asked: []string{"persona terse", "transcript", "session " + agentID, "directory /home/u/repo/sub", "tree"}},
	} {
		t.Run(name, func(t *testing.T) {
			src, ev := agentSource(), goodEvidence()
			if c.src != nil {
				c.src(&src)
			}
			if c.ev != nil {
				c.ev(ev)
			}
			_, err := Admit(src, c.req, testPolicy, ev)
			require.NotNil(t, err)
			require.Equal(t, c.code, err.Code, err.Error())
			require.Equal(t, sourceID, err.Details["subagent_id"])
			require.Equal(t, c.asked, ev.asked)
		})
	}
}

// What passes has everything from its source that the request leaves open.
func TestAdmitAgent(t *testing.T) {
	a, err := Admit(agentSource(), events.Spawn{ID: "new", Prompt: "Go on.", Model: "haiku", Env: map[string]string{"A": "2"}}, testPolicy, goodEvidence())
	require.Nil(t, err)
	require.Equal(t, events.Spawn{
		ID: "new", SubagentType: "reviewer", Persona: "terse", Model: "stub", Command: []string{"claude"}, Prompt: "Go on.",
		Cwd: "/home/u/repo/sub", Workspace: "/home/u/repo", Isolation: events.IsolationWorktree, Sandbox: "strict",
		Env: map[string]string{"PATH": "/bin", "A": "2"}, Labels: map[string]string{"k": "v"},
	}, a.Request)
	require.Equal(t, events.ResumeSource{
		Identity:    events.ResumeIdentity{SubagentID: sourceID, Type: "reviewer", Persona: "terse", ModelID: "stub"},
		Directories: events.ResumeDirectories{ChildCwd: "/trees/" + sourceID + "/repo/sub", WorktreePath: "/trees/" + sourceID + "/repo"},
		Session:     events.ResumeSession{ChildSessionID: agentID, Items: 3, EstimatedTokens: 10, Window: 1000},
		Snapshot:    events.ResumeSnapshot{SnapshotRef: "refs/hayward/subagents/" + sourceID + "/tree"},
	}, a.Source)
	require.Len(t, a.Warnings, 1)
	require.Contains(t, a.Warnings[0], WarningModelPinned+": haiku is ignored")

	a, err = Admit(agentSource(), events.Spawn{SubagentType: "reviewer", Persona: "terse", Model: "stub"}, testPolicy, goodEvidence())
	require.Nil(t, err)
	require.Empty(t, a.Warnings)
	require.Equal(t, goOn, a.Request.Prompt, "an agent is told something")

	// Into the directory itself nothing of the working tree is needed.
	ev := goodEvidence()
	ev.tree = errors.New("gone")
	a, err = Admit(agentSource(), events.Spawn{Isolation: "None"}, testPolicy, ev)
	require.Nil(t, err)
	require.Equal(t, events.IsolationNone, a.Request.Isolation)
}

func TestAdmitCommand(t *testing.T) {
	a, err := Admit(commandSource(), events.Spawn{Prompt: "second", Model: "opus", Sandbox: "workspace", Isolation: events.IsolationWorktree}, testPolicy, goodEvidence())
	require.Nil(t, err)
	require.Equal(t, []string{"cat"}, a.Request.Command)
	require.Equal(t, "second", a.Request.Prompt)
	require.Equal(t, "workspace", a.Request.Sandbox)
	require.Equal(t, events.IsolationWorktree, a.Request.Isolation, "each boundary is its own")
	require.Empty(t, a.Request.Model)
	require.Len(t, a.Warnings, 1)
	require.Zero(t, a.Source.Session.Window, "a command has no model")

	a, err = Admit(commandSource(), events.Spawn{}, testPolicy, goodEvidence())
	require.Nil(t, err)
	require.Equal(t, "first", a.Request.Prompt, "it is run again as it was")
	a, err = Admit(commandSource(), events.Spawn{Stdin: events.StdinStream}, testPolicy, goodEvidence())
	require.Nil(t, err)
	require.Empty(t, a.Request.Prompt)

	// A type that runs a command has the command of today.
	typed := commandSource()
	typed.Record.SubagentType, typed.Spec.Request.SubagentType = "greeter", "greeter"
	typed.Spec.Agent = &events.AgentSpec{Runner: events.RunnerCommand}
	a, err = Admit(typed, events.Spawn{}, testPolicy, goodEvidence())
	require.Nil(t, err)
	require.Nil(t, a.Request.Command)
}

// The model is what the agent said, else what was asked for, else what transcript or
// session name, else its runner's choice.
func TestPinnedModel(t *testing.T) {
	src, ev := agentSource(), goodEvidence()
	src.Record.Agent = nil // it crashed
	src.Spec.Agent.Model = "stub"
	ev.summary.Model = "another"
	a, err := Admit(src, events.Spawn{}, testPolicy, ev)
	require.Nil(t, err)
	require.Equal(t, "stub", a.Source.Identity.ModelID)
	require.Equal(t, agentID, a.Source.Session.ChildSessionID, "from the transcript")

	src.Spec.Agent.Model, ev.summary.Model = "inherit", "stub"
	a, err = Admit(src, events.Spawn{}, testPolicy, ev)
	require.Nil(t, err)
	require.Equal(t, "stub", a.Source.Identity.ModelID)

	src.Spec.Agent.Runner, ev.summary.Model, ev.model = events.AgentCodex, "", "stub"
	a, err = Admit(src, events.Spawn{}, testPolicy, ev)
	require.Nil(t, err)
	require.Equal(t, "stub", a.Source.Identity.ModelID)

	ev.model = ""
	a, err = Admit(src, events.Spawn{Model: "opus"}, testPolicy, ev)
	require.Nil(t, err)
	require.Empty(t, a.Source.Identity.ModelID)
	require.Equal(t, inherited, a.Request.Model, "not what its definition says today")
	require.EqualValues(t, 400, a.Source.Session.Window)
	require.Contains(t, a.Warnings[0], "what its runner chooses")
}

// Exactly the part of the window passes, one token more does not; a request lowers
// the part and never raises it.
func TestWindowIsExact(t *testing.T) {
	for _, c := range []struct {
		configured, asked int
		tokens            int64
		passes            bool
	}{
		{80, 0, 799, true}, {80, 0, 800, true}, {80, 0, 801, false},
		{80, 50, 500, true}, {80, 50, 501, false},
		{80, 100, 800, true}, {80, 100, 801, false},
		{100, 0, 1000, true}, {100, 0, 1001, false}, {1, 0, 10, true}, {1, 0, 11, false},
		{0, 0, 800, true}, {0, 0, 801, false},
	} {
		ev := goodEvidence()
		ev.summary.Tokens = c.tokens
		_, err := Admit(agentSource(), events.Spawn{MaxContextPercent: c.asked}, Policy{testPolicy.Models, c.configured}, ev)
		require.Equal(t, c.passes, err == nil, "%+v", c)
		if err != nil {
			require.Equal(t, events.CodeResumeTooLong, err.Code)
			require.Equal(t, fmt.Sprint(c.tokens), err.Details["tokens"])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, 2_000_000).Draw(t, "window")
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		tokens := rapid.Int64Range(0, 2*window).Draw(t, "tokens")
		ev := goodEvidence()
		ev.summary.Tokens = tokens
		_, err := Admit(agentSource(), events.Spawn{}, Policy{Models{"stub": window}, percent}, ev)
		if passes := tokens*100 <= window*int64(percent) || tokens <= window*int64(percent)/100; passes != (err == nil) {
			t.Fatalf("%d of %d at %d %%: %v", tokens, window, percent, err)
		}
	})
}

func TestModels(t *testing.T) {
	m := DefaultModels().With(Models{"mine": 7, "gpt-5-mini*": 9, "claude-opus-9*": 0})
	for _, c := range []struct {
		runner, model string
		tokens        int64
		known         bool
	}{
		{events.AgentClaude, "claude-opus-4-8", 200_000, true},
		{events.AgentClaude, "claude-sonnet-4-5-20250929[1m]", 1_000_000, true},
		{events.AgentClaude, "opus", 200_000, true},
		{events.AgentClaude, "", 200_000, true},
		{events.AgentClaude, "claude-2.1", 0, false},
		{events.AgentClaude, "claude-opus-9-1", 0, false},
		{events.AgentClaude, "claude-2[1m]", 0, false},
		{events.AgentClaude, "mine", 7, true},
		{events.AgentClaude, "mine2", 0, false},
		{events.AgentCodex, "", 272_000, true},
		{events.AgentCodex, "gpt-5.1-codex", 272_000, true},
		{events.AgentCodex, "gpt-5-mini-x", 9, true},
		{events.AgentCodex, "gpt-6.2-sol", 272_000, true},
		{events.AgentCodex, "gpt-4.1-mini", 1_047_576, true},
		{events.AgentCodex, "llama", 0, false},
	} {
		tokens, known := m.Window(c.runner, c.model)
		require.Equal(t, c.known, known, c.model)
		require.Equal(t, c.tokens, tokens, c.model)
	}
}

func TestEstimate(t *testing.T) {
	text := func(kind events.ItemKind, n int) events.Item {
		return events.Item{Kind: kind, Text: string(make([]byte, n))}
	}
	for name, c := range map[string]struct {
		item events.Item
		want int64
	}{
		"rounded down":      {text(events.ItemPrompt, 7), 1},
		"message":           {text(events.ItemMessage, 400), 100},
		"thinking":          {text(events.ItemThinking, 8), 2},
		"result of a tool":  {text(events.ItemToolResult, 12), 3},
		"the call's input":  {events.Item{Kind: events.ItemToolCall, Tool: "a name of any length", Input: []byte(`{"a":"bc"}`)}, 2},
		"image":             {events.Item{Kind: events.ItemEvent, Tool: imageEvent}, 765},
		"event":             {text(events.ItemEvent, 400), 0},
		"the end":           {text(events.ItemResult, 400), 0},
		"output":            {text(events.ItemOutput, 400), 0},
		"shortened":         {events.Item{Kind: events.ItemToolResult, Text: "ab", TextOmitted: true, Bytes: 4000}, 1000},
		"another's context": {events.Item{Kind: events.ItemMessage, Text: "abcdefgh", ParentToolID: "t"}, 0},
	} {
		require.Equal(t, c.want, Estimate(c.item), name)
	}
}
