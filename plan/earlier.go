package plan

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/hayward-dev/hayward/events"
)

// Earlier is what earlier executions of a run left of one subagent. The zero
// value is nothing.
type Earlier struct {
	// Attempt is the number of the attempt to make, to join or that completed;
	// those before it have ended otherwise.
	Attempt int
	// Completed is the end of the attempt, if it completed.
	Completed *Result
	// Live is true when the coordinator has the attempt and it has not ended.
	Live bool
	// Last is the end of the last attempt that ended.
	Last *Result
	// Owed are ends whose on_done has not been run.
	Owed []Result

	// snapshot is of the attempt if it is live.
	snapshot events.Snapshot
}

// subagentID is the id of an attempt: a function of the run, the name and the
// attempt's number, so that whoever continues the run asks for the same
// subagent, and the coordinator takes it once. It has the form and the time of
// the run's own id.
func subagentID(run, name string, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "hayward run %s subagent %s attempt %d", run, name, attempt))
	id := uuid.UUID(sum[:16])
	if r, err := uuid.Parse(run); err == nil {
		copy(id[:6], r[:6])
	}
	id[6] = id[6]&0x0f | 0x70 // version 7
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	return id.String()
}

// Survey is what is left of a run that no process executes, or how far one is.
type Survey struct {
	// Found has every subagent of the run, by name.
	Found map[string]Earlier
	// Fresh are ends that the coordinator told and nobody kept.
	Fresh []Result
}

// complete reports whether nothing is left to do.
func (s Survey) complete() bool {
	for _, e := range s.Found {
		if e.Completed == nil || len(e.Owed) > 0 {
			return false
		}
	}
	return true
}

// survey finds what is left of the subagents of one run.
type survey struct {
	run    string
	runner Runner
	// ends are those that were kept, by name and attempt.
	ends  map[string]map[int]Result
	found map[string]Earlier
	fresh []Result
	// gone are completed attempts that the coordinator does not know any more.
	gone map[string]bool
}

// all asks for attempts, the first ones first: an attempt is made only when the
// one before it has ended, so the first that is not known is the one to make.
func (s *survey) all(ctx context.Context, p *Plan) error {
	open := make([]*Subagent, len(p.Subagents))
	copy(open, p.Subagents)
	for _, sub := range open {
		s.found[sub.Name] = s.begin(sub)
	}
	for len(open) > 0 {
		known, err := s.ask(ctx, open)
		if err != nil {
			return fmt.Errorf("find out what is left of run %s: %w", s.run, err)
		}
		var more []*Subagent
		for _, sub := range open {
			if !s.settle(sub, known) {
				more = append(more, sub)
			}
		}
		open = more
	}
	s.restore(p)
	return nil
}

// begin starts with the last attempt whose end was kept.
func (s *survey) begin(sub *Subagent) Earlier {
	e := Earlier{Attempt: 1}
	attempts := make([]int, 0, len(s.ends[sub.Name]))
	for a := range s.ends[sub.Name] {
		attempts = append(attempts, a)
	}
	slices.Sort(attempts)
	for _, a := range attempts {
		res := s.ends[sub.Name][a]
		e.Attempt = max(e.Attempt, a)
		e.ended(sub, res)
	}
	return e
}

// ended takes note of an end.
func (e *Earlier) ended(sub *Subagent, res Result) {
	e.Last = &res
	if len(sub.OnDone) > 0 && res.OnDone == nil {
		e.Owed = append(e.Owed, res)
	}
}

// ask reads what the coordinator has of the current attempts.
func (s *survey) ask(ctx context.Context, open []*Subagent) (map[string]events.Snapshot, error) {
	known := make(map[string]events.Snapshot, len(open))
	for page := range slices.Chunk(open, events.MaxQueryIDs) {
		query := events.Query{ParentSessionID: s.run}
		for _, sub := range page {
			query.IDs = append(query.IDs, subagentID(s.run, sub.Name, s.found[sub.Name].Attempt))
		}
		reply, err := patiently(ctx, func(ctx context.Context) (events.QueryReply, error) { return s.runner.Query(ctx, query) })
		if err != nil {
			return nil, err
		}
		for _, snapshot := range reply.Snapshots {
			known[snapshot.SubagentID] = snapshot
		}
	}
	return known, nil
}

// settle judges the current attempt of sub; false when it has ended without
// having completed, and the next one is to be asked for.
func (s *survey) settle(sub *Subagent, known map[string]events.Snapshot) bool {
	e := s.found[sub.Name]
	defer func() { s.found[sub.Name] = e }()
	id := subagentID(s.run, sub.Name, e.Attempt)
	snapshot, has := known[id]
	kept, wasKept := s.ends[sub.Name][e.Attempt]
	switch {
	case has && !snapshot.Status.Terminal():
		e.Live, e.snapshot = true, snapshot
		return true
	case has && !wasKept:
		kept = Result{Name: sub.Name, Entry: sub.Entry, Line: sub.Line, Needs: sub.Needs, Attempt: e.Attempt}
		kept.fill(id, outcome{snapshot: &snapshot})
		e.ended(sub, kept)
		s.fresh = append(s.fresh, kept)
	case !has && !wasKept:
		return true
	}
	if kept.Status == StateCompleted {
		e.Completed = &kept
		s.gone[sub.Name] = !has
		return true
	}
	e.Attempt++
	return false
}

// restore takes back what completed and is needed again as an input, where the
// coordinator has forgotten it, and so on to what that needs.
func (s *survey) restore(p *Plan) {
	byName := make(map[string]*Subagent, len(p.Subagents))
	var work []*Subagent
	for _, sub := range p.Subagents {
		byName[sub.Name] = sub
		if e := s.found[sub.Name]; e.Completed == nil && !e.Live {
			work = append(work, sub)
		}
	}
	for len(work) > 0 {
		sub := work[len(work)-1]
		work = work[:len(work)-1]
		for _, need := range sub.Needs {
			if !s.gone[need] {
				continue
			}
			s.gone[need] = false
			e := s.found[need]
			// The same attempt: its id is free again.
			e.Completed, e.Owed = nil, nil
			s.found[need] = e
			work = append(work, byName[need])
		}
	}
}

// patiently makes a request again until there is an answer.
func patiently[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	again := newRetry()
	for {
		attempt, cancel := context.WithTimeout(ctx, replySlack)
		reply, err := request(attempt)
		cancel()
		if err == nil || classify(err) == refused || !again.wait(ctx) {
			return reply, err
		}
	}
}
