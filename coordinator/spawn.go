package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hayward-dev/hayward/events"
)

// spawn accepts or refuses one subagent. Nothing is left of a refused one.
func (s *State) spawn(m Request, req events.Spawn) {
	spec, err := s.resolveSpawn(m, req)
	if err == nil {
		spec.Trace = m.Trace
		err = s.resolveResume(m, spec)
	}
	if err == nil {
		err = s.admissible(spec)
	}
	if err != nil {
		s.refuse(m.Responder, err)
		return
	}
	if req.Reopen && s.gated(req.ParentSessionID, req.ParentPromptID) {
		s.reopen(m, req)
		return
	}
	// A nested one never waits for a slot: those that hold them may wait for it.
	if s.cfg.Limits.AtLimit == FailAtLimit || spec.ParentID != "" {
		if limit := s.reached(spec.ID, spec.Request.ParentSessionID, spec.Request.SubagentType); limit != nil {
			s.reject(m, spec, limit)
			return
		}
	}
	e := s.create(spec, m.digest)
	var deadline time.Time
	if budget := s.awaitBudget(req); !req.RunInBackground && budget > 0 {
		deadline = s.now.Add(budget)
	}
	warnings := m.Warnings
	if len(req.MaySpawn) > 0 && spec.Depth+1 >= s.cfg.Limits.Depth {
		warnings = append(warnings, fmt.Sprintf("may_spawn: it will be refused all of them, for limits.depth (serve --max-depth) is %d", s.cfg.Limits.Depth))
	}
	s.park(&spawnWait{warnings: warnings}, m.Responder, []*subagent{e}, deadline)
}

// resolveSpawn fills in what the coordinator decides: who owns the subagent, how
// deep it is, its defaults and inputs.
func (s *State) resolveSpawn(m Request, req events.Spawn) (*events.Spec, *events.Error) {
	c := m.Caller
	spec := &events.Spec{Schema: events.RecordSchema, ID: req.ID, Run: 1, Agent: m.Agent, CreatedAt: s.stamp()}
	if s.closing != nil {
		return nil, errShuttingDown()
	}
	if !events.ValidID(req.ID) {
		return nil, events.Errorf(events.CodeInvalidID, events.LayerGate, "spawn: id %q is not a UUID in lower case", req.ID)
	}
	if c.isChild() {
		p, err := s.spawnerOf(c, req)
		if err != nil {
			return nil, err
		}
		spec.ParentID, spec.Depth, spec.SpawnerPromptID = p.id, p.rec.Depth+1, req.ParentPromptID
		req.ParentSessionID, req.ParentPromptID = p.rec.ParentSessionID, p.rec.ParentPromptID
	}
	if s.checkDepth(req.ID, spec.Depth+1) == nil {
		spec.Spawns = m.Spawns
	}
	if len(req.Inputs) > 0 {
		inputs, err := s.resolveInputs(scopeOf(c, req.ParentSessionID), req)
		if err != nil {
			return nil, err
		}
		req.Inputs = inputs
	}
	if req.SubagentType == "" && len(req.Command) > 0 {
		req.SubagentType = "command"
	}
	req.Isolation = cmp.Or(req.Isolation, "none")
	if req.MaxRuntimeMS == nil {
		ms := s.cfg.MaxRuntime.Milliseconds()
		req.MaxRuntimeMS = &ms
	}
	if req.MaxMemoryBytes == nil && s.cfg.MaxMemory > 0 {
		bytes := s.cfg.MaxMemory
		req.MaxMemoryBytes = &bytes
	}
	spec.Request = req
	return spec, nil
}

// resolveInputs replaces references by ids; each must be a finished subagent of
// the session, or one that the subagent which asks spawned.
func (s *State) resolveInputs(sc scope, req events.Spawn) (map[string]string, *events.Error) {
	inputs := make(map[string]string, len(req.Inputs))
	for _, name := range slices.Sorted(maps.Keys(req.Inputs)) {
		e, err := s.resolve(sc, req.Inputs[name])
		if err != nil {
			return nil, err
		}
		if e == nil || !e.endDurable() || e.leaving {
			return nil, events.Errorf(events.CodeInputMissing, events.LayerGate, "spawn %s: input %s: %q is not a finished subagent of the session",
				req.ID, name, req.Inputs[name]).WithDetail("input", name)
		}
		inputs[name] = e.id
	}
	return inputs, nil
}

