package coordinator

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// replier gives answers to their responders, one after the other. Before that it
// adds what is not in the records: output of what has ended, progress of what
// runs, both from [Files] and none of it on the loop.
type replier struct {
	files Files
	in    *queue[Reply]
	// answered is called after each answer.
	answered func()
	log      *zap.Logger
}

func newReplier(files Files, answered func(), log *zap.Logger) *replier {
	return &replier{files: files, in: newQueue[Reply](0), answered: answered, log: log}
}

// run answers until in is closed and empty: no accepted request goes without.
func (r *replier) run() {
	for {
		m, ok := r.in.pop()
		switch {
		case ok:
			r.answer(m)
		case r.in.drained():
			return
		default:
			<-r.in.wake
		}
	}
}

// answer completes and delivers one answer. A panic of a port or a responder
// costs this answer, not the coordinator.
func (r *replier) answer(m Reply) {
	defer r.answered()
	a := r.completed(m.Answer)
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("a responder panicked", zap.Any("panic", p), zap.Stack("stack"))
		}
	}()
	m.To.Answer(a)
}

func (r *replier) completed(a Answer) (done Answer) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("completing a reply panicked", zap.Any("panic", p), zap.Stack("stack"))
			done = Answer{Error: events.Errorf(events.CodeInternal, events.LayerCoordinator, "complete the reply: %v", p)}
		}
	}()
	d := draftOf(a.Reply)
	if d == nil {
		return a
	}
	warnings, err := r.complete(d)
	if err != nil {
		return Answer{Error: err}
	}
	a.Reply = d.reply(warnings)
	return a
}

// draft is a reply that holds snapshots, so that they can be completed.
type draft struct {
	snapshots []*events.Snapshot
	// output tells whether output belongs into the reply.
	output bool
	// reply returns the reply with its snapshots as they are now.
	reply func(warnings []string) any
}

// draftOf returns nil for a reply without snapshots.
func draftOf(reply any) *draft {
	switch v := reply.(type) {
	case events.SpawnReply:
		return &draft{[]*events.Snapshot{&v.Snapshot}, true, func(w []string) any {
			v.Warnings = append(v.Warnings, w...)
			return v
		}}
	case events.QueryReply:
		return &draft{pointers(v.Snapshots, func(s *events.Snapshot) *events.Snapshot { return s }), true, func(w []string) any {
			v.Warnings = append(v.Warnings, w...)
			return v
		}}
	case events.ListActiveReply:
		return &draft{pointers(v.Subagents, func(s *events.Snapshot) *events.Snapshot { return s }), false, func(w []string) any {
			v.Warnings = append(v.Warnings, w...)
			return v
		}}
	case events.CompletionsReply:
		return &draft{pointers(v.Completions, func(c *events.Completion) *events.Snapshot { return &c.Snapshot }), true, func(w []string) any {
			v.Warnings = append(v.Warnings, w...)
			return v
		}}
	}
	return nil
}

func pointers[T any](list []T, of func(*T) *events.Snapshot) []*events.Snapshot {
	out := make([]*events.Snapshot, len(list))
	for i := range list {
		out[i] = of(&list[i])
	}
	return out
}

// complete adds output and progress and makes the reply fit into a message: the
// outputs share what room there is, and if even none of them fits, what is
// bulky beside them goes, with a warning.
func (r *replier) complete(d *draft) (warnings []string, err *events.Error) {
	ended := 0
	for _, s := range d.snapshots {
		if s.Status.Terminal() {
			ended++
		} else {
			s.Progress = r.files.Progress(s.SubagentID)
		}
	}
	share := min(events.MaxReplyOutput, room/max(ended, 1))
	if d.output {
		warnings = r.fill(d, share)
	}
	if fits(d, true) {
		return warnings, nil
	}
	for d.output && share > 0 {
		if share /= 4; share < 256 {
			share = 0
		}
		warnings = r.fill(d, share)
		if fits(d, false) {
			return warnings, nil
		}
	}
	for _, s := range d.snapshots {
		strip(s)
	}
	if !fits(d, false) {
		return nil, events.Errorf(events.CodeTooLarge, events.LayerCoordinator, "the reply with %d snapshots does not fit into %d bytes",
			len(d.snapshots), events.MaxMessage).WithRemedy("ask for fewer at once")
	}
	return append(warnings, "labels, sandbox details and error details were left out to fit into a message"), nil
}

