package events

// The sources of a subagent's context. There is no other: a subagent never shares
// the history of the one that asked for it.
const (
	ContextNew     = "new"     // it began with its prompt and nothing else
	ContextResumed = "resumed" // it went on with the conversation of a finished subagent
)

// ResumeSource is what a resumed subagent takes up: who its source was, where that
// one worked, its session, and the snapshot of its files. It is settled when the
// resume is accepted, and part of the [Spec].
type ResumeSource struct {
	Identity    ResumeIdentity    `json:"identity"`
	Directories ResumeDirectories `json:"directories"`
	Session     ResumeSession     `json:"session"`
	Snapshot    ResumeSnapshot    `json:"snapshot"`
}

// ResumeIdentity is who the source was. Type and persona have to be those of the
// request; the model is pinned.
type ResumeIdentity struct {
	SubagentID string `json:"subagent_id"`
	Type       string `json:"type"`
	Persona    string `json:"persona,omitempty"`
	// ModelID is the model that the source said it used, else the one that was asked
	// for. Empty for a command, and where neither is known.
	ModelID string `json:"model_id,omitempty"`
}

// ResumeDirectories are where the source worked.
type ResumeDirectories struct {
	// ChildCwd is its working directory, WorktreePath its own working tree if it had
	// one.
	ChildCwd     string `json:"child_cwd"`
	WorktreePath string `json:"worktree_path,omitempty"`
}

// ResumeSession is the conversation of the source.
type ResumeSession struct {
	// ChildSessionID is the session of an agent CLI; empty for a command.
	ChildSessionID string `json:"child_session_id,omitempty"`
	// Items counts the items of the transcript, EstimatedTokens is what they are
	// taken for, of the Window of the model; 0 where no model is bounded.
	Items           int   `json:"items"`
	EstimatedTokens int64 `json:"estimated_tokens"`
	Window          int64 `json:"window,omitzero"`
}

// ResumeSnapshot is where the files of the source's working tree are kept.
type ResumeSnapshot struct {
	// SnapshotRef is a ref of the user's repository; empty without a working tree.
	SnapshotRef string `json:"snapshot_ref,omitempty"`
}

// Boundaries are what bounds a subagent, each by itself: none follows from another.
type Boundaries struct {
	// ContextSource is "new" or "resumed"; resumed has a ResumeSource.
	ContextSource string        `json:"context_source"`
	Identity      Identity      `json:"identity"`
	ResumeSource  *ResumeSource `json:"resume_source,omitempty"`
	Cwd           EffectiveCwd  `json:"cwd"`
	// Isolation is the file space: "none" or "worktree".
	Isolation string          `json:"isolation"`
	Sandbox   SandboxBoundary `json:"sandbox"`
}

// Identity is who a subagent is.
type Identity struct {
	Type    string `json:"type"`
	Persona string `json:"persona,omitempty"`
	// Model is the model asked for, and once an agent has said which it uses, that
	// one. Pinned tells that it is that of the source of a resume, which a request
	// does not change.
	Model  string `json:"model,omitempty"`
	Pinned bool   `json:"pinned"`
}

// EffectiveCwd is where a subagent works, and what decided that.
type EffectiveCwd struct {
	Path string  `json:"path"`
	From CwdFrom `json:"from"`
}

// CwdFrom says what decided a working directory.
type CwdFrom string

// What decides a working directory, the strongest first.
const (
	CwdFromWorktree CwdFrom = "worktree" // the working tree of its own
	CwdFromSource   CwdFrom = "source"   // the source of the resume worked there
	CwdFromRequest  CwdFrom = "request"  // the request names it
)

// SandboxBoundary is the sandbox as asked for and as applied.
type SandboxBoundary struct {
	// Requested is the profile asked for.
	Requested string `json:"requested"`
	// Applied is the profile of which the kernel took every required layer; "none"
	// if it did not, or none was asked for. Empty until the start.
	Applied string `json:"applied,omitempty"`
}

// SandboxAppliedNone is the Applied of a subagent that no sandbox is active for.
const SandboxAppliedNone = "none"

// AppliedSandbox is what a report says was applied.
func AppliedSandbox(r *SandboxReport) string {
	switch {
	case r == nil:
		return ""
	case r.Active:
		return r.Profile
	}
	return SandboxAppliedNone
}

// BoundariesOf returns the boundaries of a spec as accepted.
func BoundariesOf(s *Spec) *Boundaries {
	b := &Boundaries{
		ContextSource: ContextNew,
		Identity:      Identity{Type: s.Request.SubagentType, Model: s.Request.Model},
		Cwd:           EffectiveCwd{Path: s.Request.Cwd, From: CwdFromRequest},
		Isolation:     s.Request.Isolation,
		Sandbox:       SandboxBoundary{Requested: s.Request.Sandbox},
	}
	if s.Agent != nil {
		b.Identity.Persona, b.Identity.Model = s.Agent.Persona, s.Agent.Model
	}
	if s.Resume != nil {
		b.ContextSource, b.ResumeSource, b.Identity.Pinned = ContextResumed, s.Resume, s.Resume.Identity.ModelID != ""
		b.Cwd.From = CwdFromSource
		if b.Identity.Pinned {
			b.Identity.Model = s.Resume.Identity.ModelID
		}
	}
	if b.Isolation == IsolationWorktree {
		// Its path is known when the working tree is made.
		b.Cwd = EffectiveCwd{From: CwdFromWorktree}
	}
	return b
}

// ResumeNotFound is the refusal of a source that is not there: unknown, removed, or
// of another session, which look alike.
func ResumeNotFound(ref, session string) *Error {
	return Errorf(CodeResumeNotFound, LayerGate, "resume %s: session %s has no such subagent", ref, session).
		WithRemedy("it may have been removed with its session's oldest; hayward ps -a lists what there is")
}

// ResumeLive is the refusal of a source that has not ended.
func ResumeLive(id string) *Error {
	return Errorf(CodeResumeLive, LayerGate, "resume %s: it has not ended", id).
		WithDetail("subagent_id", id).WithRemedy("wait for it, or cancel it first")
}
