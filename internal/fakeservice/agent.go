package fakeservice

import (
	"fmt"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// ended needs mu.
func (a *Agent) ended() bool { return a.snap.State == events.StateCompleted }

// snapshot needs mu.
func (a *Agent) snapshot() events.Snapshot {
	s := a.snap
	s.Output.Bytes = int64(a.logs["stdout"].Len())
	if a.ended() {
		s.Output.Text = a.logs["stdout"].String()
		if n := len(s.Output.Text); n > events.MaxReplyOutput {
			s.Output.Text, s.Output.Truncated = s.Output.Text[n-events.MaxReplyOutput:], true
		}
		s.StderrTail = a.logs["stderr"].String()
	}
	return s
}

// ID is the subagent's id.
func (a *Agent) ID() string { return a.Spawn.ID }

// Snapshot is the subagent now.
func (a *Agent) Snapshot() events.Snapshot {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	return a.snapshot()
}

// set changes the subagent and tells.
func (a *Agent) set(f func(*events.Snapshot)) {
	a.c.mu.Lock()
	f(&a.snap)
	a.c.change()
	a.c.mu.Unlock()
	a.announce()
}

func (a *Agent) announce() {
	s := a.Snapshot()
	a.c.s.Publish(events.FeedEvent{
		SubagentID: s.SubagentID, Run: s.Run, At: time.Now().UTC(), State: s.State, Status: s.Status,
		Reason: s.Reason, Session: s.ParentSessionID, Prompt: s.ParentPromptID,
	})
}

// Activate makes it run.
func (a *Agent) Activate() {
	a.set(func(s *events.Snapshot) {
		now := time.Now().UTC()
		s.State, s.Status, s.StartedAt = events.StateActive, events.StatusRunning, &now
		s.Sandbox = &events.SandboxReport{Requested: "workspace", Profile: "workspace", Active: true}
	})
}

// Write adds to "stdout", "stderr" or "transcript".
func (a *Agent) Write(stream, text string) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.logs[stream].WriteString(text)
	a.c.change()
}

// Exit ends it with an exit code.
func (a *Agent) Exit(code int) {
	a.End(func(s *events.Snapshot) {
		s.ExitCode, s.Exit = &code, &events.Exit{Code: &code}
		s.Status = events.StatusCompleted
		if code != 0 {
			s.Status, s.Reason = events.StatusFailed, events.ReasonExit
		}
	})
}

// End ends it; f sets how.
func (a *Agent) End(f func(*events.Snapshot)) {
	a.set(func(s *events.Snapshot) {
		now := time.Now().UTC()
		s.State, s.EndedAt = events.StateCompleted, &now
		f(s)
		success := s.Status == events.StatusCompleted
		s.Success = &success
	})
}

// Cancelled ends it as a cancel does.
func (a *Agent) Cancelled(signal string) {
	a.End(func(s *events.Snapshot) {
		s.Status, s.Reason, s.ExplicitKill = events.StatusCancelled, events.ReasonUser, true
		s.Signal, s.Exit = signal, &events.Exit{Signal: signal}
	})
}

// Stop waits for the nth cancel of it, counted from 1, and returns it; ok is
// false when the service ends before.
func (a *Agent) Stop(n int) (stop events.Cancel, ok bool) {
	ok = a.c.await(0, func() bool { return len(a.stops) >= n })
	if ok {
		stop = a.stops[n-1]
	}
	return stop, ok
}

// ReadStdin waits for the end of what the client sends and returns it.
func (a *Agent) ReadStdin() string {
	a.c.await(0, func() bool { return a.eof })
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	return a.stdin.String()
}

// AwaitStdin waits until the client has sent at least n bytes.
func (a *Agent) AwaitStdin(n int) {
	a.c.await(0, func() bool { return a.stdin.Len() >= n })
}

// CloseStdin makes it read no more.
func (a *Agent) CloseStdin() {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.closed = true
	a.c.change()
}

func (c *Coordinator) writeStdin(r *Request, q events.StdinRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.find(q.ID, q.ParentSessionID)
	switch {
	case a == nil:
		r.Refuse(unknown(q.ID))
		return
	case a.snap.State != events.StateActive:
		r.Refuse(events.Errorf(events.CodeNotRunning, events.LayerCoordinator, "stdin: %s does not run", q.ID))
		return
	case a.closed:
		r.Reply(events.ControlReply{OK: true, Offset: int64(a.stdin.Len()), Closed: true})
		return
	case q.Offset > int64(a.stdin.Len()):
		r.Refuse(events.Errorf(events.CodeInvalidRequest, events.LayerGate, "stdin: offset %d is behind %d", q.Offset, a.stdin.Len()))
		return
	}
	if end := q.Offset + int64(len(q.Data)); end > int64(a.stdin.Len()) {
		a.stdin.Write(q.Data[int64(a.stdin.Len())-q.Offset:])
	}
	a.eof = a.eof || q.EOF
	c.change()
	r.Reply(events.ControlReply{OK: true, Offset: int64(a.stdin.Len())})
}

func (c *Coordinator) readLog(r *Request, q events.FileRequest) {
	if q.Stream == "" {
		q.Stream = "stdout"
	}
	c.readFile(r, q, q.Stream)
}

func (c *Coordinator) readTranscript(r *Request, q events.FileRequest) {
	c.readFile(r, q, "transcript")
}

func (c *Coordinator) readFile(r *Request, q events.FileRequest, stream string) {
	c.mu.Lock()
	a := c.find(q.ID, q.ParentSessionID)
	c.mu.Unlock()
	if a == nil {
		r.Refuse(unknown(q.ID))
		return
	}
	log := a.logs[stream]
	if q.Follow {
		wait := events.DefaultFollowMS * time.Millisecond
		c.await(wait, func() bool { return a.ended() || int64(log.Len()) > q.Offset })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	data := log.Bytes()
	if q.Tail != nil {
		q.Offset = tail(data, *q.Tail)
	}
	q.Offset = min(q.Offset, int64(len(data)))
	end := min(len(data), int(q.Offset)+events.MaxChunk)
	if q.Max > 0 {
		end = min(end, int(q.Offset)+q.Max)
	}
	part := append([]byte{}, data[q.Offset:end]...)
	r.Reply(events.FileReply{
		SubagentID: a.Spawn.ID, Data: part, Offset: q.Offset, Next: int64(end),
		Size: int64(len(data)), EOF: a.ended() && end == len(data),
	})
}

func tail(data []byte, lines int) int64 {
	i := len(data)
	if i > 0 && data[i-1] == '\n' {
		i--
	}
	for ; i > 0; i-- {
		if data[i-1] == '\n' {
			if lines--; lines == 0 {
				break
			}
		}
	}
	return int64(i)
}

func (c *Coordinator) inspect(r *Request, q events.InspectRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.find(q.ID, q.ParentSessionID)
	if a == nil {
		r.Refuse(unknown(q.ID))
		return
	}
	spec := events.Spec{Schema: 1, ID: a.Spawn.ID, Run: 1, Request: a.Spawn}
	r.Reply(events.InspectReply{
		Snapshot: a.snapshot(), Spec: &spec, Dir: "/state/subagents/" + a.Spawn.ID,
		Record: events.Record{Schema: events.RecordSchema, ID: a.Spawn.ID, Run: 1, Seq: 3, State: a.snap.State, Status: a.snap.Status},
	})
}

func unknown(ref string) *events.Error {
	return events.Errorf(events.CodeUnknownID, events.LayerCoordinator, "no subagent %s", fmt.Sprintf("%q", ref))
}
