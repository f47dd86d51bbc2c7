package coordinator

import (
	"time"

	"github.com/hayward-dev/hayward/events"
)

// proceed takes the next step towards a running child, if the record that the
// step needs is durable: the spawn before a child is asked for, the child's
// identity before it is let go.
func (s *State) proceed(e *subagent) {
	if e.rec.State != events.StatePending || e.stop != nil || e.durable == nil || s.finished {
		return
	}
	switch {
	case !e.asked:
		e.asked = true
		e.startTimer = s.timers.arm(&timer{at: s.now.Add(s.startDeadline(e)), kind: timerStart, e: e})
		s.emit(StartChild{Spec: e.spec})
	case !e.released && e.durable.Process != nil:
		e.released = true
		s.emit(ReleaseChild{ID: e.id})
	}
}

// startDeadline is how long the start of e may take.
func (s *State) startDeadline(e *subagent) time.Duration {
	if e.rec.Isolation == events.IsolationWorktree {
		return s.cfg.StartDeadline + s.cfg.WorktreeDeadline
	}
	return s.cfg.StartDeadline
}

// child returns the subagent whose current run is meant, or nil, which counts as
// a late report.
func (s *State) child(id string, run int) *subagent {
	e := s.byID[id]
	if e == nil || e.rec.Run != run || !e.rec.Live() || !e.asked || s.finished {
		s.late++
		return nil
	}
	return e
}

// forked notes the identity of a child that blocks on its start pipe.
func (s *State) forked(m Forked) {
	e := s.child(m.ID, m.Run)
	if e == nil {
		return
	}
	if e.rec.State != events.StatePending || e.rec.Process != nil || e.stop != nil {
		s.late++
		return
	}
	r := s.change(e)
	process := m.Fork.Process
	r.Process, r.TokenHash, r.TempDir = &process, m.Fork.TokenHash, m.Fork.TempDir
	r.Worktree = m.Fork.Worktree
	rebound(r, func(b *events.Boundaries) {
		if m.Fork.Cwd != "" {
			b.Cwd.Path = m.Fork.Cwd
		}
	})
}

// started makes a released child active. One that was told to stop stays as it
// is until its end.
func (s *State) started(m Started) {
	e := s.child(m.ID, m.Run)
	if e == nil {
		return
	}
	if !e.released || e.stop != nil || e.rec.State != events.StatePending {
		s.late++
		return
	}
	s.timers.disarm(e.startTimer)
	at, report := s.stamp(), m.Report
	r := s.change(e)
	r.StartedAt, r.Sandbox = &at, &report
	rebound(r, func(b *events.Boundaries) { b.Sandbox.Applied = events.AppliedSandbox(&report) })
	s.move(e, events.StateActive, events.StatusRunning, CauseStarted)
	s.armRun(e)
}

// armRun sets the backstop of the run's deadline, which the child keeps itself.
func (s *State) armRun(e *subagent) {
	from := e.rec.StartedAt
	if from == nil {
		from = e.rec.PendingAt
	}
	if e.rec.MaxRuntimeMS <= 0 || from == nil {
		return
	}
	ran := s.now.Sub(*from)
	left := millis(e.rec.MaxRuntimeMS) + s.cfg.Grace + runMargin - ran
	e.runTimer = s.timers.arm(&timer{at: s.now.Add(left), kind: timerRun, e: e})
}

// ended takes the last word on a run.
func (s *State) ended(m Ended) {
	e := s.child(m.ID, m.Run)
	if e == nil {
		return
	}
	if m.End.NotRun && e.rec.State == events.StatePending && e.stop == nil {
		s.startAgain(e)
		return
	}
	s.end(e, m.End, CauseEnded)
}

// startAgain goes back to before the fork of a child that an earlier coordinator
// did not let go. The next child is asked for once that is durable.
func (s *State) startAgain(e *subagent) {
	r := s.change(e)
	r.Process, r.TokenHash, r.TempDir, r.Worktree = nil, "", "", nil
	e.asked, e.released = false, false
	s.disarm(e)
}

