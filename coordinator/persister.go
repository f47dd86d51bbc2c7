package coordinator

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// persister writes records. It takes them first in, first out; at most one write
// of an id is under way, later states of that id coalesce into the next one, and
// writes of different ids overlap. What fails is kept and tried again for as
// long as the persister runs.
type persister struct {
	journal  Journal
	in       *queue[Persist]
	report   func(Message)
	deadline time.Duration
	log      *zap.Logger

	// Owned by run.
	slots     map[string]*slot
	revisions map[string]uint64
	ready     []*slot // to be written, in order
	held      []*slot // failed, waiting for the backoff
	inflight  int
	backoff   time.Duration
	conflict  bool
	results   chan putResult
	writers   sync.WaitGroup
}

// slot is an id with something to write.
type slot struct {
	id string
	// next is the latest state that is not being written, or nil.
	next *events.Record
	// spec is kept until the first write succeeded.
	spec    *events.Spec
	writing bool
	waiting bool // in ready or held
}

type putResult struct {
	slot     *slot
	record   *events.Record
	revision uint64
	err      error
}

const (
	// maxInflight bounds the writes under way at once.
	maxInflight = 32
	minBackoff  = 50 * time.Millisecond
	maxBackoff  = 2 * time.Second
)

func newPersister(j Journal, deadline time.Duration, report func(Message), log *zap.Logger) *persister {
	return &persister{
		journal: j, in: newQueue[Persist](0), report: report, deadline: deadline, log: log,
		slots: make(map[string]*slot), revisions: make(map[string]uint64),
		results: make(chan putResult, maxInflight),
	}
}

// run writes until in is closed and everything is durable, or ctx ends. It is
// the only goroutine that touches the slots.
func (p *persister) run(ctx context.Context) {
	defer p.writers.Wait()
	retry := time.NewTimer(0)
	defer retry.Stop()
	<-retry.C
	var retryC <-chan time.Time // nil while nothing is held
	for {
		for m, ok := p.in.pop(); ok; m, ok = p.in.pop() {
			p.take(m)
		}
		p.write(ctx)
		if len(p.held) > 0 && retryC == nil {
			p.backoff = min(max(2*p.backoff, minBackoff), maxBackoff)
			retry.Reset(p.backoff)
			retryC = retry.C
		}
		if p.in.drained() && len(p.slots) == 0 || p.conflict && p.inflight == 0 {
			return
		}
		select {
		case <-p.in.wake:
		case r := <-p.results:
			p.done(r)
		case <-retryC:
			retryC = nil
			p.ready = append(p.ready, p.held...)
			p.held = nil
		case <-ctx.Done():
			if n := len(p.slots); n > 0 {
				p.log.Error("records were left unwritten", zap.Int("records", n))
			}
			return
		}
	}
}

// take notes the latest state of an id.
func (p *persister) take(m Persist) {
	id := m.Record.ID
	s := p.slots[id]
	if s == nil {
		s = &slot{id: id}
		p.slots[id] = s
	}
	s.next = m.Record
	if m.Spec != nil {
		s.spec = m.Spec
	}
	p.enqueue(s)
}

func (p *persister) enqueue(s *slot) {
	if !s.writing && !s.waiting {
		s.waiting = true
		p.ready = append(p.ready, s)
	}
}

// write starts what may be written now.
func (p *persister) write(ctx context.Context) {
	for len(p.ready) > 0 && p.inflight < maxInflight && !p.conflict {
		s := p.ready[0]
		p.ready[0] = nil
		p.ready = p.ready[1:]
		put := Put{Record: *s.next, Revision: p.revisions[s.id]}
		if put.Revision == 0 {
			put.Spec = s.spec
		}
		r := putResult{slot: s, record: s.next}
		s.waiting, s.writing, s.next = false, true, nil
		p.inflight++
		p.writers.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, p.deadline)
			defer cancel()
			r.revision, r.err = p.journal.Put(ctx, put)
			p.results <- r // never blocks: there is room for every write under way
		})
	}
}

// done takes the result of one write.
func (p *persister) done(r putResult) {
	s := r.slot
	p.inflight--
	s.writing = false
	if r.err != nil {
		p.failed(s, r)
		return
	}
	p.backoff = 0
	p.revisions[s.id] = r.revision
	s.spec = nil
	p.report(Persisted{Record: r.record})
	if s.next == nil {
		delete(p.slots, s.id)
		return
	}
	p.enqueue(s)
}

// failed keeps what could not be written.
func (p *persister) failed(s *slot, r putResult) {
	err := storageError(r)
	if err.Code == events.CodeStoreConflict {
		p.conflict = true
	}
	p.log.Warn("write a record", zap.String("id", s.id), zap.Uint64("seq", r.record.Seq), zap.Error(err))
	if s.next == nil {
		s.next = r.record
	}
	s.waiting = true
	p.held = append(p.held, s)
	p.report(PersistFailed{ID: s.id, Err: err})
}

// storageError is a failed write with its operation and id. What is neither a
// conflict nor a full disk is [events.CodeStorageFailed].
func storageError(r putResult) *events.Error {
	code, layer := events.CodeStorageFailed, events.LayerCoordinator
	for _, c := range []events.Code{events.CodeStoreConflict, events.CodeStorageFull} {
		if events.HasCode(r.err, c) {
			code = c
		}
	}
	return events.Errorf(code, layer, "write the record of %s: %w", r.record.ID, r.err)
}
