package coordinator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// resumeOf is a request that passed the gates on the word that source is finished.
func resumeOf(name, session, ref, source string) Request {
	s := background(spawnOf(name, session))
	s.Name, s.ResumeFrom = "", ref
	return Request{
		Caller: Caller{Principal: "client"}, Event: s, Responder: &ticket{name},
		Resume: &events.ResumeSource{Identity: events.ResumeIdentity{SubagentID: idOf(source), Type: "command", ModelID: "m"}},
	}
}

// ask gives the state a request and returns the answer, once what it waits for is
// durable.
func ask(w *world, r Request) Answer {
	w.apply(r)
	w.ackAll()
	return w.answer(r.Responder.(*ticket))
}

// Whether a source is there and has ended is decided where nothing can take it away.
func TestResumeIsDecidedInTheLoop(t *testing.T) {
	w := newWorld(t, Config{})
	named := background(spawnOf("a", "s"))
	named.Name = "job"
	w.request("a", named)
	w.ackAll()
	refused := func(r Request) events.Code {
		a := ask(w, r)
		require.NotNil(t, a.Error, "%+v", a.Reply)
		return a.Error.Code
	}
	require.Equal(t, events.CodeResumeLive, refused(resumeOf("b", "s", idOf("a"), "a")))
	w.run(idOf("a"))
	require.Equal(t, events.CodeResumeLive, refused(resumeOf("c", "s", "job", "a")))
	w.end(idOf("a"), completed())
	require.Equal(t, events.CodeResumeLive, refused(resumeOf("d", "s", "job", "a")))
	w.ackAll()
	require.Equal(t, events.CodeResumeNotFound, refused(resumeOf("e", "other", idOf("a"), "a")), "another session's")
	require.Equal(t, events.CodeResumeNotFound, refused(resumeOf("f", "s", "nobody", "a")))
	require.Equal(t, events.CodeResumeNotFound, refused(resumeOf("g", "s", idOf("a"), "x")), "the gates were those of another")

	// Two at once are two subagents; the name goes to the first.
	a := ask(w, resumeOf("h", "s", "job", "a"))
	require.Nil(t, a.Error)
	first := a.Reply.(events.SpawnReply)
	require.Equal(t, idOf("a"), first.ResumedFrom)
	require.Equal(t, "job", first.Name)
	require.Equal(t, events.ContextResumed, first.Boundaries.ContextSource)
	require.Equal(t, events.Identity{Type: "command", Model: "m", Pinned: true}, first.Boundaries.Identity)
	require.Equal(t, events.CwdFromSource, first.Boundaries.Cwd.From)
	a = ask(w, resumeOf("j", "s", idOf("a"), "a"))
	require.Nil(t, a.Error)
	require.Empty(t, a.Reply.(events.SpawnReply).Name)

	// A live resume keeps its source.
	w.apply(Remove{Request: events.RemoveRequest{ParentSessionID: "s", IDs: []string{idOf("a")}, Force: true}, Responder: &ticket{"rm"}})
	require.Contains(t, w.stored, idOf("a"))
}

// The boundaries follow what is learnt: the directory of a working tree, the sandbox
// that was applied, the model that an agent uses. A record that is durable is never
// changed.
func TestBoundariesFollow(t *testing.T) {
	w := newWorld(t, Config{})
	s := background(spawnOf("a", "s"))
	s.Isolation, s.Sandbox, s.Cwd = events.IsolationWorktree, "strict", "/repo"
	w.request("a", s)
	w.ackAll()
	before := w.stored[idOf("a")].Record
	require.Equal(t, events.EffectiveCwd{From: events.CwdFromWorktree}, before.Boundaries.Cwd)
	w.children[idOf("a")].forked = true
	w.apply(Forked{ID: idOf("a"), Run: 1, Fork: events.Fork{Process: events.Process{PID: 1}, Worktree: &events.Worktree{Path: "/t"}, Cwd: "/t/sub"}})
	w.ackAll()
	w.apply(Started{ID: idOf("a"), Run: 1, Report: events.SandboxReport{Requested: "strict", Profile: "strict", Active: true}})
	w.ackAll()
	w.apply(Ended{ID: idOf("a"), Run: 1, End: events.End{Status: events.StatusCompleted, Agent: &events.AgentResult{Model: "m"}}})
	w.ackAll()
	require.Equal(t, events.Boundaries{
		ContextSource: events.ContextNew, Identity: events.Identity{Type: s.SubagentType, Model: "m"},
		Cwd: events.EffectiveCwd{Path: "/t/sub", From: events.CwdFromWorktree}, Isolation: events.IsolationWorktree,
		Sandbox: events.SandboxBoundary{Requested: "strict", Applied: "strict"},
	}, *w.stored[idOf("a")].Record.Boundaries)
	require.Empty(t, before.Boundaries.Cwd.Path)
	require.Empty(t, before.Boundaries.Sandbox.Applied)

	// One of an earlier version has none.
	old := events.Record{SubagentType: "command", Cwd: "/w", Isolation: events.IsolationNone, Sandbox: &events.SandboxReport{Requested: "off", Profile: "off"}}
	got := Snapshot(&old, nil, epochStart).Boundaries
	require.Equal(t, events.SandboxBoundary{Requested: "off", Applied: events.SandboxAppliedNone}, got.Sandbox)
	require.Equal(t, events.CwdFromRequest, got.Cwd.From)
}
