package coordinator

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// lease hides unread ends from other readers until it is acknowledged or
// expires; expired, they are unread as before.
type lease struct {
	// token acknowledges the lease, if it can be acknowledged so.
	token string
	// reads are what a token acknowledges, held is what this lease hides.
	reads []*subagent
	held  map[*subagent]struct{}
	timer *timer
}

// lend leases ends, those of them that no other lease hides.
func (s *State) lend(token string, reads []*subagent, d time.Duration) {
	l := &lease{token: token, reads: reads}
	for _, e := range reads {
		if e.lease == nil {
			e.lease = l
			put(&l.held, e)
			s.setUnread(e)
		}
	}
	if token != "" {
		s.leases[token] = l
	}
	l.timer = s.timers.arm(&timer{at: s.now.Add(d), kind: timerLease, l: l})
}

// release gives back what l hides.
func (s *State) release(l *lease) {
	s.timers.disarm(l.timer)
	delete(s.leases, l.token)
	for e := range l.held {
		e.lease = nil
		s.setUnread(e)
	}
	l.held = nil
}

// offerRead prepares the acknowledgement of a reply that tells of ends.
func (s *State) offerRead(ends []*subagent) (token string, ids []string) {
	var reads []*subagent
	for _, e := range ends {
		if e.rec.ReadAt == nil && !e.leaving && !e.gone && !slices.Contains(reads, e) {
			reads = append(reads, e)
			ids = append(ids, e.id)
		}
	}
	if len(reads) == 0 {
		return "", nil
	}
	token = s.mintToken()
	s.lend(token, reads, s.cfg.AckDeadline)
	return token, ids
}

// ValidToken reports whether a text has the form of the tokens that coordinators give
// out, see [State.mintToken].
func ValidToken(token string) bool {
	i := strings.LastIndexByte(token, '-')
	if i < 0 || !events.ValidID(token[:i]) {
		return false
	}
	_, err := strconv.ParseUint(token[i+1:], 36, 64)
	return err == nil
}

// ack marks what a reply told of as read. Too late it changes nothing.
func (s *State) ack(m Ack) {
	l := s.leases[m.Token]
	// Tokens follow each other: that one is known says nothing of whose it is.
	foreign := func(e *subagent) bool { return m.By != "" && !s.descends(e, m.By) }
	if l == nil || slices.ContainsFunc(l.reads, foreign) {
		s.lateAcks++
		return
	}
	s.release(l)
	for _, e := range l.reads {
		s.markRead(e)
	}
}

// markRead notes that a reader has e's end. It is no longer offered from now on,
// and after a restart once that is durable.
func (s *State) markRead(e *subagent) {
	if e.rec.ReadAt == nil && e.endDurable() && !e.leaving && !e.gone {
		at := s.stamp()
		s.change(e).ReadAt = &at
		s.setUnread(e)
	}
}

// completions acknowledges, then reads what is finished and unread.
func (s *State) completions(m Request, c events.Completions) {
	w := &completionsWait{query: c, caller: m.Caller}
	box := s.inboxOf(m.Caller, c.ParentSessionID)
	for _, ref := range c.AckIDs {
		e := s.finishedIn(box, ref)
		switch {
		case e == nil:
			w.warnings = append(w.warnings, "ack_ids: "+strconv.Quote(ref)+" is no finished subagent of the session")
		default:
			s.markRead(e)
			w.acked = append(w.acked, e.id)
			w.on = append(w.on, e)
		}
	}
	s.park(w, m.Responder, slices.Compact(w.on), time.Time{})
	w.poke(s, nil)
}

// finishedIn finds the finished subagent of an owner that an id or dedupe id names.
func (s *State) finishedIn(box *inbox, ref string) *subagent {
	id, run, dedupe := strings.Cut(ref, ".")
	e := s.byID[id]
	if e == nil || e.inbox != box || !e.endDurable() || e.leaving || (dedupe && run != strconv.Itoa(e.rec.Run)) {
		return nil
	}
	return e
}

// completionsWait answers once what it acknowledges is durable.
type completionsWait struct {
	waitBase
	query    events.Completions
	caller   Caller
	acked    []string
	warnings []string
}

func (w *completionsWait) poke(s *State, _ *subagent) {
	for _, e := range w.on {
		if e.durable.ReadAt == nil {
			return
		}
	}
	w.answer(s)
}

// expire never comes: there is no deadline but the store's patience.
func (w *completionsWait) expire(*State) {}

func (w *completionsWait) answer(s *State) {
	c := w.query
	r := events.CompletionsReply{Completions: []events.Completion{}, Acked: w.acked, Warnings: w.warnings}
	most := events.MaxPage
	if c.Max != nil {
		most = *c.Max
	}
	ackOnly := most == 0 && len(c.AckIDs) > 0
	var reads []*subagent
	if box := s.inboxOf(w.caller, c.ParentSessionID); box != nil && !ackOnly {
		reads, r.More = unreadPage(box, c.SuppressIDs, most)
	}
	for _, e := range reads {
		r.Completions = append(r.Completions, events.Completion{Snapshot: Snapshot(e.durable, nil, s.now), DedupeID: dedupeID(e.durable)})
	}
	switch {
	case c.Peek:
		s.settle(w, r)
	case c.LeaseMS != nil:
		if *c.LeaseMS > 0 && len(reads) > 0 {
			s.lend("", reads, millis(*c.LeaseMS))
		}
		s.settle(w, r)
	default:
		s.settle(w, r, reads...)
	}
}

// unreadPage returns the first most ends to deliver, and whether there are more.
func unreadPage(box *inbox, suppress []string, most int) (page []*subagent, more bool) {
	hidden := make(map[string]struct{}, len(suppress))
	for _, ref := range suppress {
		hidden[ref] = struct{}{}
	}
	for _, e := range box.deliverable.items {
		if _, skip := hidden[e.id]; skip {
			continue
		}
		if len(hidden) > 0 {
			if _, skip := hidden[dedupeID(e.durable)]; skip {
				continue
			}
		}
		if len(page) == most {
			return page, true
		}
		page = append(page, e)
	}
	return page, false
}

// dedupeID is equal for every delivery of the same end.
func dedupeID(r *events.Record) string { return r.ID + "." + strconv.Itoa(r.Run) }

// outstanding tells what of a prompt holds its parent's turn open.
func (s *State) outstanding(m Request, o events.Outstanding) {
	r := events.OutstandingReply{LiveIDs: []string{}, UsageSettled: true}
	if box := s.inboxOf(m.Caller, o.ParentSessionID); box != nil {
		if p := box.prompts[o.ParentPromptID]; p != nil {
			for e := range p.live {
				switch {
				case e.durable == nil:
				case e.durable.Background:
					r.BackgroundLive = true
				default:
					r.LiveIDs = append(r.LiveIDs, e.id)
				}
			}
			r.Unread = len(p.unread)
			r.UsageSettled = len(p.unsettled) == 0
		}
	}
	slices.Sort(r.LiveIDs)
	s.reply(m.Responder, r)
}
