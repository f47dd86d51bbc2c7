package mcp

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// handover is an answer that has ends in it.
type handover struct {
	request jsonrpc.ID
	ends    []string
	// done is closed when the answer was written, or could not be.
	done chan struct{}
}

// ledger knows which ends were handed over and not acknowledged. Ends are dedupe
// ids.
type ledger struct {
	mu sync.Mutex
	// calls are the calls without an answer; true: the client cancelled it.
	calls map[jsonrpc.ID]bool
	// idle is closed, when there is one, once calls is empty.
	idle chan struct{}
	// open are answers that no later call has confirmed, due those that are
	// confirmed and not acknowledged yet, returned ends whose answer the client gave
	// up.
	open, due []*handover
	returned  []string
}

func newLedger() *ledger { return &ledger{calls: make(map[jsonrpc.ID]bool)} }

// arrived notes a call. It confirms the answers so far.
func (l *ledger) arrived(id jsonrpc.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[id] = false
	l.due = append(l.due, l.open...)
	l.open = nil
}

// cancelled notes that the client takes no answer of a call any more.
func (l *ledger) cancelled(id jsonrpc.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Its answer may have been read before it counts as written.
	if _, running := l.calls[id]; running {
		l.calls[id] = true
	}
	giveUp := func(list []*handover) []*handover {
		return slices.DeleteFunc(list, func(h *handover) bool {
			if h.request == id {
				l.returned = append(l.returned, h.ends...)
			}
			return h.request == id
		})
	}
	l.open, l.due = giveUp(l.open), giveUp(l.due)
}

// answering notes that an answer is about to be written. The caller calls what it
// returns once it is.
func (l *ledger) answering(id jsonrpc.ID, ends []string) (written func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(ends) == 0 {
		return func(error) { l.answered(id) }
	}
	if l.calls[id] {
		l.returned = append(l.returned, ends...)
		return func(error) { l.answered(id) }
	}
	h := &handover{request: id, ends: ends, done: make(chan struct{})}
	l.open = append(l.open, h)
	return func(err error) {
		if err != nil {
			l.answered(id)
			l.cancelled(id)
		} else {
			l.answered(id)
		}
		close(h.done)
	}
}

func (l *ledger) answered(id jsonrpc.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, id)
	if len(l.calls) == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// giveBack returns ends that will be in no answer.
func (l *ledger) giveBack(ends []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.returned = append(l.returned, ends...)
}

// drain waits until every call has its answer, or ctx ends.
func (l *ledger) drain(ctx context.Context) {
	l.mu.Lock()
	if len(l.calls) == 0 {
		l.mu.Unlock()
		return
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// takeDue removes and returns the ends to acknowledge: those of confirmed answers
// that were written. An answer whose writing had begun when the call came is
// waited for until ctx ends.
func (l *ledger) takeDue(ctx context.Context) []string {
	l.mu.Lock()
	waiting := slices.Clone(l.due)
	l.mu.Unlock()
	for _, h := range waiting {
		select {
		case <-h.done:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var ends []string
	l.due = slices.DeleteFunc(l.due, func(h *handover) bool {
		select {
		case <-h.done:
			ends = append(ends, h.ends...)
			return true
		default:
			return false
		}
	})
	return ends
}

// putBack makes ends due again, which could not be acknowledged.
func (l *ledger) putBack(ends []string) {
	done := make(chan struct{})
	close(done)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = append(l.due, &handover{ends: ends, done: done})
}

// held are the ends that are in an answer already and not acknowledged.
func (l *ledger) held() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]struct{})
	for _, h := range slices.Concat(l.open, l.due) {
		for _, end := range h.ends {
			all[end] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// takeReturned removes and returns at most n ends whose answer was given up.
func (l *ledger) takeReturned(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.returned)
	l.returned = slices.Compact(l.returned)
	n = min(n, len(l.returned))
	ends := slices.Clone(l.returned[:n])
	l.returned = l.returned[n:]
	return ends
}

// confirm confirms the answers so far, as a call does.
func (l *ledger) confirm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = append(l.due, l.open...)
	l.open = nil
}
