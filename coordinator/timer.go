package coordinator

import (
	"container/heap"
	"time"
)

// timerKind says what a timer is for.
type timerKind int

const (
	timerWait   timerKind = iota // a request's deadline
	timerLease                   // the acknowledgement of a reply, or a lease
	timerStart                   // a child's start deadline
	timerRun                     // the backstop of a run's deadline
	timerStop                    // a stop that had no effect
	timerRetain                  // something gets too old to be kept
)

// timer is one entry of the heap. At most one of w, l and e is set, by kind.
type timer struct {
	at    time.Time
	order uint64
	index int // in the heap, -1 outside
	kind  timerKind
	w     wait
	l     *lease
	e     *subagent
}

// timers is a heap by time, then by the order of arming.
type timers struct {
	heap  timerHeap
	order uint64
}

// arm adds t.
func (q *timers) arm(t *timer) *timer {
	q.order++
	t.order = q.order
	heap.Push(&q.heap, t)
	return t
}

// disarm removes t if it is armed; t may be nil.
func (q *timers) disarm(t *timer) {
	if t != nil && t.index >= 0 {
		heap.Remove(&q.heap, t.index)
	}
}

// next is when the first timer is due.
func (q *timers) next() (time.Time, bool) {
	if len(q.heap) == 0 {
		return time.Time{}, false
	}
	return q.heap[0].at, true
}

// pop removes and returns the first timer if it is due at now.
func (q *timers) pop(now time.Time) *timer {
	if len(q.heap) == 0 || q.heap[0].at.After(now) {
		return nil
	}
	return heap.Pop(&q.heap).(*timer)
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}
