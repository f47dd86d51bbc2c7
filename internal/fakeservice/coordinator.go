package fakeservice

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Coordinator answers like a coordinator, from memory. What it remembers
// outlives [Service.Down], as a durable store would.
type Coordinator struct {
	s *Service
	// Script is the life of every subagent, on a goroutine of its own. It ends it
	// with [Coordinator.End].
	Script func(a *Agent)
	// Status is what the admin service says; Shutdown is called, with what was
	// asked, before its reply is sent.
	Status   events.StatusReply
	Shutdown func(events.ShutdownRequest)

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	agents  []*Agent
	acks    int
}

// Agent is one subagent. Its members are guarded by the coordinator's mu.
type Agent struct {
	c      *Coordinator
	Spawn  events.Spawn
	snap   events.Snapshot
	logs   map[string]*bytes.Buffer
	stdin  bytes.Buffer
	eof    bool
	closed bool
	stops  []events.Cancel
	read   bool
}

// NewCoordinator answers all subjects of s. setup sets the coordinator's members
// before the first request can come.
func NewCoordinator(s *Service, setup func(*Coordinator)) *Coordinator {
	c := &Coordinator{s: s, changed: make(chan struct{})}
	setup(c)
	on(c, events.RequestSubject(events.KindSpawn), c.spawn)
	on(c, events.RequestSubject(events.KindQuery), c.query)
	on(c, events.RequestSubject(events.KindCancel), c.cancel)
	on(c, events.RequestSubject(events.KindListActive), c.listActive)
	on(c, events.RequestSubject(events.KindCompletions), c.completions)
	on(c, events.RequestSubject(events.KindOutstanding), c.outstanding)
	on(c, events.FilesSubject(events.FilesLogs), c.readLog)
	on(c, events.FilesSubject(events.FilesTranscript), c.readTranscript)
	on(c, events.FilesSubject(events.FilesInspect), c.inspect)
	on(c, events.FilesSubject(events.FilesStdin), c.writeStdin)
	on(c, events.AdminSubject(events.AdminRemove), c.remove)
	on(c, events.AdminSubject(events.AdminPrune), c.prune)
	on(c, events.AdminSubject(events.AdminStatus), func(r *Request, _ events.StatusRequest) { r.Reply(c.Status) })
	on(c, events.AdminSubject(events.AdminShutdown), func(r *Request, q events.ShutdownRequest) {
		if c.Shutdown != nil {
			c.Shutdown(q)
		}
		r.Reply(events.ShutdownReply{})
	})
	return c
}

func on[T any](c *Coordinator, subject string, h func(*Request, T)) {
	c.s.Handle(subject, func(r *Request) {
		var q T
		if err := r.Decode(&q); err != nil {
			r.Refuse(err)
			return
		}
		h(r, q)
	})
}

// change needs mu; it wakes everybody who waits in await.
func (c *Coordinator) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// await waits until ok, called with mu held, is true; false at a deadline.
func (c *Coordinator) await(limit time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithCancel(c.s.Context())
	if limit > 0 {
		ctx, cancel = context.WithTimeout(c.s.Context(), limit)
	}
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !ok() {
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
			c.mu.Lock()
		case <-ctx.Done():
			c.mu.Lock()
			return false
		}
	}
	return true
}

// find needs mu.
func (c *Coordinator) find(ref, session string) *Agent {
	for _, a := range c.agents {
		if (session == "" || a.snap.ParentSessionID == session) &&
			(a.snap.SubagentID == ref || a.snap.Name == ref || (len(ref) >= 4 && strings.HasSuffix(a.snap.SubagentID, ref))) {
			return a
		}
	}
	return nil
}

// Agent returns a subagent by id or name once it is accepted, or nil when the
// service ends before.
func (c *Coordinator) Agent(ref string) *Agent {
	var a *Agent
	c.await(0, func() bool { a = c.find(ref, ""); return a != nil })
	return a
}

// Spawned is how many subagents were accepted.
func (c *Coordinator) Spawned() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.agents)
}

