package spawner

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// Spawner makes, watches and ends children. Its methods may be called from any
// goroutine and return at once.
type Spawner struct {
	cfg Config
	// ctx ends when Close is called: children are left as they are, watchers stop.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu sync.Mutex
	// children holds every child from Start or Adopt to Ended; guarded by mu.
	children map[string]*child
	// closed refuses new children; guarded by mu.
	closed bool

	tempMu sync.Mutex
	// tempRoot is the directory of TMPDIRs in use; guarded by tempMu.
	tempRoot string
}

// New returns a Spawner. Close it.
func New(cfg Config) *Spawner {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Spawner{cfg: cfg, ctx: ctx, cancel: cancel, children: make(map[string]*child), tempRoot: cfg.TempRoot}
}

// Start prepares and forks. Told: Forked, or Ended if it failed, in which case
// everything was undone.
func (s *Spawner) Start(spec events.Spec) {
	s.launch(newChild(s, spec), (*child).live)
}

// Adopt takes over a child of an earlier coordinator, or finds that it is gone.
// Told: Ended, then or later.
func (s *Spawner) Adopt(spec events.Spec, record events.Record) {
	c := newChild(s, spec)
	c.adopted = &record
	s.launch(c, (*child).liveAdopted)
}

func (s *Spawner) launch(c *child, life func(*child)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.children[c.spec.ID]; ok || s.closed {
		// The coordinator never starts a live id twice; after Close nobody listens.
		s.cfg.Log.Warn("start ignored", zap.String("id", c.spec.ID), zap.Bool("closed", s.closed))
		return
	}
	s.children[c.spec.ID] = c
	s.wg.Go(func() {
		defer s.forget(c)
		life(c)
	})
}

// forget frees c's id. By then the id may be of a later child.
func (s *Spawner) forget(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.children[c.spec.ID] == c {
		delete(s.children, c.spec.ID)
	}
}

func (s *Spawner) child(id string) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.children[id]
}

// Release lets a forked child go. Told: Started, later Ended.
func (s *Spawner) Release(id string) {
	if c := s.child(id); c != nil {
		c.release()
	}
}

// Stop ends a child in any phase. Told: Ended. Stopping an unknown or ended id
// does nothing; a second Stop that kills escalates the first.
func (s *Spawner) Stop(id string, stop events.Stop) {
	if c := s.child(id); c != nil {
		c.requestStop(stop)
	}
}

// Live counts the children that have not ended.
func (s *Spawner) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.children)
}

// Close stops watching and waits for the watchers. Released children go on and
// can be adopted; those that were not released end with their start pipe.
func (s *Spawner) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	s.leaveTempRoot()
}
