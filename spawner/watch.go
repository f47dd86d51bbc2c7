package spawner

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/handoff"
)

// ladder is how far the stop of one child has come: asked nicely, then killed.
type ladder struct {
	answered chan error // 1-buffered: the child's answer to the control message
	timer    *time.Timer
	killed   bool
	killedAt time.Time
}

// watch follows a released child until no process of pid 1 is left. It returns
// errClosed if the spawner was closed first.
func (c *child) watch() error {
	l := &ladder{timer: time.NewTimer(time.Hour)}
	l.timer.Stop()
	defer l.timer.Stop()
	ctx, cancel := context.WithCancel(c.s.ctx)
	defer cancel()
	running := c.awaitRunning(ctx)
	records := c.readStatus()
	var got []handoff.Record
	if c.refusal != nil {
		c.kill(l)
	}
	for {
		select {
		case r, ok := <-records:
			if !ok {
				records = nil
				continue
			}
			got = append(got, r)
			if !c.onStatus(r, got) {
				c.kill(l)
			}
		case <-running:
			running = nil
			c.tellAdoptedStarted()
		case <-c.mail.stops:
			if c.takeStop() {
				c.climb(l)
			}
		case err := <-l.answered:
			l.answered = nil
			if err != nil {
				c.log.Info("child did not answer the stop, killing it", zap.Error(err))
				c.kill(l)
				continue
			}
			// The child runs the ladder inside; this is the bound on it.
			l.timer.Reset(c.s.cfg.Deadlines.Grace + c.s.cfg.Deadlines.Control)
		case <-l.timer.C:
			if l.killed {
				c.log.Error("processes are left after SIGKILL", zap.Duration("since", time.Since(l.killedAt)))
				l.timer.Reset(c.s.cfg.Deadlines.KillProof)
			}
			c.kill(l)
		case <-c.proc.gone:
			// Its last status records are in the pipe; the end of file follows them.
			if records != nil {
				for r := range records {
					got = append(got, r)
					c.onStatus(r, got)
				}
			}
			return nil
		case <-c.s.ctx.Done():
			return errClosed
		}
	}
}

// climb takes the next step of the stop ladder.
func (c *child) climb(l *ladder) {
	if c.stop.Kill {
		c.kill(l)
		return
	}
	if l.answered != nil || l.killed {
		return // on its way
	}
	answered := make(chan error, 1)
	l.answered = answered
	ask := events.Control{Kind: events.ControlStop, Reason: c.stop.Reason}
	c.s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(c.s.ctx, c.s.cfg.Deadlines.Control)
		defer cancel()
		_, err := c.s.cfg.Controller.Control(ctx, c.spec.ID, ask)
		crashpoint.Hit(crashpoint.StopSent)
		answered <- err
	})
}

func (c *child) kill(l *ladder) {
	if err := c.proc.kill(); err != nil {
		c.log.Error("kill failed", zap.Error(err))
	}
	if err := c.tree.kill(); err != nil {
		c.log.Error("kill of the tree failed", zap.Error(err))
	}
	if !l.killed {
		l.killed, l.killedAt = true, time.Now()
		l.timer.Reset(c.s.cfg.Deadlines.KillProof)
	}
}

// onStatus takes one status record and reports whether the child may go on.
func (c *child) onStatus(r handoff.Record, got []handoff.Record) bool {
	switch {
	case c.refusal != nil:
		return false
	case r.Errno != 0 && r.Skipped == 0, r.Step == handoff.StepConfined:
		report, err := c.plan.Report(got)
		report.TreeKill = c.tree.kind()
		c.report = &report
		if err != nil {
			c.refusal = err
			return false
		}
		if err := c.dir.WriteSandbox(report); err != nil {
			c.log.Error("sandbox.json not written", zap.Error(err))
		}
	case r.Step == handoff.StepRunner:
		if c.report == nil {
			// The supervisor runs without the constructor's word: never let it.
			c.refusal = events.Errorf(events.CodeSandboxFailed, events.LayerSandbox,
				"start %s: the child ran without reporting its sandbox", c.spec.ID)
			return false
		}
		crashpoint.Hit(crashpoint.ChildStarted)
		c.s.cfg.Observer.Started(c.spec.ID, c.spec.Run, *c.report)
	}
	return true
}

// readStatus turns the status pipe into a channel that is closed at end of file.
func (c *child) readStatus() <-chan handoff.Record {
	if c.status == nil { // adopted: its pipe ended with the coordinator that made it
		return nil
	}
	records := make(chan handoff.Record, int(handoff.StepRefused)+1)
	status := c.status
	c.s.wg.Go(func() {
		defer close(records)
		var buf [handoff.RecordSize]byte
		for {
			if _, err := readFull(status, buf[:]); err != nil {
				return
			}
			select {
			case records <- handoff.Decode(buf[:]):
			case <-c.s.ctx.Done():
				return
			}
		}
	})
	return records
}
