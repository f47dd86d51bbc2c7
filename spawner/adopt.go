package spawner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// liveAdopted takes over a child that another coordinator forked. Released or
// not is not known, and need not be: one that was not released saw its start
// pipe end and is gone.
func (c *child) liveAdopted() {
	if !c.findAdopted() {
		return // closing: the next coordinator adopts it
	}
	c.onUndo(func() { c.proc.close() })
	dir, err := c.s.cfg.Root.Open(c.spec.ID)
	if err != nil {
		c.endUnadopted(events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "adopt %s: open the run directory: %w", c.spec.ID, err))
		return
	}
	c.dir = dir
	c.onUndo(func() { dir.Close() })
	c.adoptSpace()
	if tmp := c.adopted.TempDir; tmp != "" {
		c.tempDir = tmp
		c.onUndo(func() { removeTemp(tmp, c.log) })
	}
	c.onUndo(func() { c.s.cfg.Credentials.Revoke(c.spec.ID) })
	if c.adopted.TokenHash != "" {
		c.s.cfg.Credentials.Grant(c.spec.ID, c.adopted.TokenHash)
	}
	c.tree = adoptTree(c.spec.ID, c.adopted.Process)
	c.onUndo(c.closeTree)
	c.bounds = adoptBounds(c.adopted.Process)
	c.onUndo(c.closeBounds)

	if err := c.watch(); err != nil {
		c.letGo()
		return
	}
	// One that was not let go is often still there to be adopted, on its way out.
	if c.neverRan() {
		c.space.began = false
		c.unwind()
		c.tellEnded(events.End{
			Status: events.StatusFailed, Reason: events.ReasonCrash, At: time.Now().UTC(), NotRun: true,
		})
		return
	}
	c.finish()
}

// endUnadopted kills a child that cannot be adopted and tells why once it is
// gone.
func (c *child) endUnadopted(why *events.Error) {
	for !c.proc.waitGone(0) {
		if err := c.proc.kill(); err != nil {
			c.log.Error("kill failed", zap.Error(err))
		}
		if !c.proc.waitGone(c.s.cfg.Deadlines.KillProof) {
			c.log.Error("processes are left after SIGKILL", zap.Int("pid", c.proc.identity.PID))
		}
	}
	c.fail(why)
}

// lookAgain is how long to wait before looking again for a process that could
// not be looked at.
const lookAgain = 200 * time.Millisecond

// findAdopted finds the recorded process, alive or gone. As long as neither is
// certain it looks again; it returns false if the spawner was closed first.
func (c *child) findAdopted() bool {
	for {
		p, err := openRecorded(c.adopted.Process)
		if err == nil {
			c.proc = p
			return true
		}
		c.log.Error("not known whether the child is still there", zap.Error(err))
		select {
		case <-c.s.ctx.Done():
			return false
		case <-time.After(lookAgain):
		}
	}
}

// openRecorded returns the recorded process if it still is the one running under
// its pid, else one that is gone. The pidfd is opened first: it then pins what
// the comparison is about, so a reused pid is never taken for the child. An
// error means that it could not be found out.
func openRecorded(recorded *events.Process) (*process, error) {
	if recorded == nil {
		return endedProcess(nil), nil
	}
	pidfd, err := unix.PidfdOpen(recorded.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return endedProcess(recorded), nil
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", recorded.PID, err)
	}
	now, err := identityOf(recorded.PID)
	switch {
	case readable(pidfd):
		// It has ended, whoever it is. Of one that nobody reaped not all can be read.
		unix.Close(pidfd)
		return endedProcess(recorded), nil
	case err != nil:
		unix.Close(pidfd)
		return nil, err
	case now.StartTime != recorded.StartTime || now.BootID != recorded.BootID ||
		(recorded.PIDNamespace != 0 && now.PIDNamespace != recorded.PIDNamespace):
		unix.Close(pidfd)
		return endedProcess(recorded), nil
	}
	p, err := newProcess(recorded.PID, pidfd, false)
	if err != nil {
		return nil, err
	}
	p.identity = *recorded
	return p, nil
}

// neverRan reports whether it is certain that the child started no command: its
// supervisor writes to the transcript before it does, and where it refuses to, to
// report.json.
func (c *child) neverRan() bool {
	before, unknown := c.before()
	for name, size := range map[string]int64{rundir.TranscriptFile: before.Bytes, rundir.ReportFile: 0} {
		out, err := c.dir.Output(name, 1, 0, 1)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err = errors.Join(err, unknown); err != nil {
			c.log.Error("not known whether the child ran", zap.Error(err))
		}
		if err != nil || out.Bytes > size {
			return false
		}
	}
	return true
}

// awaitRunning returns a channel that is closed once the command of a child
// whose record does not say so yet is known to run: its supervisor connects to
// the bus after it started the command. For others it is nil.
func (c *child) awaitRunning(ctx context.Context) <-chan struct{} {
	if c.adopted == nil || c.adopted.State != events.StatePending {
		return nil
	}
	running := make(chan struct{})
	c.s.wg.Go(func() {
		for ctx.Err() == nil {
			reply, err := c.s.cfg.Controller.Control(ctx, c.spec.ID, events.Control{Kind: events.ControlPing})
			if err == nil && reply.OK {
				close(running)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(lookAgain):
			}
		}
	})
	return running
}

// tellAdoptedStarted tells of a start that the coordinator before did not live
// to record, once.
func (c *child) tellAdoptedStarted() {
	if c.adopted == nil || c.adopted.State != events.StatePending || c.report != nil {
		return
	}
	report, err := c.dir.ReadSandbox()
	if err != nil {
		report = c.releasedUnder()
	}
	c.report = &report
	c.s.cfg.Observer.Started(c.spec.ID, c.spec.Run, report)
}

// releasedUnder is the sandbox that the child was let go under. It runs, so its
// constructor applied what the plan requires.
func (c *child) releasedUnder() events.SandboxReport {
	lost := events.SandboxReport{Requested: c.spec.Request.Sandbox, Gaps: []string{gapReportLost}}
	f, err := c.dir.OpenRead(releasedFile)
	if err != nil {
		c.log.Error("sandbox not known", zap.Error(err))
		return lost
	}
	defer f.Close()
	var report events.SandboxReport
	body, err := io.ReadAll(io.LimitReader(f, events.MaxMessage))
	if err == nil {
		err = events.DecodeRecord(body, &report)
	}
	if err != nil {
		c.log.Error("sandbox not known", zap.Error(err))
		return lost
	}
	return report
}

// gapReportLost is the gap of a sandbox of which nothing is known.
const gapReportLost = "report_lost"

// endedProcess stands for a child that was gone before it could be adopted.
func endedProcess(identity *events.Process) *process {
	p := &process{gone: make(chan struct{})}
	if identity != nil {
		p.identity = *identity
	}
	close(p.gone)
	return p
}