// fill gives each ended subagent at most share bytes of output.
func (r *replier) fill(d *draft, share int) (warnings []string) {
	for _, s := range d.snapshots {
		if !s.Status.Terminal() || (!s.Truncated && len(s.Text) <= share) {
			continue
		}
		if share == 0 {
			s.Text, s.Encoding, s.Truncated = "", "", true
			continue
		}
		out, err := r.files.Output(s.SubagentID, share)
		if err != nil {
			// What the record holds is shown instead.
			warnings = append(warnings, fmt.Sprintf("output of %s: %v", s.SubagentID, err))
			continue
		}
		s.Output = out
	}
	return warnings
}

// strip takes from s what is bulky and not needed to act on it.
func strip(s *events.Snapshot) {
	s.Labels, s.StderrTail = nil, ""
	if s.Sandbox != nil {
		short := *s.Sandbox
		short.Layers, short.Writable, short.Gaps = nil, nil, nil
		s.Sandbox = &short
	}
	if s.Agent != nil {
		short := *s.Agent
		short.Denials, short.Warnings, short.Models, short.Structured = nil, nil, nil, nil
		s.Agent = &short
	}
	if s.Error != nil {
		short := *s.Error
		short.Details = nil
		s.Error = &short
	}
}

// room is what a reply may take, less what surrounds its snapshots.
const room = events.MaxMessage - 32<<10

// fits reports whether the snapshots fit into a message. A cheap bound decides
// most cases; rough asks for it first.
func fits(d *draft, rough bool) bool {
	if rough {
		total := 0
		for _, s := range d.snapshots {
			total += bound(s)
		}
		if total <= room {
			return true
		}
	}
	b, err := events.MarshalRecord(d.snapshots)
	return err == nil && len(b) <= room
}

// bound is the most that s takes as JSON: escaping makes at most six bytes of one.
func bound(s *events.Snapshot) int {
	n := len(s.Description) + len(s.CommandLine) + len(s.Cwd) + len(s.Workspace) + len(s.Actor) +
		len(s.ParentSessionID) + len(s.ParentPromptID) + len(s.Text) + len(s.Path) + len(s.StderrTail)
	for k, v := range s.Labels {
		n += len(k) + len(v) + 8
	}
	if e := s.Error; e != nil {
		n += len(e.Message) + len(e.Remedy)
		for k, v := range e.Details {
			n += len(k) + len(v) + 8
		}
	}
	if b := s.Sandbox; b != nil {
		for _, list := range [][]string{b.Writable, b.Gaps} {
			for _, v := range list {
				n += len(v) + 4
			}
		}
		for k, l := range b.Layers {
			n += len(k) + len(l.Detail) + 64
		}
	}
	if a := s.Agent; a != nil {
		n += len(a.Version) + len(a.SessionID) + len(a.Model) + len(a.Structured)
		if a.Cost != nil {
			n += len(a.Cost.Unpriced) * (events.MaxWord + 4)
		}
		for _, d := range a.Denials {
			n += len(d.Tool) + len(d.ToolID) + len(d.Input) + 64
		}
		for _, m := range a.Models {
			n += len(m.Model) + 192
		}
		for _, w := range a.Warnings {
			n += len(w) + 4
		}
	}
	if p := s.Progress; p != nil {
		n += len(p.LastLine)
		if p.Agent != nil {
			n += len(p.Agent.LastTool)
		}
	}
	if p := s.Process; p != nil {
		n += len(p.CgroupPath)
	}
	const fixed = 4 << 10 // every member's name, numbers, times, ids
	return 6*n + fixed
}
