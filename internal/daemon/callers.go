package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/coordinator"
)

// callers watches the clients that wait for a foreground spawn. One that is gone,
// so that nobody listens on its reply subject any more, holds no turn open.
type callers struct {
	interested func(subject string) bool
	abandon    func(coordinator.Responder)

	mu sync.Mutex
	// waiting holds how many looks in a row found nobody. Guarded by mu.
	waiting map[*waitingCaller]int
}

const (
	// callersLook is how often it is looked, callersMissed how many looks in a row
	// must find nobody: a client may be connecting again.
	callersLook   = time.Second
	callersMissed = 2
)

func newCallers(interested func(string) bool, abandon func(coordinator.Responder)) *callers {
	return &callers{interested: interested, abandon: abandon, waiting: make(map[*waitingCaller]int)}
}

// waitingCaller is a responder that is watched until it is answered.
type waitingCaller struct {
	coordinator.Responder
	subject string
	callers *callers
}

// Answer implements [coordinator.Responder].
func (w *waitingCaller) Answer(a coordinator.Answer) {
	w.callers.mu.Lock()
	delete(w.callers.waiting, w)
	w.callers.mu.Unlock()
	w.Responder.Answer(a)
}

// watch returns the responder to be used for r.
func (c *callers) watch(r responder) coordinator.Responder { return c.watchAs(r.subject, r) }

// watchAs is watch for a responder that answers on subject.
func (c *callers) watchAs(subject string, r coordinator.Responder) coordinator.Responder {
	if subject == "" {
		return r // nobody to begin with
	}
	w := &waitingCaller{r, subject, c}
	c.mu.Lock()
	c.waiting[w] = 0
	c.mu.Unlock()
	return w
}

// run looks until ctx ends.
func (c *callers) run(ctx context.Context) {
	look := time.NewTicker(callersLook)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			for _, w := range c.look() {
				c.abandon(w)
			}
		case <-ctx.Done():
			return
		}
	}
}

// look returns those that are gone, once.
func (c *callers) look() (gone []*waitingCaller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.waiting {
		if c.interested(w.subject) {
			c.waiting[w] = 0
			continue
		}
		if c.waiting[w]++; c.waiting[w] >= callersMissed {
			delete(c.waiting, w)
			gone = append(gone, w)
		}
	}
	return gone
}
