package coordinator

import (
	"slices"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// wait is one parked request. It is answered exactly once, by settle or fail,
// which also take it out of every place that knows it.
type wait interface {
	// poke is told that e's durable record changed, or that e was refused.
	poke(s *State, e *subagent)
	// expire is told that the deadline passed. It answers, or makes sure that a
	// poke will.
	expire(s *State)
	base() *waitBase
}

// waitBase is what all waits have.
type waitBase struct {
	order uint64
	to    Responder
	// on are the subagents that poke.
	on    []*subagent
	timer *timer
}

func (b *waitBase) base() *waitBase { return b }

// park makes w wait for the subagents in on, until the deadline if there is one.
func (s *State) park(w wait, to Responder, on []*subagent, deadline time.Time) {
	b := w.base()
	s.waitOrder++
	b.order, b.to, b.on = s.waitOrder, to, on
	s.waits[w] = struct{}{}
	for _, e := range on {
		if e.waits == nil {
			e.waits = make(map[wait]struct{})
		}
		e.waits[w] = struct{}{}
	}
	if !deadline.IsZero() {
		b.timer = s.timers.arm(&timer{at: deadline, kind: timerWait, w: w})
	}
}

func (s *State) unpark(w wait) {
	b := w.base()
	delete(s.waits, w)
	for _, e := range b.on {
		delete(e.waits, w)
	}
	s.timers.disarm(b.timer)
}

// settle answers w. Those of reads that are unread ends count as read once the
// caller acknowledges the reply.
func (s *State) settle(w wait, reply any, reads ...*subagent) {
	s.unpark(w)
	a := Answer{Reply: reply}
	a.AckToken, a.Reads = s.offerRead(reads)
	s.emit(Reply{To: w.base().to, Answer: a})
}

// fail answers w with an error.
func (s *State) fail(w wait, err *events.Error) {
	s.unpark(w)
	s.refuse(w.base().to, err)
}

// poke tells those that wait for e, in the order in which they came.
func (s *State) poke(e *subagent) {
	if len(e.waits) == 0 {
		return
	}
	for _, w := range waiting(e) {
		if _, still := s.waits[w]; still {
			w.poke(s, e)
		}
	}
}

func waiting(e *subagent) []wait { return sorted(e.waits) }

func sorted(set map[wait]struct{}) []wait {
	list := make([]wait, 0, len(set))
	for w := range set {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b wait) int {
		if a.base().order < b.base().order {
			return -1
		}
		return 1
	})
	return list
}
