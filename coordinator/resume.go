package coordinator

import (
	"github.com/hayward-dev/hayward/events"
)

// resolveResume settles what a spawn goes on from. Its gates were passed outside the
// loop; whether the source is there and has ended is decided here, where nothing can
// take it away any more.
func (s *State) resolveResume(m Request, spec *events.Spec) *events.Error {
	req := &spec.Request
	if req.ResumeFrom == "" {
		return nil
	}
	e, err := s.resolve(scopeOf(m.Caller, req.ParentSessionID), req.ResumeFrom)
	switch {
	case err != nil:
		return err
	case e == nil || e.leaving || e.durable == nil:
		return events.ResumeNotFound(req.ResumeFrom, req.ParentSessionID)
	case !e.endDurable():
		return events.ResumeLive(e.id)
	case m.Resume == nil || m.Resume.Identity.SubagentID != e.id:
		// The name means another subagent than it did when the gates were passed.
		return events.ResumeNotFound(req.ResumeFrom, req.ParentSessionID)
	}
	req.ResumeFrom, spec.Resume = e.id, m.Resume
	if named := s.named[nameKey{req.ParentSessionID, e.rec.Name}]; req.Name == "" && (named == nil || !named.rec.Live()) {
		req.Name = e.rec.Name
	}
	return nil
}

// rebound changes the boundaries of a record that is being changed. Those of a record
// are never changed in place.
func rebound(r *events.Record, change func(*events.Boundaries)) {
	b := boundaries(r)
	change(b)
	r.Boundaries = b
}

// boundaries returns a copy of a record's boundaries. Records of earlier versions
// have none; what they say of them otherwise is put together.
func boundaries(r *events.Record) *events.Boundaries {
	if r.Boundaries != nil {
		b := *r.Boundaries
		return &b
	}
	b := &events.Boundaries{
		ContextSource: events.ContextNew, Identity: events.Identity{Type: r.SubagentType},
		Cwd: events.EffectiveCwd{Path: r.Cwd, From: events.CwdFromRequest}, Isolation: r.Isolation,
		Sandbox: events.SandboxBoundary{Applied: events.AppliedSandbox(r.Sandbox)},
	}
	if r.ResumedFrom != "" {
		b.ContextSource, b.Cwd.From = events.ContextResumed, events.CwdFromSource
	}
	if r.Sandbox != nil {
		b.Sandbox.Requested = r.Sandbox.Requested
	}
	if r.Agent != nil {
		b.Identity.Model = r.Agent.Model
	}
	if r.Worktree != nil {
		b.Cwd = events.EffectiveCwd{Path: r.Worktree.Path, From: events.CwdFromWorktree}
	}
	return b
}
