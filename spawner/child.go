package spawner

import (
	"errors"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/adapter"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/sandbox"
)

// child is one subagent's process tree. Its goroutine owns every field but the
// mailbox.
type child struct {
	s    *Spawner
	spec events.Spec
	log  *zap.Logger
	// adopted is the record of a child that another coordinator forked.
	adopted *events.Record

	dir     *rundir.Dir
	space   space
	plan    *sandbox.Plan
	tempDir string
	// home is the private home of an agent, agent its command; empty and nil for a
	// plain command.
	home  string
	agent *adapter.Setup
	// itemsBefore are in the transcript, and usageBefore is that of the session, from
	// the run that is gone on from.
	itemsBefore uint64
	usageBefore events.Usage
	token       credential
	proc        *process
	tree        tree
	bounds      *bounds
	start       *os.File // write end of the start pipe, nil once used
	status      *os.File // read end of the status pipe

	// report is what the child said of its sandbox, nil until then.
	report *events.SandboxReport
	// stop is the strongest stop asked for so far, nil if none.
	stop *events.Stop
	// refusal is why the child could not be started or confined.
	refusal *events.Error
	// undo are the steps to take back, last first.
	undo []func()

	mail mailbox
}

// mailbox is how other goroutines talk to a child's own.
type mailbox struct {
	released chan struct{} // closed by the first Release
	once     sync.Once
	stops    chan struct{} // 1-buffered wake-up: pending changed

	mu sync.Mutex
	// pending is the strongest stop asked for; guarded by mu.
	pending *events.Stop
}

func newChild(s *Spawner, spec events.Spec) *child {
	return &child{
		s:    s,
		spec: spec,
		log:  s.cfg.Log.With(zap.String("id", spec.ID), zap.String("session", spec.Request.ParentSessionID), zap.Int("run", spec.Run)),
		mail: mailbox{released: make(chan struct{}), stops: make(chan struct{}, 1)},
	}
}

func (c *child) release() { c.mail.once.Do(func() { close(c.mail.released) }) }

// requestStop keeps the first reason and the strongest means.
func (c *child) requestStop(stop events.Stop) {
	c.mail.mu.Lock()
	if p := c.mail.pending; p == nil {
		c.mail.pending = &stop
	} else if stop.Kill && !p.Kill {
		c.mail.pending = &events.Stop{Reason: p.Reason, Kill: true}
	}
	c.mail.mu.Unlock()
	select {
	case c.mail.stops <- struct{}{}:
	default:
	}
}

// takeStop moves the mailbox's stop to the child and reports whether there is one.
func (c *child) takeStop() bool {
	c.mail.mu.Lock()
	defer c.mail.mu.Unlock()
	if c.mail.pending != nil {
		stop := *c.mail.pending
		c.stop = &stop
	}
	return c.stop != nil
}

// errClosed says that the spawner was closed while the child lived: nothing is
// told, the next coordinator adopts it.
var errClosed = errors.New("spawner closed")

// live takes a child from Start to Ended.
func (c *child) live() {
	if err := c.prepare(); err != nil {
		c.fail(err)
		return
	}
	crashpoint.Hit(crashpoint.Prepared)
	if err := c.fork(); err != nil {
		c.fail(err)
		return
	}
	crashpoint.Hit(crashpoint.ChildForked)
	c.s.cfg.Observer.Forked(c.spec.ID, c.spec.Run, events.Fork{
		Process: c.proc.identity, TokenHash: c.token.hash, TempDir: c.tempDir, Worktree: c.treeOfRecord(), Cwd: c.space.cwd,
	})
	if !c.awaitRelease() {
		c.abandon()
		return
	}
	if err := c.watch(); errors.Is(err, errClosed) {
		c.letGo()
		return
	}
	c.finish()
}

