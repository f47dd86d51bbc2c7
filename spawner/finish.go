package spawner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/sandbox"
)

// finish proves that nothing is left, reads the result and tells the end. If this
// coordinator closes before that is done, the next one finds the child gone and does
// it.
func (c *child) finish() {
	crashpoint.Hit(crashpoint.ChildGone)
	c.endTree()
	c.awaitDrained()
	if !c.endNested() {
		c.letGo()
		return
	}
	known := c.evidence()
	if known.report != nil && known.report.Exit != nil {
		c.tellAdoptedStarted() // it ran, or it would have no exit
	}
	end := endOf(known)
	c.price(&end)
	c.structure(&end, known.report)
	if end.Status == events.StatusFailed && end.Reason == events.ReasonExit {
		end.SandboxHint = c.hint(end.StderrTail)
	}
	end.Quarantined = c.quarantine()
	c.giveBack()
	end.Output = c.output(known.report)
	end.Usage = c.usage(end.Agent)
	if !c.keepState(known.report, c.stop) {
		c.letGo()
		return
	}
	crashpoint.Hit(crashpoint.ResultRead)
	if !c.endSpace(&end) {
		c.letGo()
		return
	}
	c.unwind()
	crashpoint.Hit(crashpoint.EndTold)
	c.tellEnded(end)
}

// usage is what the run used of models: what the gateway counted, or what the agent
// says where it reached its model by itself.
func (c *child) usage(said *events.AgentResult) *events.Usage {
	var used events.Usage
	metered := c.runsAgent() && c.spec.Agent.Access == events.AccessGateway
	if c.s.cfg.ModelUsage != nil && (metered || c.spec.Spawns != nil) {
		used = c.s.cfg.ModelUsage(c.spec.ID) // nothing of a command, whose sums end here too
	}
	if !metered && said != nil {
		used = said.Usage
	}
	if used == (events.Usage{}) {
		return nil
	}
	return &used
}

// output reads what the run put out. An agent's is its answer.
func (c *child) output(report *events.Report) *events.Output {
	if report != nil && report.Agent != nil {
		if err := c.dir.WriteAnswer(report.Answer); err != nil {
			c.log.Error("answer not kept; its stdout has it", zap.Error(err))
		}
	}
	name, err := c.dir.OutputFile()
	if err != nil {
		c.log.Error("output not found", zap.Error(err))
		return nil
	}
	out, err := c.dir.Output(name, events.MaxRecordOutput, events.RecordOutputHead, events.RecordOutputTail)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.log.Error("output not read", zap.Error(err))
		}
		return nil
	}
	out.Ref = c.spec.ID + "/" + name
	out.Path = filepath.Join(c.dir.Path(), name)
	return &out
}

// quarantine moves aside what the child made to be run outside later.
func (c *child) quarantine() []string {
	report := c.sandboxReport()
	if report == nil {
		known := events.SandboxReport{}
		if c.plan != nil {
			known = c.plan.Required()
		} else if c.adopted != nil {
			known = c.releasedUnder()
		}
		report = &known
	}
	moved, err := sandbox.Quarantine(report.Absent, c.spec.ID)
	if err != nil {
		c.log.Error("protected names not cleared", zap.Error(err))
	}
	return moved
}

// sandboxReport is what is known of the child's sandbox, or nil.
func (c *child) sandboxReport() *events.SandboxReport {
	if c.report == nil && c.adopted != nil {
		return c.adopted.Sandbox
	}
	return c.report
}

// endTree ends what pid 1 does not take with it: everything under a profile
// without a PID namespace. It returns only when nothing is left.
func (c *child) endTree() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), c.s.cfg.Deadlines.KillProof)
		left, err := c.tree.end(ctx)
		cancel()
		if err == nil && left == 0 {
			return
		}
		c.log.Error("processes are left after SIGKILL", zap.Int("left", left), zap.Error(err))
	}
}

// awaitDrained waits until everything the child sent was taken: the exit is
// often seen before the last message.
func (c *child) awaitDrained() {
	t := time.NewTimer(c.s.cfg.Deadlines.Drain)
	defer t.Stop()
	select {
	case <-c.s.cfg.Credentials.Drained(c.spec.ID):
	case <-t.C:
		c.log.Warn("bus connection still open after the end, cutting it")
	}
}

func (c *child) evidence() evidence {
	e := evidence{id: c.spec.ID, stop: c.stop, refusal: c.refusal, supervisor: c.supervisorEnd(), outOfMemory: c.bounds.exceeded(c.log)}
	if limit := c.spec.Request.MaxMemoryBytes; limit != nil {
		e.maxMemory = *limit
	}
	report, err := c.dir.ReadReport()
	switch {
	case err != nil:
		e.reportErr = err
	case report.ID != c.spec.ID || report.Run != c.spec.Run:
		e.reportErr = fmt.Errorf("report.json is of %s run %d", report.ID, report.Run)
	default:
		e.report = &report
	}
	return e
}

// supervisorEnd says how hayward-child itself ended, with its last words.
func (c *child) supervisorEnd() string {
	how := "unknown exit"
	switch st := c.proc.state; {
	case !c.proc.known:
	case st.Signaled():
		how = st.Signal().String()
	default:
		how = fmt.Sprintf("exit %d", st.ExitStatus())
	}
	if words, err := c.dir.Output(supervisorLog, 512, 0, 512); err == nil && words.Text != "" {
		how += ": " + words.Text
	}
	return how
}
