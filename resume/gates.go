package resume

import (
	"fmt"
	"strconv"

	"github.com/hayward-dev/hayward/events"
)

// Evidence is what [Admit] has to look for. It asks only for what the gates before
// did not make needless.
type Evidence interface {
	// Persona says why a persona cannot be had now, or nil.
	Persona(name string) error
	// Transcript is what is in the source's transcript.
	Transcript() (Summary, error)
	// Session looks for the agent's own session in the home that was kept. It returns
	// the model that the session names, empty if it names none.
	Session(id string) (model string, err error)
	// Tree says why there is neither the source's working tree nor its snapshot.
	Tree() error
	// Directory says why a directory cannot be worked in.
	Directory(path string) error
}

// Policy is what bounds a resume.
type Policy struct {
	Models Models
	// MaxContextPercent is how much of the context window a conversation may take.
	MaxContextPercent int
}

// DefaultMaxContextPercent leaves room for what the conversation does not count: the
// system prompt, the descriptions of tools, the new prompt and its answer.
const DefaultMaxContextPercent = 80

func (p Policy) withDefaults() Policy {
	if p.Models == nil {
		p.Models = DefaultModels()
	}
	if p.MaxContextPercent == 0 {
		p.MaxContextPercent = DefaultMaxContextPercent
	}
	return p
}

// Admission is a resume that passed every gate.
type Admission struct {
	// Request has all that it left open from the source.
	Request  events.Spawn
	Source   events.ResumeSource
	Warnings []string
}

// WarningModelPinned begins the warning that the model of a request was ignored.
const WarningModelPinned = "model_pinned"

// Admit takes a request through the gates. The source belongs to the session of the
// request; found and ended are the first two gates, see [events.ResumeNotFound] and [events.ResumeLive].
func Admit(src Source, req events.Spawn, p Policy, ev Evidence) (Admission, *events.Error) {
	g := &gates{src: src, req: req, policy: p.withDefaults(), ev: ev}
	for _, gate := range []func() *events.Error{
		g.ended, g.ownMaster, g.sameType, g.samePersona, g.model, g.transcript, g.window, g.session, g.place,
	} {
		if err := gate(); err != nil {
			return Admission{}, err.WithDetail("subagent_id", src.Record.ID)
		}
	}
	g.settled.Model = g.pin
	if g.pin == "" && src.Runner() != events.RunnerCommand {
		g.settled.Model = inherited // not what the definition says today
	}
	return Admission{Request: g.settled, Source: g.source(), Warnings: g.warnings}, nil
}

// gates is one request on its way.
type gates struct {
	src    Source
	req    events.Spawn
	policy Policy
	ev     Evidence

	settled  events.Spawn
	summary  Summary
	pin      string
	limit    int64 // the window, 0 where no model is bounded
	warnings []string
}

func (g *gates) refuse(code events.Code, format string, args ...any) *events.Error {
	return events.Errorf(code, events.LayerGate, "resume %s: "+format, append([]any{g.src.Record.ID}, args...)...)
}

func (g *gates) ended() *events.Error {
	if g.src.Record.Live() {
		return events.ResumeLive(g.src.Record.ID)
	}
	if len(g.req.Command) > 0 || g.req.Raw {
		return g.refuse(events.CodeInvalidRequest, "it runs what it ran before, not another command").
			WithRemedy("leave the command out, or spawn anew")
	}
	return nil
}

// ownMaster refuses a nested subagent: its rights were those that its spawner had
// left, and what it runs was chosen in there. From outside neither would hold.
func (g *gates) ownMaster() *events.Error {
	if g.src.Record.Depth == 0 {
		return nil
	}
	return g.refuse(events.CodeResumeNested, "it was spawned by the subagent %s and ran within its bounds", g.src.Record.ParentID).
		WithDetail("root_id", g.src.Record.RootID).WithRemedy("resume the one at the top of its tree, %s, which may spawn it again", g.src.Record.RootID)
}

func (g *gates) sameType() *events.Error {
	was := g.src.Record.SubagentType
	if g.req.SubagentType != "" && g.req.SubagentType != was {
		return g.refuse(events.CodeResumeType, "it is of type %s, not %s", was, g.req.SubagentType).
			WithDetail("type", was).WithRemedy("leave the type out, or spawn anew")
	}
	return nil
}

func (g *gates) samePersona() *events.Error {
	was := g.src.Persona()
	if g.req.Persona != "" && g.req.Persona != was {
		return g.refuse(events.CodeResumePersona, "its persona is %q, not %q", was, g.req.Persona).
			WithDetail("persona", was).WithRemedy("leave the persona out, or spawn anew")
	}
	if was == "" {
		return nil
	}
	if err := g.ev.Persona(was); err != nil {
		return g.refuse(events.CodeResumePersonaGone, "its persona %s cannot be had: %w", was, err).WithDetail("persona", was)
	}
	return nil
}