// admissible reports why spec cannot be accepted now, or nil.
func (s *State) admissible(spec *events.Spec) *events.Error {
	req := spec.Request
	if e := s.byID[spec.ID]; e != nil {
		err := events.Errorf(events.CodeDuplicateID, events.LayerGate, "spawn %s: the id is taken; its subagent is untouched", spec.ID).
			WithRemedy("query the id, or let the coordinator mint one")
		if e.rec.ParentSessionID == req.ParentSessionID {
			err.WithDetail("state", string(e.rec.State)).WithDetail("status", string(e.rec.Status))
		}
		return err
	}
	if !req.Reopen && s.gated(req.ParentSessionID, req.ParentPromptID) {
		return events.Errorf(events.CodePromptCancelled, events.LayerGate, "spawn %s: prompt %s of session %s was cancelled",
			spec.ID, req.ParentPromptID, req.ParentSessionID).WithDetail("parent_prompt_id", req.ParentPromptID).
			WithRemedy("spawn for a new prompt, or open this one again with reopen (--reopen)")
	}
	if spec.ParentID != "" && s.gated(spec.ParentID, spec.SpawnerPromptID) {
		return events.Errorf(events.CodePromptCancelled, events.LayerGate, "spawn %s: turn %s of subagent %s was cancelled",
			spec.ID, spec.SpawnerPromptID, spec.ParentID).WithDetail("parent_prompt_id", spec.SpawnerPromptID).
			WithRemedy("spawn for a new turn")
	}
	owner := ownerOf(&events.Record{ParentID: spec.ParentID, ParentSessionID: req.ParentSessionID})
	if e := s.named[nameKey{owner, req.Name}]; e != nil && e.rec.Live() {
		return events.Errorf(events.CodeDuplicateName, events.LayerGate, "spawn %s: the live subagent %s has the name %q", spec.ID, e.id, req.Name).
			WithDetail("subagent_id", e.id)
	}
	if s.storeError != nil {
		return events.Errorf(s.storeError.Code, s.storeError.Layer, "spawn %s: records cannot be written now: %w", spec.ID, s.storeError)
	}
	limits := s.cfg.Limits
	if limits.AtLimit == QueueAtLimit && len(s.queued) >= limits.QueueLength &&
		s.reached(spec.ID, req.ParentSessionID, req.SubagentType) != nil {
		return events.Errorf(events.CodeLimit, events.LayerGate, "spawn %s: %d subagents run and %d wait, the queue's limit is %d",
			spec.ID, len(s.slots), len(s.queued), limits.QueueLength).
			WithRemedy("wait for one to end, or raise the limits").
			WithDetail("limit", "queue_length").WithDetail("max", strconv.Itoa(limits.QueueLength)).
			WithDetail("queued", strconv.Itoa(len(s.queued))).WithDetail("running", strconv.Itoa(len(s.slots)))
	}
	return nil
}

// create makes the record of an accepted spawn and queues it.
func (s *State) create(spec *events.Spec, digest string) *subagent {
	req := spec.Request
	s.ordinals++
	e := &subagent{id: spec.ID, ord: s.ordinals, spec: spec, dirty: true}
	e.rec = &events.Record{
		Schema: events.RecordSchema, ID: spec.ID, Run: spec.Run, Seq: 1,
		Name: req.Name, Description: req.Description, SubagentType: req.SubagentType,
		ParentSessionID: req.ParentSessionID, ParentPromptID: req.ParentPromptID,
		ParentID: spec.ParentID, SpawnerPromptID: spec.SpawnerPromptID, Depth: spec.Depth, ResumedFrom: req.ResumeFrom,
		Labels: req.Labels, CommandLine: commandLine(req.Command),
		Cwd: req.Cwd, Workspace: req.Workspace, Isolation: req.Isolation,
		SpecDigest: digest, Background: req.RunInBackground, Boundaries: events.BoundariesOf(spec),
		CreatedAt: spec.CreatedAt, MaxRuntimeMS: *req.MaxRuntimeMS, Trace: spec.Trace,
	}
	if req.MaxMemoryBytes != nil {
		e.rec.MaxMemoryBytes = *req.MaxMemoryBytes
	}
	if p := s.byID[spec.ParentID]; p != nil {
		e.rec.RootID = cmp.Or(p.rec.RootID, p.id)
	}
	s.dirty = append(s.dirty, e)
	s.add(e)
	e.session.queue = append(e.session.queue, e)
	s.move(e, events.StateQueued, events.StatusInitializing, CauseAccepted)
	return e
}

