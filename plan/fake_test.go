package plan

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// behavior is how a fake subagent acts, by name. The zero value ends at once
// with exit code 0.
type behavior struct {
	lasts time.Duration
	// never ends by itself.
	never bool
	exit  int
	// grace is how long it takes to end when cancelled; stubborn ends only when
	// killed, and immortal not even then.
	grace    time.Duration
	stubborn bool
	immortal bool
	// refusals are the answers to the first spawn requests; errLostBefore and
	// errLostAfter are no answers, before and after it was accepted.
	refusals []error
}

var (
	errLostBefore = errors.New("no reply; nothing was taken")
	errLostAfter  = errors.New("no reply; it was taken")
)

type fakeChild struct {
	spawn  events.Spawn
	number int // in the order of acceptance
	behavior
	started, ended time.Time
	status         events.Status
	reason         events.Reason
	done           chan struct{}
	timer          *time.Timer
}

// fakeRunner is a coordinator in memory: durable accepts, the prompt gate,
// blocking queries.
type fakeRunner struct {
	mu        sync.Mutex
	behaviors map[string]behavior
	children  map[string]*fakeChild
	order     []string // names, as accepted
	alive     int
	most      int // the most alive at once
	requests  map[string]int
	gated     map[string]bool
	// queryErrors are taken by the first queries.
	queryErrors []error
	// dead makes every request go without an answer from then on.
	dead bool
	// forgets makes queries not know any id.
	forgets bool
	cancels []events.Cancel
	queries []events.Query
}

func newFake(behaviors map[string]behavior) *fakeRunner {
	if behaviors == nil {
		behaviors = make(map[string]behavior)
	}
	return &fakeRunner{
		behaviors: behaviors, children: make(map[string]*fakeChild),
		requests: make(map[string]int), gated: make(map[string]bool),
	}
}

var errDead = errors.New("no responders")

func (f *fakeRunner) Spawn(_ context.Context, s events.Spawn) (events.SpawnReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests[s.Name]++
	b := f.behaviors[s.Name]
	if f.dead {
		return events.SpawnReply{}, errDead
	}
	if err := s.Validate(); err != nil {
		return events.SpawnReply{}, err
	}
	if f.children[s.ID] != nil {
		return events.SpawnReply{}, events.Errorf(events.CodeDuplicateID, events.LayerGate, "spawn %s: taken", s.ID)
	}
	if f.gated[s.ParentPromptID] {
		return events.SpawnReply{}, events.Errorf(events.CodePromptCancelled, events.LayerGate, "spawn %s: cancelled", s.ID)
	}
	var lost error
	if len(b.refusals) > 0 {
		err := b.refusals[0]
		b.refusals = b.refusals[1:]
		f.behaviors[s.Name] = b
		if !errors.Is(err, errLostAfter) {
			return events.SpawnReply{}, err
		}
		lost = err
	}
	c := &fakeChild{spawn: s, number: len(f.order), behavior: b, started: time.Now(), status: events.StatusRunning, done: make(chan struct{})}
	f.children[s.ID] = c
	f.order = append(f.order, s.Name)
	f.alive++
	f.most = max(f.most, f.alive)
	switch {
	case b.never:
	case b.exit != 0:
		f.endIn(c, b.lasts, events.StatusFailed, events.ReasonExit)
	default:
		f.endIn(c, b.lasts, events.StatusCompleted, "")
	}
	return events.SpawnReply{Snapshot: f.snapshot(c), Accepted: true, Backgrounded: true}, lost
}

func (f *fakeRunner) endIn(c *fakeChild, d time.Duration, status events.Status, reason events.Reason) {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.timer = time.AfterFunc(d, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if c.status.Terminal() {
			return
		}
		c.status, c.reason, c.ended = status, reason, time.Now()
		f.alive--
		close(c.done)
	})
}

func (f *fakeRunner) snapshot(c *fakeChild) events.Snapshot {
	s := events.Snapshot{SubagentID: c.spawn.ID, Name: c.spawn.Name, State: events.StateActive, Status: c.status, Reason: c.reason, StartedAt: &c.started}
	s.Progress = &events.Progress{LastLine: "line of " + c.spawn.Name}
	if c.status.Terminal() {
		s.State, s.EndedAt = events.StateCompleted, &c.ended
		s.DurationMS = c.ended.Sub(c.started).Milliseconds()
		s.Output.Text = "short output of " + c.spawn.Name
		s.Output.Path = "/state/" + c.spawn.Name + "/stdout.log"
		if c.status != events.StatusCancelled {
			s.ExitCode = &c.exit
		}
	}
	return s
}