// model pins the model of the source. A model that nobody knows the window of could
// not be judged, so it counts as gone.
func (g *gates) model() *events.Error {
	asked := g.req.Model
	g.settled = inherit(g.req, g.src)
	g.pin = g.src.model()
	if g.src.Runner() != events.RunnerCommand {
		if g.pin == "" {
			g.pin = g.said()
		}
		var known bool
		if g.limit, known = g.policy.Models.Window(g.src.Runner(), g.pin); !known {
			return g.refuse(events.CodeResumeModelGone, "its model %s is not known any more", g.pin).WithDetail("model", g.pin).
				WithRemedy("if it is still there, give its context window in config.toml: [resume.windows] %q = TOKENS", g.pin)
		}
	}
	if asked != "" && asked != g.pin {
		g.warnings = append(g.warnings, fmt.Sprintf("%s: %s is ignored; %s goes on with %s", WarningModelPinned, asked, g.src.Record.ID, orOwn(g.pin)))
	}
	return nil
}

func orOwn(model string) string {
	if model == "" {
		return "what its runner chooses"
	}
	return model
}

// said is the model that transcript or session name. What is wrong with them is
// for the gates of those.
func (g *gates) said() string {
	s, err := g.ev.Transcript()
	if err != nil {
		return ""
	}
	if s.Model != "" {
		return s.Model
	}
	if id := g.sessionID(s); id != "" {
		model, _ := g.ev.Session(id)
		return model
	}
	return ""
}

func (g *gates) transcript() *events.Error {
	var err error
	if g.summary, err = g.ev.Transcript(); err != nil {
		return g.refuse(events.CodeResumeUnreadable, "its transcript cannot be read: %w", err).WithRemedy("spawn anew")
	}
	if g.summary.Items == 0 {
		return g.refuse(events.CodeResumeEmpty, "its transcript is empty: it never ran").WithRemedy("spawn anew")
	}
	return nil
}

// window refuses a conversation that takes more than its part of the window; exactly
// that part passes.
func (g *gates) window() *events.Error {
	percent := g.policy.MaxContextPercent
	if p := g.req.MaxContextPercent; p > 0 {
		percent = min(percent, p)
	}
	most := g.limit * int64(percent) / 100
	if g.limit == 0 || g.summary.Tokens <= most {
		return nil
	}
	return g.refuse(events.CodeResumeTooLong, "its conversation takes about %d tokens, and %d %% of the window of %s are %d", g.summary.Tokens, percent, orOwn(g.pin), most).
		WithDetail("tokens", strconv.FormatInt(g.summary.Tokens, 10)).WithDetail("window", strconv.FormatInt(g.limit, 10)).
		WithDetail("max_context_percent", strconv.Itoa(percent)).
		WithRemedy("spawn anew with what it found out; [resume] max_context_percent is the bound")
}

func (g *gates) sessionID(s Summary) string {
	if id := g.src.Session(); id != "" {
		return id
	}
	return s.SessionID
}

func (g *gates) session() *events.Error {
	if g.src.Runner() == events.RunnerCommand {
		return nil
	}
	id := g.sessionID(g.summary)
	if id == "" {
		return g.refuse(events.CodeResumeSessionGone, "%s ended before it named its session", g.src.Runner()).WithRemedy("spawn anew")
	}
	if _, err := g.ev.Session(id); err != nil {
		return g.refuse(events.CodeResumeSessionGone, "the session %s of %s is not in the home that was kept: %w", id, g.src.Runner(), err).
			WithDetail("session", id).WithRemedy("spawn anew")
	}
	return nil
}

// place looks for where it is to work: its working tree, or the directory itself.
func (g *gates) place() *events.Error {
	isolation, ok := events.ParseIsolation(g.settled.Isolation)
	if !ok {
		return g.refuse(events.CodeInvalidRequest, "isolation %q is neither none nor worktree", g.settled.Isolation)
	}
	g.settled.Isolation = isolation
	if err := g.ev.Directory(g.settled.Cwd); err != nil {
		return g.refuse(events.CodeResumeCwdGone, "it worked in %s, where nothing can be run now: %w", g.settled.Cwd, err).
			WithDetail("cwd", g.settled.Cwd).WithRemedy("restore the directory, or spawn anew elsewhere")
	}
	if isolation != events.IsolationWorktree || !g.src.Isolated() {
		return nil
	}
	if err := g.ev.Tree(); err != nil {
		return g.refuse(events.CodeResumeWorktreeGone, "its working tree cannot be had: %w", err).
			WithDetail("worktree", g.src.Record.Worktree.Path).
			WithRemedy("--isolation none goes on in %s itself, or spawn anew", g.settled.Cwd)
	}
	return nil
}

func (g *gates) source() events.ResumeSource {
	r := events.ResumeSource{
		Identity: events.ResumeIdentity{
			SubagentID: g.src.Record.ID, Type: g.src.Record.SubagentType, Persona: g.src.Persona(), ModelID: g.pin,
		},
		Directories: events.ResumeDirectories{ChildCwd: g.src.Cwd()},
		Session:     events.ResumeSession{Items: g.summary.Items, EstimatedTokens: g.summary.Tokens, Window: g.limit},
		Snapshot:    events.ResumeSnapshot{SnapshotRef: g.src.snapshotRef()},
	}
	if g.src.Runner() != events.RunnerCommand {
		r.Session.ChildSessionID = g.sessionID(g.summary)
	}
	if g.src.Isolated() {
		r.Directories.WorktreePath = g.src.Record.Worktree.Path
	}
	return r
}
