package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/socket"
	"github.com/hayward-dev/hayward/internal/deadlines"
	"github.com/hayward-dev/hayward/internal/handoff"
)

const (
	// drainBound is how long output is read after everything that can be reached
	// is dead.
	drainBound = 2 * time.Second
	// resultBound is how long the fast copy of the report may take.
	resultBound = 250 * time.Millisecond
)

var (
	// defaultKillProof and defaultHeartbeat are for specs that say nothing.
	defaultKillProof = deadlines.Default().KillProof
	defaultHeartbeat = deadlines.Default().Heartbeat
)

// supervisor runs one subagent. Its run method is the owner of every goroutine
// it starts.
type supervisor struct {
	spec   events.ChildSpec
	files  *descriptors
	reaper *reaper
	box    *outbox
	live   *progress
	agent  *agent // nil for a plain command
	bus    *bus
	relay  *carrier // nil without one
	door   *door    // nil without one
	// stops has one slot: the first stop counts, later ones change nothing.
	stops chan events.Reason

	feed *feed // set before the connection to the bus is made

	ended events.Reason // why the runner was told to end; owned by run
}

func newSupervisor(cfg Config, spec events.ChildSpec, files *descriptors, sigchld <-chan os.Signal) *supervisor {
	s := &supervisor{
		spec:   spec,
		files:  files,
		reaper: newReaper(sigchld, cfg.slack()),
		box:    newOutbox(),
		live:   &progress{},
		stops:  make(chan events.Reason, 1),
	}
	s.agent = newAgent(spec, s.box)
	s.bus = newBus(spec, s.control)
	return s
}

// run runs the subagent to its end and returns the exit status.
func (s *supervisor) run() int {
	namespace, err := becomeReaper()
	if err != nil {
		s.files.refuse(s.spec, events.Errorf(events.CodeStartFailed, events.LayerSandbox, "start %s: %w", s.spec.ID, err))
		return ExitRefused
	}
	go s.reaper.run()
	defer s.reaper.close()

	rec := newRecorder(s.box, s.files.transcript, s.bus.items)
	rec.seq = s.spec.ItemsBefore
	if s.spec.Prompt != "" {
		s.box.add(events.Item{Kind: events.ItemPrompt, Text: s.spec.Prompt})
	}
	s.box.add(events.Item{Kind: events.ItemCommand, Argv: s.spec.Argv})
	// A transcript without an entry is what tells a coordinator that nothing of
	// this run was started, so the entry comes first.
	begun := rec.begin()
	go rec.run()

	var r *runner
	var refusal *events.Error
	defer s.closeWays()
	if begun != nil {
		refusal = storageError(s.spec.ID, begun)
	} else if refusal = s.openWays(); refusal == nil {
		r, refusal = startRunner(s.spec, s.reaper)
	}
	if refusal != nil {
		if err := rec.finish(events.Item{Kind: events.ItemNote, Text: refusal.Error()}); err != nil {
			refusal.WithDetail("transcript", err.Error())
		}
		s.files.refuse(s.spec, refusal)
		return ExitReported
	}
	s.files.send(handoff.Record{Step: handoff.StepRunner, Value: uint64(r.process.Pid)})
	s.files.closeStatus()

	report := s.supervise(r, rec, tree{namespace: namespace, group: r.process.Pid})
	if err := writeReport(s.files.report, report); err != nil {
		// The coordinator finds no report and says so; this is for its log.
		fmt.Fprintf(os.Stderr, "hayward-child: %v\n", err)
		return ExitRefused
	}
	s.bus.farewell(report, resultBound)
	return ExitReported
}

// openWays opens what the command reaches the coordinator through: the door, and the
// relay to the gateway, whose address it puts into the command and its environment.
func (s *supervisor) openWays() *events.Error {
	if path := s.spec.Door; path != "" {
		door, err := openDoor(path, socket.InDir(handoff.FDBus, socketName), s.spec.ID, s.spec.Token)
		if err != nil {
			return events.Errorf(events.CodeStartFailed, events.LayerSandbox, "start %s: %w", s.spec.ID, err)
		}
		s.door = door
	}
	if !s.spec.Relay {
		return nil
	}
	relay, err := listenRelay(s.bus.askGateway)
	if err != nil {
		return events.Errorf(events.CodeStartFailed, events.LayerSandbox, "start %s: %w", s.spec.ID, err)
	}
	s.relay = relay
	s.spec.Argv, s.spec.Env = relay.substitute(s.spec.Argv), relay.substitute(s.spec.Env)
	s.bus.answers, s.bus.lost = relay.answer, relay.lost
	return nil
}

