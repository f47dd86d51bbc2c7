package coordinator

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// Run restores what is stored and works until a [Coordinator.Shutdown] is done,
// ctx ends or a second writer of the store is met. Ending ctx leaves children
// running, as a crash would; what was accepted is written and answered either
// way, within the flush deadline. It returns nil after a shutdown and after ctx
// ended, and is called once.
func (c *Coordinator) Run(ctx context.Context, stored []Stored) error {
	defer close(c.done)
	for i := range stored {
		c.persister.revisions[stored[i].Record.ID] = stored[i].Revision
	}
	w := c.start(ctx)
	c.apply(Restore{Stored: stored})
	c.drain(ctx)
	c.close()
	w.stop(c)
	if c.err != nil && c.err.Code != events.CodeShuttingDown {
		return c.err
	}
	return nil
}

// source is where the loop takes its next message from, in order of precedence.
type source int

const (
	fromInternal source = iota
	fromIntake
	fromTimers
)

// drain is the loop: answers of effects and ends of children first, then
// commands, then due timers, at most [batch] of a kind in a row while the next
// kind has something. So a finish beats a racing command and nothing starves.
func (c *Coordinator) drain(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var row [fromTimers]int
	for !c.finished {
		if ctx.Err() != nil {
			c.apply(Halt{Err: errShuttingDown()})
			return
		}
		now := c.cfg.Now()
		c.beat.Store(now.UnixNano())
		m, from := c.next(&row, now)
		if m != nil {
			c.apply(m)
			if from == fromTimers {
				row = [fromTimers]int{}
			} else {
				row[from]++
				clear(row[:from])
			}
			continue
		}
		if row != [fromTimers]int{} {
			// The kinds after a full row had nothing: start over.
			row = [fromTimers]int{}
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
func (c *Coordinator) next(row *[fromTimers]int, now time.Time) (Message, source) {
	if row[fromInternal] < batch {
		if m, ok := c.internal.pop(); ok {
			return m, fromInternal
		}
	}
	if row[fromIntake] < batch {
		if m, ok := c.intake.pop(); ok {
			return m, fromIntake
		}
	}
	if at, armed := c.state.Next(); armed && !at.After(now) {
		return Tick{}, fromTimers
	}
	return nil, 0
}

// apply applies one message and hands its effects to the workers. None of it
// blocks.
func (c *Coordinator) apply(m Message) {
	for _, e := range c.state.Apply(m, c.cfg.Now()) {
		switch e := e.(type) {
		case Persist:
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
