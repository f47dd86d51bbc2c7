package coordinator

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// persister carries out what makes things durable: [Persist], [PersistGate] and
// [Forget]. It takes them first in, first out; at most one write of an id is
// under way, later states of that id coalesce into the next one, and writes of
// different ids overlap. A write that fails is kept and tried again for as long
// as the persister runs; a removal that fails is reported and left.
type persister struct {
	journal  Journal
	in       *queue[Effect]
	report   func(Message)
	deadline time.Duration
	log      *zap.Logger

	// Owned by run.
	slots     map[string]*slot
	revisions map[string]uint64
	ready     []*slot // to be written, in order
	doomed    []*slot // to be removed, in order
	held      []*slot // failed, waiting for the backoff
	inflight  int     // writes and removals
	removing  int     // removals
	backoff   time.Duration
	conflict  bool
	results   chan putResult
	writers   sync.WaitGroup
}

// slot is an id, or a gate, with something to do.
type slot struct {
	key string
	// next is the latest that is not being done, or nil.
	next Effect
	// spec is kept until the first write succeeded.
	spec    *events.Spec
	writing bool
	waiting bool // in ready, doomed or held
}

type putResult struct {
	slot     *slot
	did      Effect
	revision uint64
	err      error
}

const (
	// maxInflight bounds the writes under way at once, maxRemoving the removals
	// among them: who waits for a write does not wait for the cleaning.
	maxInflight = 32
	maxRemoving = 4
	minBackoff  = 50 * time.Millisecond
	maxBackoff  = 2 * time.Second
)

func newPersister(j Journal, deadline time.Duration, report func(Message), log *zap.Logger) *persister {
	return &persister{
		journal: j, in: newQueue[Effect](0), report: report, deadline: deadline, log: log,
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

// take notes the latest of an id or a gate.
func (p *persister) take(m Effect) {
	key := slotKey(m)
	s := p.slots[key]
	if s == nil {
		s = &slot{key: key}
		p.slots[key] = s
	}
	s.next = m
	if m, is := m.(Persist); is && m.Spec != nil {
		s.spec = m.Spec
	}
	p.enqueue(s)
}

// slotKey keeps what concerns one id, or one gate, in order.
func slotKey(m Effect) string {
	switch m := m.(type) {
	case Persist:
		return m.Record.ID
	case Forget:
		return m.ID
	case PersistGate:
		return gateSlot(m.Gate.Session, m.Gate.Prompt)
	case ForgetGate:
		return gateSlot(m.Session, m.Prompt)
	}
	return ""
}

// about names in the log whom an effect is for.
func about(m Effect) []zap.Field {
	switch m := m.(type) {
	case Persist:
		return []zap.Field{zap.String("id", m.Record.ID), zap.String("session", m.Record.ParentSessionID)}
	case Forget:
		return []zap.Field{zap.String("id", m.ID)}
	case PersistGate:
		return []zap.Field{zap.String("session", m.Gate.Session), zap.String("prompt", m.Gate.Prompt)}
	case ForgetGate:
		return []zap.Field{zap.String("session", m.Session), zap.String("prompt", m.Prompt)}
	}
	return nil
}

// gateSlot is no id: an id holds no blank.
func gateSlot(session, prompt string) string { return "gate " + session + " " + prompt }

func (p *persister) enqueue(s *slot) {
	if s.writing || s.waiting {
		return
	}
	s.waiting = true
	if _, removal := s.next.(Forget); removal {
		p.doomed = append(p.doomed, s)
	} else {
		p.ready = append(p.ready, s)
	}
}

// write starts what may be done now.
func (p *persister) write(ctx context.Context) {
	for len(p.ready) > 0 && p.inflight < maxInflight && !p.conflict {
		p.begin(ctx, &p.ready)
	}
	for len(p.doomed) > 0 && p.removing < maxRemoving && p.inflight < maxInflight && !p.conflict {
		p.removing++
		p.begin(ctx, &p.doomed)
	}
}

// begin does the first of list.
func (p *persister) begin(ctx context.Context, list *[]*slot) {
	s := (*list)[0]
	(*list)[0] = nil
	*list = (*list)[1:]
	r := putResult{slot: s, did: s.next}
	revision, spec := p.revisions[s.key], s.spec
	s.waiting, s.writing, s.next = false, true, nil
	p.inflight++
	p.writers.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, p.deadline)
		defer cancel()
		r.revision, r.err = p.carryOut(ctx, r.did, revision, spec)
		p.results <- r // never blocks: there is room for every write under way
	})
}

func (p *persister) carryOut(ctx context.Context, m Effect, revision uint64, spec *events.Spec) (uint64, error) {
	switch m := m.(type) {
	case Persist:
		put := Put{Record: *m.Record, Revision: revision}
		if revision == 0 {
			put.Spec = spec
		}
		return p.journal.Put(ctx, put)
	case PersistGate:
		return 0, p.journal.PutGate(ctx, m.Gate)
	case ForgetGate:
		return 0, p.journal.DeleteGate(ctx, m.Session, m.Prompt)
	case Forget:
		if m.Gate != nil {
			if err := p.journal.PutGate(ctx, *m.Gate); err != nil {
				return 0, err
			}
		}
		return 0, p.journal.Delete(ctx, m.ID, revision)
	}
	return 0, nil
}

// done takes the result of one write or removal.
func (p *persister) done(r putResult) {
	s := r.slot
	p.inflight--
	s.writing = false
	if _, removal := r.did.(Forget); removal {
		p.removing--
	}
	if r.err != nil {
		p.failed(s, r)
		return
	}
	p.backoff = 0
	s.spec = nil
	switch m := r.did.(type) {
	case Persist:
		p.revisions[s.key] = r.revision
		p.report(Persisted{Record: m.Record})
	case PersistGate:
		p.report(GatePersisted{Gate: m.Gate})
	case Forget:
		delete(p.revisions, s.key)
		p.report(Forgotten{ID: m.ID})
	}
	p.next(s)
}

// next goes on with what came for s meanwhile.
func (p *persister) next(s *slot) {
	if s.next == nil {
		delete(p.slots, s.key)
		return
	}
	p.enqueue(s)
}

// failed keeps what could not be written, and reports it.
func (p *persister) failed(s *slot, r putResult) {
	err := storageError(s.key, r)
	if err.Code == events.CodeStoreConflict {
		p.conflict = true
	}
	p.log.Warn("make durable", append(about(r.did), zap.Error(err))...)
	if m, removal := r.did.(Forget); removal {
		p.report(Forgotten{ID: m.ID, Err: err})
		p.next(s)
		return
	}
	if s.next == nil {
		s.next = r.did
	}
	s.waiting = true
	p.held = append(p.held, s)
	if m, record := r.did.(Persist); record {
		p.report(PersistFailed{ID: m.Record.ID, Err: err})
	}
}

// storageError is a failed write with its operation and id. What is neither a
// conflict nor a full disk is [events.CodeStorageFailed].
func storageError(what string, r putResult) *events.Error {
	code, layer := events.CodeStorageFailed, events.LayerCoordinator
	for _, c := range []events.Code{events.CodeStoreConflict, events.CodeStorageFull} {
		if events.HasCode(r.err, c) {
			code = c
		}
	}
	verb := "write the record of"
	switch r.did.(type) {
	case Forget:
		verb = "remove"
	case PersistGate, ForgetGate:
		verb = "write the"
	}
	return events.Errorf(code, layer, "%s %s: %w", verb, what, r.err)
}