// awaitBudget is how long a foreground spawn may hold its caller; 0 is no bound.
func (s *State) awaitBudget(req events.Spawn) time.Duration {
	if req.AwaitBudgetMS != nil {
		return millis(*req.AwaitBudgetMS)
	}
	return s.cfg.AwaitBudget
}

// refuseSpawn withdraws a spawn whose first write failed. That write may have
// happened all the same, so the record goes on to its end: what is found after a
// restart is a failed subagent, never one that starts.
func (s *State) refuseSpawn(e *subagent, err *events.Error) {
	e.refused = err
	if e.rec.Live() {
		s.end(e, events.End{Status: events.StatusFailed, Reason: events.ReasonStart, Error: err}, CauseWithdrawn)
	}
	if e.rec.ReadAt == nil {
		at := s.stamp()
		s.change(e).ReadAt = &at
	}
	s.poke(e)
}

// spawnWait answers a spawn: at the end, or once nobody is to wait for it.
type spawnWait struct {
	waitBase
	warnings []string
}

func (w *spawnWait) poke(s *State, e *subagent) {
	switch {
	case e.refused != nil:
		s.fail(w, events.Errorf(e.refused.Code, e.refused.Layer, "spawn %s: it was not accepted: %w", e.id, e.refused))
	case e.durable == nil:
	case e.endDurable():
		s.settle(w, events.SpawnReply{Snapshot: Snapshot(e.durable, nil, s.now), Accepted: true, Warnings: w.warnings}, e)
	case e.durable.Background:
		s.settle(w, events.SpawnReply{Snapshot: Snapshot(e.durable, nil, s.now), Accepted: true, Backgrounded: true, Warnings: w.warnings})
	}
}

// expire hands the subagent off at the end of its await budget. The answer goes
// out once that is durable, or with the end if that is durable first.
func (w *spawnWait) expire(s *State) { w.handOff(s) }

func (w *spawnWait) handOff(s *State, warnings ...string) {
	e := w.on[0]
	if !e.rec.Live() {
		return
	}
	w.warnings = append(w.warnings, warnings...)
	if !e.rec.Background {
		s.change(e).Background = true
	}
}

// abandoned lets the subagents of a caller that is gone go on in the background,
// so that they hold no turn open. Whatever else it asked for is answered to
// nobody in time.
func (s *State) abandoned(m Abandoned) {
	for w := range s.waits {
		if w, is := w.(*spawnWait); is && w.to == m.Responder {
			w.handOff(s)
			return
		}
	}
}

// commandLine is argv for people, at most [events.MaxCommandLine] bytes.
func commandLine(argv []string) string {
	const mark = "..."
	var b strings.Builder
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if a == "" || strings.ContainsAny(a, " \t\n\"'\\$`&|;<>()*?[]#~") {
			a = strconv.Quote(a[:min(len(a), events.MaxCommandLine)])
		}
		b.WriteString(a[:min(len(a), events.MaxCommandLine+1)])
		if b.Len() > events.MaxCommandLine {
			break
		}
	}
	line := strings.ToValidUTF8(b.String(), "\uFFFD")
	if len(line) <= events.MaxCommandLine {
		return line
	}
	cut := events.MaxCommandLine - len(mark)
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + mark
}
