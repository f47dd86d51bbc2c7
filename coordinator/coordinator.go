package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// Deps are the ports of a [Coordinator].
type Deps struct {
	Journal   Journal
	Spawner   Spawner
	Publisher Publisher
	Files     Files
	// Log may be nil.
	Log *zap.Logger
}

// Coordinator runs a [State]: the drain loop and the workers that carry out its
// effects. Its methods may be called from any goroutine and, but for Run,
// Shutdown, Stats, Lookup, Remove and Prune, never block.
type Coordinator struct {
	cfg  Config
	log  *zap.Logger
	port Spawner

	// internal takes answers of effects and reports of children; its length is
	// bounded by what is under way. intake takes commands and is bounded.
	internal *queue[Message]
	intake   *queue[Message]
	launches *queue[Effect]

	persister *persister
	publisher *publisher
	replier   *replier

	outstanding atomic.Int64 // accepted, not answered
	beat        atomic.Int64 // when the loop last turned, in Unix nanoseconds
	done        chan struct{}

	// Owned by the loop.
	state    *State
	rows     rows
	finished bool
	err      *events.Error
}

// New returns a coordinator; [Coordinator.Run] makes it work. What is submitted
// before that waits in the intake.
func New(cfg Config, d Deps) *Coordinator {
	cfg = cfg.withDefaults()
	log := d.Log
	if log == nil {
		log = zap.NewNop()
	}
	c := &Coordinator{
		cfg: cfg, log: log, port: d.Spawner,
		internal: newQueue[Message](0),
		intake:   newQueue[Message](cfg.Intake),
		launches: newQueue[Effect](0),
		state:    NewState(cfg, events.NewID()),
		done:     make(chan struct{}),
	}
	c.persister = newPersister(d.Journal, cfg.PutDeadline, c.tell, log)
	c.publisher = newPublisher(d.Publisher, cfg.PutDeadline, log)
	c.replier = newReplier(d.Files, func() { c.outstanding.Add(-1) }, log)
	c.beat.Store(cfg.Now().UnixNano())
	return c
}

// Limits returns the limits in force.
func (c *Coordinator) Limits() Limits { return c.cfg.Limits }

// Retention returns the bounds in force of what is kept.
func (c *Coordinator) Retention() Retention { return c.cfg.Retention }

// Submit hands a request to the loop. It refuses, and then never answers, with
// [events.CodeBusy] past the bounds and with [events.CodeShuttingDown] after the
// end. A spawn without an id gets one.
func (c *Coordinator) Submit(r Request) *events.Error {
	if err := r.Event.Validate(); err != nil {
		return err
	}
	if spawn, ok := r.Event.(events.Spawn); ok {
		if spawn.ID == "" {
			spawn.ID = events.NewID()
		}
		digest, err := digestOf(spawn)
		if err != nil {
			return err
		}
		r.Event, r.digest = spawn, digest
	}
	return c.command(r)
}

// Ack acknowledges the reply that carried token: what it told of counts as read
// once that is durable. A token that is unknown or too old changes nothing.
func (c *Coordinator) Ack(token string) *events.Error { return c.AckBy("", token) }

// AckBy is Ack by the subagent id.
func (c *Coordinator) AckBy(id, token string) *events.Error {
	if ok, closed := c.intake.push(Ack{Token: token, By: id}); !ok {
		return c.refusal(closed)
	}
	return nil
}

// Abandon tells that nobody waits for the answer of r's request any more. A
// foreground spawn goes on in the background.
func (c *Coordinator) Abandon(r Responder) { c.tell(Abandoned{r}) }

// command submits a message that is answered.
func (c *Coordinator) command(m Message) *events.Error {
	if c.outstanding.Add(1) > int64(c.cfg.Outstanding) {
		c.outstanding.Add(-1)
		return c.refusal(false)
	}
	if ok, closed := c.intake.push(m); !ok {
		c.outstanding.Add(-1)
		return c.refusal(closed)
	}
	return nil
}

func (c *Coordinator) refusal(closed bool) *events.Error {
	if closed {
		return errShuttingDown()
	}
	return events.Errorf(events.CodeBusy, events.LayerCoordinator, "the coordinator is busy").
		WithRemedy("ask again in a moment").
		WithDetail("depth", strconv.Itoa(c.intake.depth())).
		WithDetail("outstanding", strconv.FormatInt(c.outstanding.Load(), 10))
}