func (f *fakeRunner) Query(ctx context.Context, q events.Query) (events.QueryReply, error) {
	f.mu.Lock()
	f.queries = append(f.queries, q)
	if f.dead {
		f.mu.Unlock()
		return events.QueryReply{}, errDead
	}
	if q.Block && len(f.queryErrors) > 0 {
		err := f.queryErrors[0]
		f.queryErrors = f.queryErrors[1:]
		f.mu.Unlock()
		return events.QueryReply{}, err
	}
	var known []*fakeChild
	var reply events.QueryReply
	for _, id := range q.IDs {
		c := f.children[id]
		if c == nil || f.forgets || c.spawn.ParentSessionID != q.ParentSessionID {
			reply.Unknown = append(reply.Unknown, id)
			continue
		}
		known = append(known, c)
	}
	f.mu.Unlock()
	if q.Block {
		deadline := time.NewTimer(time.Duration(*q.TimeoutMS) * time.Millisecond)
		defer deadline.Stop()
		for _, c := range known {
			select {
			case <-c.done:
			case <-deadline.C:
				reply.TimedOut = true
			case <-ctx.Done():
				return events.QueryReply{}, ctx.Err()
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range known {
		reply.Snapshots = append(reply.Snapshots, f.snapshot(c))
	}
	return reply, nil
}

func (f *fakeRunner) Cancel(ctx context.Context, c events.Cancel) (events.CancelReply, error) {
	f.mu.Lock()
	f.cancels = append(f.cancels, c)
	if f.dead {
		f.mu.Unlock()
		return events.CancelReply{}, errDead
	}
	if err := c.Validate(); err != nil {
		f.mu.Unlock()
		return events.CancelReply{}, err
	}
	if c.Target.ParentPromptID != "" {
		f.gated[c.Target.ParentPromptID] = true
	}
	var wait []*fakeChild
	for _, child := range f.children {
		named := slices.Contains(c.Target.IDs, child.spawn.ID) || child.spawn.ParentPromptID == c.Target.ParentPromptID
		if child.status.Terminal() || !named {
			continue
		}
		wait = append(wait, child)
		switch {
		case child.immortal, child.stubborn && !c.Kill:
		case c.Kill:
			f.endIn(child, 0, events.StatusCancelled, c.Reason)
		default:
			f.endIn(child, child.grace, events.StatusCancelled, c.Reason)
		}
	}
	f.mu.Unlock()
	deadline := time.NewTimer(time.Duration(*c.TimeoutMS) * time.Millisecond)
	defer deadline.Stop()
	for _, child := range wait {
		select {
		case <-child.done:
		case <-deadline.C:
			return events.CancelReply{}, nil
		case <-ctx.Done():
			return events.CancelReply{}, ctx.Err()
		}
	}
	return events.CancelReply{}, nil
}

// Logs serves "output of <name>\n" in parts of four bytes.
func (f *fakeRunner) Logs(_ context.Context, r events.FileRequest) (events.FileReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.children[r.ID]
	if c == nil {
		return events.FileReply{}, events.Errorf(events.CodeUnknownID, events.LayerGate, "logs %s: unknown", r.ID)
	}
	text := "output of " + c.spawn.Name + "\n"
	part := text[r.Offset:min(int(r.Offset)+4, len(text))]
	next := r.Offset + int64(len(part))
	return events.FileReply{SubagentID: r.ID, Data: []byte(part), Offset: r.Offset, Next: next, Size: int64(len(text)), EOF: int(next) == len(text)}, nil
}

// attempts are the children called name, in the order of their start.
func (f *fakeRunner) attempts(name string) []*fakeChild {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*fakeChild
	for _, c := range f.children {
		if c.spawn.Name == name {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *fakeChild) int { return a.number - b.number })
	return list
}

func (f *fakeRunner) child(name string) *fakeChild {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range maps.Values(f.children) {
		if c.spawn.Name == name {
			return c
		}
	}
	return nil
}