func (s *supervisor) closeWays() {
	if s.relay != nil {
		s.relay.close()
	}
	if s.door != nil {
		s.door.close()
	}
}

// supervise watches the runner to its end and returns the report.
func (s *supervisor) supervise(r *runner, rec *recorder, t tree) events.Report {
	pumps := [streams]*pump{
		stdout: newPump(stdout, r.stdout, s.files.stdout, s.box, s.live),
		stderr: newPump(stderr, r.stderr, s.files.stderr, s.box, s.live),
	}
	pumps[stdout].agent = s.agent
	for _, p := range pumps {
		go p.run()
	}
	s.feed = newFeed(s.spec, r.stdin, s.box)
	stopTalking := s.talk(r.process.Pid)

	gone := s.watch(r, t)

	s.feed.close()
	exit := s.bury(r, t, gone)
	bound := time.Now().Add(drainBound)
	var lost error
	for _, p := range pumps {
		if err := p.drain(bound); err != nil {
			s.box.note(fmt.Sprintf("read %s to its end: %v", p.stream, err))
		}
		if p.cut {
			s.box.note(fmt.Sprintf("%s was still held open %v after the end and was left", p.stream, drainBound))
		}
		lost = errors.Join(lost, p.err)
	}
	stopTalking()
	report := newReport(s.spec, nil)
	report.Exit, report.Ended = exit, s.ended
	s.agent.conclude(&report)
	lost = errors.Join(lost, rec.finish(events.Item{Kind: events.ItemExit, Exit: exit}), s.sync(pumps))

	if lost != nil {
		report.Error = storageError(s.spec.ID, lost)
	}
	last := s.progress()
	report.StdoutBytes, report.StderrBytes = last.StdoutBytes, last.StderrBytes
	report.LastLine, report.StderrTail = last.LastLine, s.live.stderrTail()
	return report
}

// progress is the latest of the run.
func (s *supervisor) progress() events.Progress {
	p := s.live.snapshot()
	s.agent.show(&p)
	return p
}

// watch waits for the runner's end, and brings it about by the ladder when it is
// told to, the time is up or it was silent for too long: stdin closed and SIGTERM,
// then SIGKILL after the grace. An agent gets SIGINT first, at which it says how it
// ended and what it used, and SIGTERM after half of the grace. It returns false if
// not even that ended the runner.
func (s *supervisor) watch(r *runner, t tree) (gone bool) {
	killProof := defaultKillProof
	if s.spec.KillProofMS > 0 {
		killProof = time.Duration(s.spec.KillProofMS) * time.Millisecond
	}
	var deadline, firmer, grace, proof, silence <-chan time.Time
	idle := time.Duration(s.spec.IdleTimeoutMS) * time.Millisecond
	began := time.Now()
	if idle > 0 {
		silence = time.After(idle)
	}
	if ms := s.spec.MaxRuntimeMS; ms > 0 {
		timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer timer.Stop()
		deadline = timer.C
	}
	begin := func(reason events.Reason) {
		deadline, silence = nil, nil
		if s.ended != "" {
			return
		}
		s.ended = reason
		s.box.soon("told to end: " + string(reason))
		s.feed.shut()
		patience := time.Duration(s.spec.GraceMS) * time.Millisecond
		if s.agent != nil {
			s.check("interrupt the agent", t.interrupt())
			firmer = time.After(patience / 2)
		} else {
			s.check("terminate the command", t.terminate())
		}
		grace = time.After(patience)
	}
	for {
		// An end beats a stop that races with it.
		select {
		case <-r.exited:
			return true
		default:
		}
		select {
		case <-r.exited:
		case reason := <-s.stops:
			begin(reason)
		case <-deadline:
			begin(events.ReasonDeadline)
		case <-silence:
			if left := idle - s.live.silence(began); left > 0 {
				silence = time.After(left)
				continue
			}
			begin(events.ReasonIdle)
		case <-firmer:
			s.check("terminate the agent", t.terminate())
		case <-grace:
			grace = nil
			s.box.note(fmt.Sprintf("killed: it did not end within %d ms", s.spec.GraceMS))
			s.check("kill the command", t.kill())
			proof = time.After(killProof)
		case <-proof: // it sleeps in the kernel, and is reported without its exit
			s.box.note("the command did not end " + killProof.String() + " after it was killed")
			return false
		}
	}
}