func (c *Coordinator) spawn(r *Request, s events.Spawn) {
	if err := s.Validate(); err != nil {
		r.Refuse(err)
		return
	}
	a, err := c.Accept(s)
	if err != nil {
		r.Refuse(err)
		return
	}
	if !s.RunInBackground {
		budget := time.Duration(0)
		if s.AwaitBudgetMS != nil {
			budget = time.Duration(*s.AwaitBudgetMS) * time.Millisecond
		}
		c.await(budget, a.ended)
	}
	reply := events.SpawnReply{Snapshot: a.Snapshot(), Accepted: true}
	if reply.Success == nil {
		reply.Backgrounded = true
		r.Reply(reply)
		return
	}
	r.ReplyAck(reply, c.ackToken())
}

// Accept takes a spawn without answering it.
func (c *Coordinator) Accept(s events.Spawn) (*Agent, *events.Error) {
	if s.ID == "" {
		s.ID = events.NewID()
	}
	c.mu.Lock()
	if c.find(s.ID, "") != nil {
		c.mu.Unlock()
		return nil, events.Errorf(events.CodeDuplicateID, events.LayerCoordinator, "spawn: the id %s is taken", s.ID)
	}
	a := &Agent{
		c: c, Spawn: s, logs: map[string]*bytes.Buffer{"stdout": {}, "stderr": {}, "transcript": {}},
		snap: events.Snapshot{
			SubagentID: s.ID, Run: 1, Name: s.Name, SubagentType: "command", ParentSessionID: s.ParentSessionID,
			ParentPromptID: s.ParentPromptID, ContextSource: "new", Labels: s.Labels, CommandLine: strings.Join(s.Command, " "),
			Cwd: s.Cwd, Workspace: s.Workspace, Isolation: "none", Background: s.RunInBackground,
			State: events.StateQueued, Status: events.StatusInitializing, CreatedAt: time.Now().UTC(),
		},
	}
	c.agents = append(c.agents, a)
	c.change()
	c.mu.Unlock()
	a.announce()
	if c.Script != nil {
		c.s.goRun(func() { c.Script(a) })
	}
	return a, nil
}

func (c *Coordinator) ackToken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acks++
	return "t" + strconv.Itoa(c.acks)
}

func (c *Coordinator) query(r *Request, q events.Query) {
	if err := q.Validate(); err != nil {
		r.Refuse(err)
		return
	}
	met := func() bool {
		ended, known := 0, 0
		for _, id := range q.IDs {
			if a := c.find(id, q.ParentSessionID); a != nil {
				known++
				if a.ended() {
					ended++
				}
			}
		}
		switch q.Mode {
		case events.QueryAny:
			return ended > 0 || known == 0
		case events.QueryCount:
			return ended >= min(q.Count, known)
		}
		return ended == known
	}
	timedOut := false
	if q.Block {
		ms := int64(events.DefaultQueryMS)
		if q.TimeoutMS != nil {
			ms = *q.TimeoutMS
		}
		timedOut = !c.await(max(time.Duration(ms)*time.Millisecond, time.Nanosecond), met)
	}
	reply := events.QueryReply{Snapshots: []events.Snapshot{}, TimedOut: timedOut}
	c.mu.Lock()
	for _, id := range q.IDs {
		if a := c.find(id, q.ParentSessionID); a != nil {
			reply.Snapshots = append(reply.Snapshots, a.snapshot())
		} else {
			reply.Unknown = append(reply.Unknown, id)
		}
	}
	c.mu.Unlock()
	if q.MarkRead {
		r.ReplyAck(reply, c.ackToken())
		return
	}
	r.Reply(reply)
}