func digestOf(spawn events.Spawn) (string, *events.Error) {
	b, err := events.MarshalRecord(spawn)
	if err != nil {
		return "", events.AsError(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// tell is how workers answer the loop.
func (c *Coordinator) tell(m Message) { c.internal.push(m) }

// Forked implements [Observer].
func (c *Coordinator) Forked(id string, run int, fork events.Fork) { c.tell(Forked{id, run, fork}) }

// Started implements [Observer].
func (c *Coordinator) Started(id string, run int, report events.SandboxReport) {
	c.tell(Started{id, run, report})
}

// Ended implements [Observer].
func (c *Coordinator) Ended(id string, run int, end events.End) { c.tell(Ended{id, run, end}) }

// ask submits a message and waits for its answer.
func (c *Coordinator) ask(ctx context.Context, m func(Responder) Message) (any, *events.Error) {
	to := make(mailbox, 1)
	if err := c.command(m(to)); err != nil {
		return nil, err
	}
	select {
	case a := <-to:
		return a.Reply, a.Error
	case <-ctx.Done():
		return nil, events.Errorf(events.CodeTimeout, events.LayerCoordinator, "ask the coordinator: %w", context.Cause(ctx))
	}
}

// mailbox is a responder that holds the one answer it gets.
type mailbox chan Answer

func (m mailbox) Answer(a Answer) { m <- a }

// Stats counts what the loop knows.
func (c *Coordinator) Stats(ctx context.Context) (Stats, error) {
	r, err := c.ask(ctx, func(to Responder) Message { return AskStats{to} })
	if err != nil {
		return Stats{}, err
	}
	return r.(Stats), nil
}

// Lookup returns the durable record of the subagent that ref, an id, a name or
// an id's ending, names in the session; an empty session is any.
func (c *Coordinator) Lookup(ctx context.Context, session, ref string) (events.Record, *events.Error) {
	r, err := c.ask(ctx, func(to Responder) Message { return Lookup{session, ref, to} })
	if err != nil {
		return events.Record{}, err
	}
	return r.(Found).Record, nil
}

// Remove takes finished subagents away, by id. Like [Coordinator.Prune] it waits
// until they are gone; at the end of ctx it goes on without the caller.
func (c *Coordinator) Remove(ctx context.Context, r events.RemoveRequest) (events.RemoveReply, *events.Error) {
	if err := r.Validate(); err != nil {
		return events.RemoveReply{}, err
	}
	return removal(c.ask(ctx, func(to Responder) Message { return Remove{r, to} }))
}

// Prune takes finished and read subagents away, by age and number.
func (c *Coordinator) Prune(ctx context.Context, r events.PruneRequest) (events.RemoveReply, *events.Error) {
	if err := r.Validate(); err != nil {
		return events.RemoveReply{}, err
	}
	return removal(c.ask(ctx, func(to Responder) Message { return Prune{r, to} }))
}

func removal(r any, err *events.Error) (events.RemoveReply, *events.Error) {
	if err != nil {
		return events.RemoveReply{}, err
	}
	return r.(events.RemoveReply), nil
}

// Shutdown ends the coordinator and with it Run: see [ShutDown]. It returns once
// every child has ended and that is durable, or with what is so far when ctx
// ends; then the shutdown goes on, and a second one with Kill hastens it.
func (c *Coordinator) Shutdown(ctx context.Context, r events.ShutdownRequest) (ended, left int, err error) {
	// It goes in with the answers of effects: a full intake does not hold it up.
	to := make(mailbox, 1)
	c.outstanding.Add(1)
	if ok, _ := c.internal.push(ShutDown{r, to}); !ok {
		c.outstanding.Add(-1)
		return 0, 0, errShuttingDown()
	}
	select {
	case a := <-to:
		return shutdownCounts(a)
	case <-ctx.Done():
		c.tell(ShutdownExpired{})
	}
	select {
	case a := <-to:
		return shutdownCounts(a)
	case <-c.done:
		// Run answers everything before it is done.
		return shutdownCounts(<-to)
	}
}

func shutdownCounts(a Answer) (ended, left int, err error) {
	if a.Error != nil {
		return 0, 0, a.Error
	}
	r := a.Reply.(events.ShutdownReply)
	return r.Ended, r.Left, nil
}

// Health is for a watchdog: a loop that has work and did not turn for long is
// stuck.
type Health struct {
	LastTurn time.Time
	// Backlog is what waits for the loop, Unanswered the requests in its care.
	Backlog, Unanswered int
	// FeedDropped counts feed events that could not be published.
	FeedDropped int64
}

// Health does not ask the loop, so it answers when the loop does not.
func (c *Coordinator) Health() Health {
	return Health{
		LastTurn:    time.Unix(0, c.beat.Load()),
		Backlog:     c.internal.depth() + c.intake.depth(),
		Unanswered:  int(c.outstanding.Load()),
		FeedDropped: c.publisher.dropped.Load(),
	}
}

// sync waits until everything told before was applied.
func (c *Coordinator) sync(ctx context.Context) error {
	b := barrier{make(chan struct{})}
	c.tell(b)
	select {
	case <-b.done:
		return nil
	case <-c.done:
		return errors.New("the coordinator has ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// workers are the goroutines beside the loop.
type workers struct {
	group  sync.WaitGroup
	cancel context.CancelFunc
}

// start starts the workers. Their context is not that of Run: what was accepted
// is written and answered after the loop ended.
func (c *Coordinator) start(ctx context.Context) *workers {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &workers{cancel: cancel}
	w.group.Go(func() { c.persister.run(ctx) })
	w.group.Go(func() { c.publisher.run(ctx) })
	w.group.Go(c.replier.run)
	w.group.Go(c.launch)
	return w
}

// stop lets the workers finish what they have, until the flush deadline.
func (w *workers) stop(c *Coordinator) {
	c.launches.close()
	c.persister.in.close()
	c.publisher.in.close()
	c.replier.in.close()
	timer := time.AfterFunc(c.cfg.FlushDeadline, w.cancel)
	w.group.Wait()
	timer.Stop()
	w.cancel()
}

// launch calls the spawner, in the order of the effects.
func (c *Coordinator) launch() {
	for {
		m, ok := c.launches.pop()
		if !ok {
			if c.launches.drained() {
				return
			}
			<-c.launches.wake
			continue
		}
		switch m := m.(type) {
		case StartChild:
			c.port.Start(*m.Spec)
		case ReleaseChild:
			c.port.Release(m.ID)
		case StopChild:
			c.port.Stop(m.ID, m.Stop)
		case AdoptChild:
			c.port.Adopt(*m.Spec, *m.Record)
		}
	}
}