// end completes e. Completed is never left.
func (s *State) end(e *subagent, end events.End, why Cause) {
	if !legal(Transition{e.rec.State, events.StateCompleted, why}) {
		s.late++
		return
	}
	end = s.judged(e, end)
	if e.rec.State == events.StateQueued {
		s.unqueue(e)
	}
	at := s.stamp()
	if !end.At.IsZero() && end.At.Before(at) {
		at = end.At.UTC().Round(0)
	}
	s.ends++
	r := s.change(e)
	r.EndedAt, r.EndOrder = &at, s.ends
	r.Reason, r.Error, r.Exit = end.Reason, end.Error, end.Exit
	r.Agent = end.Agent
	if end.Agent != nil && end.Agent.Model != "" {
		rebound(r, func(b *events.Boundaries) { b.Identity.Model = end.Agent.Model })
	}
	r.Output, r.StderrTail, r.SandboxHint, r.Quarantined = end.Output, end.StderrTail, end.SandboxHint, end.Quarantined
	if end.Worktree != nil {
		r.Worktree, r.Changes = end.Worktree, end.Changes
	}
	if end.Status != events.StatusCancelled {
		r.Actor, r.ExplicitKill = "", false
	}
	s.disarm(e)
	s.move(e, events.StateCompleted, end.Status, why)
	s.endNested(e) // what was told of its exit is gone by now
	s.addUp(e, end.Usage)
}

func (s *State) disarm(e *subagent) {
	s.timers.disarm(e.startTimer)
	s.timers.disarm(e.runTimer)
	s.timers.disarm(e.stopTimer)
	e.startTimer, e.runTimer, e.stopTimer = nil, nil, nil
}

// judged is end in the light of what the child was told. A child that finished by
// itself before the stop reached it keeps its own end; one that vanished after
// it was told to stop was ended by that.
func (s *State) judged(e *subagent, end events.End) events.End {
	if !end.Status.Terminal() {
		end.Status, end.Reason = events.StatusFailed, events.ReasonCrash
	}
	if e.stop == nil || end.Status == events.StatusCompleted {
		return end
	}
	switch end.Reason {
	case e.stop.Reason, "":
	case events.ReasonCrash, events.ReasonStart:
		end.Error = nil
	default:
		return end
	}
	end.Status, end.Reason = events.StatusCancelled, e.stop.Reason
	switch e.stop.Reason {
	case events.ReasonStart:
		end.Status = events.StatusFailed
		switch unwritten := e.rec.Process != nil && !e.released; {
		case end.Error != nil:
		case unwritten && s.storeError != nil:
			end.Error = notDurable(e, s.storeError)
		default:
			end.Error = events.Errorf(events.CodeStartTimeout, events.LayerCoordinator, "subagent %s did not start within %v", e.id, s.startDeadline(e))
		}
	case events.ReasonDeadline:
		end.Status = events.StatusFailed
	}
	return end
}

// stopOrder says why and how a subagent is to be stopped.
type stopOrder struct {
	reason events.Reason
	actor  string
	// explicit tells that it was named by its id.
	explicit bool
	// kill skips the graceful steps; so does a second order of a caller.
	kill bool
	// caller tells that somebody asked, rather than a timer or a shutdown.
	caller bool
}

// stop ends e. What was not asked for never starts; a child is told, and told to
// end at once if it was told before. The first reason and actor stand. The order
// is durable, so a restart does not forget it.
func (s *State) stop(e *subagent, o stopOrder) {
	if !e.rec.Live() {
		return
	}
	if o.explicit && !e.rec.ExplicitKill {
		s.change(e).ExplicitKill = true
	}
	if e.rec.Reason == "" {
		r := s.change(e)
		r.Reason, r.Actor = o.reason, o.actor
	}
	if !e.asked {
		s.end(e, events.End{Status: events.StatusCancelled, Reason: e.rec.Reason}, CauseWithdrawn)
		return
	}
	kill := o.kill || (o.caller && e.stop != nil && !e.stopResumed)
	if o.caller {
		e.stopResumed = false
	}
	if e.stop != nil && (e.stop.Kill || !kill) {
		return
	}
	reason := o.reason
	if e.stop != nil {
		reason = e.stop.Reason
	}
	e.stop = &events.Stop{Reason: reason, Kill: kill}
	s.timers.disarm(e.startTimer)
	s.timers.disarm(e.runTimer)
	s.armStop(e)
	s.emit(StopChild{ID: e.id, Stop: *e.stop})
}

// stopAgain escalates a stop that had no effect, and repeats a kill.
func (s *State) stopAgain(e *subagent) {
	e.stop = &events.Stop{Reason: e.stop.Reason, Kill: true}
	s.armStop(e)
	s.emit(StopChild{ID: e.id, Stop: *e.stop})
}

func (s *State) armStop(e *subagent) {
	after := s.cfg.KillProof
	if !e.stop.Kill {
		after += s.cfg.Grace
	}
	s.timers.disarm(e.stopTimer)
	e.stopTimer = s.timers.arm(&timer{at: s.now.Add(after), kind: timerStop, e: e})
}