// fail undoes a start that forked nothing, or nothing that ran, and tells why.
func (c *child) fail(err *events.Error) {
	c.unwind()
	if c.s.ctx.Err() != nil && !c.takeStop() {
		return // closing is what made it fail: the next coordinator starts it
	}
	end := events.End{Status: events.StatusFailed, Reason: events.ReasonStart, Error: err, At: time.Now().UTC()}
	switch {
	case c.takeStop():
		end = c.stoppedBeforeStart()
	case err.Layer == events.LayerSandbox:
		end.Reason = events.ReasonSandbox
	case err.Code == events.CodeLimit:
		end.Reason = events.ReasonLimit
	}
	c.tellEnded(end)
}

// tellEnded is the last that is told of c. Its id is free by then: whoever is
// told may start it again at once.
func (c *child) tellEnded(end events.End) {
	c.s.forget(c)
	c.s.cfg.Observer.Ended(c.spec.ID, c.spec.Run, end)
}

// awaitRelease reports whether the child may go. It may not when it was stopped
// or the spawner closed first.
func (c *child) awaitRelease() bool {
	for {
		select {
		case <-c.s.ctx.Done():
			return false
		case <-c.mail.stops:
			if c.takeStop() {
				return false
			}
		case <-c.mail.released:
			if c.takeStop() {
				return false
			}
			crashpoint.Hit(crashpoint.ForkRecorded)
			c.space.began = true
			if err := c.letRun(); err != nil {
				c.refusal = events.Errorf(events.CodeStartFailed, events.LayerCoordinator,
					"start %s: let the child go: %w", c.spec.ID, err)
			}
			c.closeStart()
			crashpoint.Hit(crashpoint.ChildReleased)
			return true
		}
	}
}

// releasedFile is made in the run directory before a child is let go. It holds the
// sandbox that the plan asks for: a coordinator that adopts the child has not read
// its status records.
const releasedFile = "released"

// letRun writes the start byte.
func (c *child) letRun() error {
	body, err := events.MarshalRecord(c.plan.Required())
	if err != nil {
		return err
	}
	mark, err := c.dir.OpenAppend(releasedFile)
	if err != nil {
		return err
	}
	if err = mark.Truncate(0); err == nil { // of a child that was not let go after all
		_, err = mark.Write(body)
	}
	if err := errors.Join(err, mark.Close()); err != nil {
		return err
	}
	_, err = c.start.Write([]byte{1})
	return err
}

// abandon ends a child that was forked and ran nothing.
func (c *child) abandon() {
	c.closeStart() // end of file: it exits by itself
	if err := c.proc.kill(); err != nil {
		c.log.Error("kill failed", zap.Error(err))
	}
	if !c.proc.waitGone(c.s.cfg.Deadlines.KillProof) {
		c.log.Error("a child that ran nothing is left after SIGKILL", zap.Int("pid", c.proc.identity.PID))
	}
	c.unwind()
	if c.s.ctx.Err() != nil && c.stop == nil {
		return // closing: the record says pending, the next start undoes it
	}
	c.tellEnded(c.stoppedBeforeStart())
}

func (c *child) stoppedBeforeStart() events.End {
	end := events.End{Reason: c.stop.Reason, At: time.Now().UTC()}
	end.Status = statusOfStop(c.stop.Reason)
	if end.Status == events.StatusFailed {
		end.Error = events.Errorf(events.CodeStartTimeout, events.LayerCoordinator,
			"start %s: it was not ready in time", c.spec.ID)
	}
	return end
}

func (c *child) closeStart() {
	if c.start != nil {
		c.start.Close() // a pipe's close reports nothing of use
		c.start = nil
	}
}

// letGo drops what this process holds of a child that goes on without it.
func (c *child) letGo() {
	c.proc.close()
	if c.status != nil {
		c.status.Close()
	}
	if c.plan != nil {
		c.plan.Close()
	}
	c.dropLease()
	c.dir.Close()
}

func (c *child) onUndo(f func()) { c.undo = append(c.undo, f) }

func (c *child) unwind() {
	for i := len(c.undo) - 1; i >= 0; i-- {
		c.undo[i]()
	}
	c.undo = nil
}