func (c *Coordinator) cancel(r *Request, q events.Cancel) {
	if err := q.Validate(); err != nil {
		r.Refuse(err)
		return
	}
	reply := events.CancelReply{Results: []events.CancelResult{}}
	var selected []*Agent
	c.mu.Lock()
	for _, id := range q.Target.IDs {
		if a := c.find(id, q.ParentSessionID); a != nil {
			selected = append(selected, a)
		} else {
			reply.Results = append(reply.Results, events.CancelResult{SubagentID: id, Outcome: events.CancelNotFound})
		}
	}
	for _, a := range c.agents {
		byPrompt := q.Target.ParentPromptID != "" && a.snap.ParentPromptID == q.Target.ParentPromptID
		byLabel := len(q.Target.Label) > 0
		for k, v := range q.Target.Label {
			byLabel = byLabel && a.snap.Labels[k] == v
		}
		inScope := q.ParentSessionID == "" || a.snap.ParentSessionID == q.ParentSessionID
		if inScope && !a.ended() && (byPrompt || byLabel || q.Target.Session) {
			selected = append(selected, a)
		}
	}
	outcomes := make([]events.CancelOutcome, len(selected))
	for i, a := range selected {
		switch {
		case a.ended():
			outcomes[i] = events.CancelAlreadyFinished
		case q.DryRun:
			outcomes[i] = events.CancelWouldCancel
		default:
			a.stops = append(a.stops, q)
		}
	}
	c.change()
	c.mu.Unlock()
	for i, a := range selected {
		if outcomes[i] == "" {
			c.await(0, a.ended)
			outcomes[i] = events.CancelCancelled
		}
		s := a.Snapshot()
		reply.Results = append(reply.Results, events.CancelResult{
			SubagentID: s.SubagentID, Name: s.Name, Outcome: outcomes[i], Status: s.Status, Background: s.Background,
		})
	}
	r.Reply(reply)
}

func (c *Coordinator) listActive(r *Request, q events.ListActive) {
	reply := events.ListActiveReply{Subagents: []events.Snapshot{}}
	size := q.Max
	if size == 0 {
		size = events.MaxPage
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	behind := q.After == ""
	for _, a := range c.agents {
		switch {
		case !behind:
			behind = a.snap.SubagentID == q.After
		case q.ParentSessionID != "" && q.ParentSessionID != a.snap.ParentSessionID:
		case a.ended() && !q.IncludeFinished:
		case len(reply.Subagents) == size:
			reply.Next = reply.Subagents[size-1].SubagentID
			r.Reply(reply)
			return
		default:
			reply.Subagents = append(reply.Subagents, a.snapshot())
		}
	}
	r.Reply(reply)
}

func (c *Coordinator) completions(r *Request, q events.Completions) {
	reply := events.CompletionsReply{Completions: []events.Completion{}}
	most := events.MaxPage
	if q.Max != nil {
		most = *q.Max
	}
	c.mu.Lock()
	for _, a := range c.agents {
		if a.snap.ParentSessionID != q.ParentSessionID || !a.ended() {
			continue
		}
		if slices.Contains(q.AckIDs, a.snap.SubagentID) || slices.Contains(q.AckIDs, a.snap.SubagentID+".1") {
			a.read = true
			reply.Acked = append(reply.Acked, a.snap.SubagentID)
		}
		if a.read || slices.Contains(q.SuppressIDs, a.snap.SubagentID) || slices.Contains(q.SuppressIDs, a.snap.SubagentID+".1") {
			continue
		}
		if len(reply.Completions) == most {
			reply.More = true
			break
		}
		reply.Completions = append(reply.Completions, events.Completion{Snapshot: a.snapshot(), DedupeID: a.snap.SubagentID + ".1"})
	}
	c.mu.Unlock()
	if len(reply.Completions) == 0 || q.Peek || q.LeaseMS != nil {
		r.Reply(reply)
		return
	}
	r.ReplyAck(reply, c.ackToken())
}

func (c *Coordinator) outstanding(r *Request, q events.Outstanding) {
	reply := events.OutstandingReply{LiveIDs: []string{}, UsageSettled: true}
	c.mu.Lock()
	for _, a := range c.agents {
		switch {
		case a.snap.ParentSessionID != q.ParentSessionID || a.snap.ParentPromptID != q.ParentPromptID:
		case a.ended():
			reply.Unread++
		case a.snap.Background:
			reply.BackgroundLive = true
		default:
			reply.LiveIDs = append(reply.LiveIDs, a.snap.SubagentID)
		}
	}
	c.mu.Unlock()
	slices.Sort(reply.LiveIDs)
	r.Reply(reply)
}
