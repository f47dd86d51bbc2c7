package spawner

import (
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// liveAdopted takes over a child that another coordinator forked. Released or
// not is not known, and need not be: one that was not released saw its start
// pipe end and is gone.
func (c *child) liveAdopted() {
	dir, err := c.s.cfg.Root.Open(c.spec.ID)
	if err != nil {
		c.fail(events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "adopt %s: open the run directory: %w", c.spec.ID, err))
		return
	}
	c.dir = dir
	c.onUndo(func() { dir.Close() })
	if tmp := c.adopted.TempDir; tmp != "" {
		c.tempDir = tmp
		c.onUndo(func() { removeTemp(tmp, c.log) })
	}
	c.report = c.adopted.Sandbox
	c.onUndo(func() { c.s.cfg.Credentials.Revoke(c.spec.ID) })
	if c.adopted.TokenHash != "" {
		c.s.cfg.Credentials.Grant(c.spec.ID, c.adopted.TokenHash)
	}
	c.tree, err = adoptTree(c.spec.ID, c.adopted.Process)
	if err != nil {
		c.log.Error("tree not adopted", zap.Error(err))
	}
	c.onUndo(func() { c.tree.close() })

	if c.proc = c.openAdopted(); c.proc == nil {
		c.proc = endedProcess(c.adopted.Process)
	} else {
		c.onUndo(func() { c.proc.close() })
		c.log.Info("adopted a running child", zap.Int("pid", c.proc.identity.PID))
		if err := c.watch(); err != nil {
			c.letGo()
			return
		}
	}
	// One that was not let go is often still there to be adopted, on its way out.
	if c.neverLetGo() {
		c.unwind()
		c.s.cfg.Observer.Ended(c.spec.ID, c.spec.Run, events.End{
			Status: events.StatusFailed, Reason: events.ReasonCrash, At: time.Now().UTC(), NotRun: true,
		})
		return
	}
	c.finish()
}

// neverLetGo reports whether it is certain that nothing of the child ran.
func (c *child) neverLetGo() bool {
	released, err := c.dir.Exists(releasedFile)
	if err != nil {
		c.log.Error("not known whether the child was let go", zap.Error(err))
	}
	return err == nil && !released
}

// openAdopted returns the recorded process if it still is the one running under
// its pid. The pidfd is opened first: it then pins what the comparison is about,
// so a reused pid is never taken for the child.
func (c *child) openAdopted() *process {
	recorded := c.adopted.Process
	if recorded == nil {
		return nil
	}
	pidfd, err := unix.PidfdOpen(recorded.PID, 0)
	if err != nil {
		return nil
	}
	now, err := identityOf(recorded.PID)
	if err != nil || now.StartTime != recorded.StartTime || now.BootID != recorded.BootID ||
		(recorded.PIDNamespace != 0 && now.PIDNamespace != recorded.PIDNamespace) {
		unix.Close(pidfd)
		return nil
	}
	p, err := newProcess(recorded.PID, pidfd, false)
	if err != nil {
		c.log.Error("adopted child not watched", zap.Error(err))
		return nil
	}
	p.identity = *recorded
	return p
}

// endedProcess stands for a child that was gone before it could be adopted.
func endedProcess(identity *events.Process) *process {
	p := &process{gone: make(chan struct{})}
	if identity != nil {
		p.identity = *identity
	}
	close(p.gone)
	return p
}
