package coordinator

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// Run restores what was left and works until a [Coordinator.Shutdown] is done,
// ctx ends or a second writer of the store is met. Ending ctx leaves children
// running, as a crash would; what was accepted is written and answered either
// way, within the flush deadline. It returns nil after a shutdown and after ctx
// ended, and is called once.
func (c *Coordinator) Run(ctx context.Context, left Restore) error {
	defer close(c.done)
	for i := range left.Stored {
		c.persister.revisions[left.Stored[i].Record.ID] = left.Stored[i].Revision
	}
	w := c.start(ctx)
	c.apply(left)
	c.drain(ctx)
	c.close()
	w.stop(c)
	if c.err != nil && c.err.Code != events.CodeShuttingDown {
		return c.err
	}
	return nil
}

// drain is the loop: answers of effects and ends of children first, then
// commands, then due timers, at most [batch] of a kind in a row while the next
// kind has something. So a finish beats a racing command and nothing starves.
func (c *Coordinator) drain(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !c.finished {
		if ctx.Err() != nil {
			c.apply(Halt{Err: errShuttingDown()})
			return
		}
		now := c.cfg.Now()
		c.beat.Store(now.UnixNano())
		if m := c.next(now); m != nil {
			c.apply(m)
			continue
		}
		var timerC <-chan time.Time // nil while no timer is armed
		if at, armed := c.state.Next(); armed {
			timer.Reset(max(0, at.Sub(now)))
			timerC = timer.C
		}
		select {
		case <-c.internal.wake:
		case <-c.intake.wake:
		case <-timerC:
		case <-ctx.Done():
		}
	}
}

// next picks the next message, or none if there is nothing to do now.
func (c *Coordinator) next(now time.Time) Message {
	if m := c.pick(now); m != nil || c.rows == (rows{}) {
		return m
	}
	// What comes after a full row had nothing: start over.
	c.rows = rows{}
	return c.pick(now)
}

// rows counts how many of a kind were taken in a row.
type rows struct{ internal, intake int }

// pick takes a message of the first kind whose row is not full. A message of one
// kind begins the rows of those before it anew.
func (c *Coordinator) pick(now time.Time) Message {
	if c.rows.internal < batch {
		if m, ok := c.internal.pop(); ok {
			c.rows.internal++
			return m
		}
	}
	if c.rows.intake < batch {
		if m, ok := c.intake.pop(); ok {
			c.rows = rows{intake: c.rows.intake + 1}
			return m
		}
	}
	if at, armed := c.state.Next(); armed && !at.After(now) {
		c.rows = rows{}
		return Tick{}
	}
	return nil
}

// apply applies one message and hands its effects to the workers. None of it
// blocks.
func (c *Coordinator) apply(m Message) {
	for _, e := range c.state.Apply(m, c.cfg.Now()) {
		switch e := e.(type) {
		case Persist, PersistGate, ForgetGate, Forget:
			c.persister.in.push(e)
		case Publish:
			c.publisher.in.push(e.Event)
		case Reply:
			c.replier.in.push(e)
		case Finish:
			c.finished, c.err = true, e.Err
			if e.Err != nil {
				c.log.Info("the coordinator ends", zap.Error(e.Err))
			}
		default:
			c.launches.push(e)
		}
	}
	if b, ok := m.(barrier); ok {
		close(b.done)
	}
}

// close refuses further messages and answers those that were accepted.
func (c *Coordinator) close() {
	c.intake.close()
	c.internal.close()
	for m, ok := c.internal.pop(); ok; m, ok = c.internal.pop() {
		switch m.(type) {
		case barrier, ShutDown:
			c.apply(m)
		}
	}
	for m, ok := c.intake.pop(); ok; m, ok = c.intake.pop() {
		if _, is := m.(Ack); !is {
			c.apply(m)
		}
	}
}
