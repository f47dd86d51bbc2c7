package coordinator

import (
	"slices"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// list answers with what lives, oldest first, and what has ended if asked for.
func (s *State) list(m Request, l events.ListActive) {
	sc := scopeOf(m.Caller, l.ParentSessionID)
	var after uint64
	if l.After != "" {
		e := s.byID[l.After]
		if e == nil || !s.sees(sc, e) {
			s.refuse(m.Responder, unknown(l.After))
			return
		}
		after = e.ord
	}
	most := l.Max
	if most == 0 {
		most = events.MaxPage
	}
	page, more := s.page(sc, l, after, most)
	r := events.ListActiveReply{Subagents: make([]events.Snapshot, 0, len(page))}
	for _, e := range page {
		r.Subagents = append(r.Subagents, brief(Snapshot(e.durable, nil, s.now)))
	}
	if more {
		r.Next = page[len(page)-1].id
	}
	s.reply(m.Responder, r)
}

// brief leaves out what a list does not need: it has up to 100 entries.
func brief(s events.Snapshot) events.Snapshot {
	s.StderrTail = ""
	if s.Agent != nil {
		short := *s.Agent
		short.Denials, short.Warnings, short.Structured = nil, nil, nil
		s.Agent = &short
	}
	if s.Text != "" {
		s.Text, s.Encoding, s.Truncated = "", "", true
	}
	return s
}

// page returns the first most subagents behind ordinal after. What it walks over
// is bounded by what lives, by the page, or by what ended since SinceMS.
func (s *State) page(sc scope, l events.ListActive, after uint64, most int) (page []*subagent, more bool) {
	all, live, ended := &s.all, &s.live, &s.index.ended
	if sc.session != "" {
		g := s.sessions[sc.session]
		if g == nil {
			return nil, false
		}
		all, live, ended = &g.all, &g.live, &g.ended
	}
	behind := func(e *subagent) bool { return e.ord > after }
	shown := func(e *subagent) bool { return e.durable != nil && s.sees(sc, e) }
	if l.IncludeFinished && l.SinceMS != nil {
		cutoff := s.now.Add(-millis(*l.SinceMS))
		recent := ended.from(func(e *subagent) bool { return !e.rec.EndedAt.Before(cutoff) })
		return youngestLast(live.from(behind), recent, func(e *subagent) bool { return behind(e) && shown(e) }, most)
	}
	source := live
	if l.IncludeFinished {
		source = all
	}
	for _, e := range source.from(behind) {
		if !shown(e) {
			continue
		}
		if len(page) == most {
			return page, true
		}
		page = append(page, e)
	}
	return page, false
}

// youngestLast merges live and recent and returns the most oldest that keep
// lets through.
func youngestLast(live, recent []*subagent, keep func(*subagent) bool, most int) (page []*subagent, more bool) {
	for _, list := range [][]*subagent{live, recent} {
		for _, e := range list {
			if !keep(e) {
				continue
			}
			if len(page) > most && byCreation(e, page[most]) > 0 {
				continue
			}
			i, _ := slices.BinarySearchFunc(page, e, byCreation)
			page = slices.Insert(page, i, e)
			if len(page) > most+1 {
				page = page[:most+1]
			}
		}
	}
	if len(page) > most {
		return page[:most], true
	}
	return page, false
}

// Snapshot is r as shown at the given time, with the latest progress if it runs.
func Snapshot(r *events.Record, progress *events.Progress, now time.Time) events.Snapshot {
	s := events.Snapshot{
		SubagentID: r.ID, Run: r.Run, Name: r.Name, Description: r.Description,
		SubagentType: r.SubagentType, ParentSessionID: r.ParentSessionID,
		ParentPromptID: r.ParentPromptID, ParentID: r.ParentID, RootID: r.RootID, SpawnerPromptID: r.SpawnerPromptID,
		ResumedFrom: r.ResumedFrom, ContextSource: events.ContextNew, Boundaries: r.Boundaries, Labels: r.Labels,
		CommandLine: r.CommandLine, Cwd: r.Cwd, Workspace: r.Workspace,
		Isolation: r.Isolation, Background: r.Background,
		State: r.State, Status: r.Status, Error: r.Error,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt,
		Exit: r.Exit, StderrTail: r.StderrTail, Quarantined: r.Quarantined, SandboxHint: r.SandboxHint, Sandbox: r.Sandbox,
		Process: r.Process, Worktree: r.Worktree, Changes: r.Changes, Read: r.ReadAt != nil, Agent: r.Agent,
		Usage: r.Usage, TreeUsage: r.TreeUsage,
	}
	if r.ResumedFrom != "" {
		s.ContextSource = events.ContextResumed
	}
	if s.Boundaries == nil {
		s.Boundaries = boundaries(r)
	}
	if r.Output != nil {
		s.Output = *r.Output
	}
	if r.Exit != nil {
		s.ExitCode, s.Signal = r.Exit.Code, r.Exit.Signal
	}
	until := now
	if r.EndedAt != nil {
		until = *r.EndedAt
	}
	s.ElapsedMS = max(0, until.Sub(r.CreatedAt).Milliseconds())
	if r.StartedAt != nil {
		s.DurationMS = max(0, until.Sub(*r.StartedAt).Milliseconds())
	}
	if r.Live() {
		s.Progress = progress
		return s
	}
	// Why it ended is said of what has ended: a live record holds the reason of
	// a stop that is under way.
	success := r.Status == events.StatusCompleted
	s.Success, s.Reason, s.Actor, s.ExplicitKill = &success, r.Reason, r.Actor, r.ExplicitKill
	return s
}
