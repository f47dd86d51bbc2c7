package coordinator

import "github.com/hayward-dev/hayward/events"

// closing is a shutdown under way.
type closing struct {
	handover bool
	waiters  []Responder
	// live are those that held a slot when it began.
	live []*subagent
}

// shutDown accepts no spawn any more and stops what runs, or with handover
// leaves it to the next coordinator. Queued subagents stay queued, durably: they
// were accepted, and to shut down loses nothing that a crash would keep. Their
// callers are told that they go on in the background.
func (s *State) shutDown(m ShutDown) {
	if s.finished {
		s.refuse(m.Responder, errShuttingDown())
		return
	}
	if s.closing == nil {
		s.closing = &closing{handover: m.Request.Handover}
		for _, e := range s.live.items {
			if e.running() {
				s.closing.live = append(s.closing.live, e)
			}
		}
	}
	c := s.closing
	c.waiters = append(c.waiters, m.Responder)
	// Whoever asks for less than a handover gets it: the children end.
	c.handover = c.handover && m.Request.Handover
	for _, w := range sorted(s.waits) {
		if w, ok := w.(*spawnWait); ok && (c.handover || !w.on[0].running()) {
			w.handOff(s, "the coordinator is shutting down; the subagent goes on with the next one")
		}
	}
	if c.handover {
		return
	}
	for _, e := range c.live {
		s.stop(e, stopOrder{reason: events.ReasonShutdown, kill: m.Request.Kill})
	}
}

// closeIfDone ends the coordinator once nothing of a shutdown is left to do:
// every end is durable. Under a handover a child that is being started is waited
// for, because it could not be adopted; the start deadline bounds that.
func (s *State) closeIfDone() {
	c := s.closing
	if c == nil || s.finished || len(s.unsettled) > 0 {
		return
	}
	for e := range s.slots {
		if !c.handover || !e.released {
			return
		}
	}
	s.finish(nil)
}

// shutdownExpired tells those who wait for the shutdown how far it got.
func (s *State) shutdownExpired() {
	if s.closing != nil && !s.finished {
		s.answerClosing()
	}
}

func (s *State) answerClosing() {
	c := s.closing
	var r events.ShutdownReply
	for _, e := range c.live {
		if e.rec.Live() {
			r.Left++
		} else {
			r.Ended++
		}
	}
	for _, to := range c.waiters {
		s.reply(to, r)
	}
	c.waiters = nil
}