// bury kills what the runner left behind and reaps the runner.
func (s *supervisor) bury(r *runner, t tree, gone bool) *events.Exit {
	whole := t.namespace && gone
	if !whole {
		// The group first: the runner, not yet reaped, keeps its number taken.
		s.check("kill what the command left", t.kill())
	}
	exit := &events.Exit{}
	if gone {
		state, err := r.wait()
		if err != nil {
			s.check("reap the command", err)
		} else {
			exit = exitOf(state)
		}
	}
	s.reaper.forget()
	// Every process of the namespace descends from us, so without a child there is
	// none. To kill all of them the kernel goes through those of the whole machine.
	if whole && !childless() {
		s.check("kill what the command left", t.kill())
	}
	if !t.namespace {
		ctx, cancel := context.WithTimeout(context.Background(), drainBound)
		defer cancel()
		s.check("kill what the command left", sweep(ctx, os.Getpid()))
	}
	return exit
}

// check puts a failure of supervision into the transcript. The coordinator ends
// the whole tree from outside in any case, so the run is reported as it was.
func (s *supervisor) check(what string, err error) {
	if err != nil {
		s.box.note(fmt.Sprintf("%s: %v", what, err))
	}
}

// sync makes what was kept as durable as the report will be.
func (s *supervisor) sync(pumps [streams]*pump) error {
	errs := make([]error, streams)
	var wg sync.WaitGroup
	for i, p := range pumps {
		if p.written.Load() > 0 {
			wg.Go(func() { errs[i] = syncFile(p.file) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// talk connects to the bus and tells it of the runner: started once, then
// heartbeats. The returned function ends that and waits for it.
func (s *supervisor) talk(pid int) (stop func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	// Nothing waits for it, and the end of the process ends it.
	s.bus.dial()
	wg.Go(func() {
		interval := defaultHeartbeat
		if s.spec.HeartbeatMS > 0 {
			interval = time.Duration(s.spec.HeartbeatMS) * time.Millisecond
		}
		tick := time.NewTicker(interval)
		defer tick.Stop()
		started := events.Started{ID: s.spec.ID, Run: s.spec.Run, At: time.Now().UTC(), RunnerPID: pid}
		told := false
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			case <-s.bus.connected:
			}
			// Without a connection both are told after the next one.
			told = told || s.bus.report(events.ChildStarted, started) == nil
			beat := events.Heartbeat{ID: s.spec.ID, Run: s.spec.Run, Progress: s.progress()}
			beat.Progress.Processes = countProcesses()
			_ = s.bus.report(events.ChildHeartbeat, beat)
		}
	})
	return func() {
		close(quit)
		wg.Wait()
	}
}

// control obeys one message of the coordinator. It runs on the bus client's
// goroutine and does not block: it acts first and answers then.
func (s *supervisor) control(data []byte, reply func(events.ControlReply)) {
	c, err := decodeControl(data)
	if err != nil {
		reply(events.ControlReply{})
		return
	}
	switch c.Kind {
	case events.ControlPing:
		reply(events.ControlReply{OK: true})
	case events.ControlStop:
		if c.Reason == "" {
			c.Reason = events.ReasonUser
		}
		select {
		case s.stops <- c.Reason:
		default:
		}
		reply(events.ControlReply{OK: true})
	case events.ControlStdin:
		s.feed.put(c, reply)
	default:
		reply(events.ControlReply{})
	}
}
