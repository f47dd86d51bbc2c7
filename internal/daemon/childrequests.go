package daemon

import (
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

const (
	// maxChildRequests bounds the requests of one subagent that are not answered yet.
	maxChildRequests = 64
	// maxChildResolving bounds its spawns that are being checked: the others wait for
	// their turn among its own. maxInsideResolving bounds those of all subagents, which
	// have tokens of their own, so that clients never wait for theirs, see [maxResolving].
	maxChildResolving  = 4
	maxInsideResolving = 32

	// The acknowledgements of one subagent: as many at once as it may have requests, and
	// then more than it reads ends. Each takes a place in the coordinator's intake, which
	// is for the requests of everybody.
	ackBurst = maxChildRequests
	ackRate  = rate.Limit(100)

	// minSwept is how many subagents are remembered without a look for those that say
	// nothing any more.
	minSwept = 64
)

// childRequests counts the requests of each subagent until they are answered.
type childRequests struct {
	mu   sync.Mutex
	open map[string]*childLoad // guarded by mu; those with a request

	// resolving holds a token for each spawn of a subagent being resolved.
	resolving chan struct{}
}

// childLoad is what one subagent asks for now.
type childLoad struct {
	open int // guarded by childRequests.mu
	// resolving holds a token for each of its spawns being resolved.
	resolving chan struct{}
}

func newChildRequests() *childRequests {
	return &childRequests{open: make(map[string]*childLoad), resolving: make(chan struct{}, maxInsideResolving)}
}

// begin counts one request of the subagent until it is answered.
func (c *childRequests) begin(id string, to coordinator.Responder) (*childAnswer, *events.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	load := c.open[id]
	if load == nil {
		load = &childLoad{resolving: make(chan struct{}, maxChildResolving)}
		c.open[id] = load
	}
	if load.open >= maxChildRequests {
		return nil, events.Errorf(events.CodeBusy, events.LayerCoordinator, "%d requests of subagent %s are not answered yet", maxChildRequests, id).
			WithRemedy("ask again in a moment").WithDetail("depth", strconv.Itoa(maxChildRequests))
	}
	load.open++
	return &childAnswer{requests: c, id: id, of: load, to: to}, nil
}

// childAnswer is the responder of one request.
type childAnswer struct {
	requests *childRequests
	id       string
	of       *childLoad
	to       coordinator.Responder
	once     sync.Once
}

// Answer implements [coordinator.Responder].
func (a *childAnswer) Answer(answer coordinator.Answer) {
	a.once.Do(func() {
		a.requests.mu.Lock()
		defer a.requests.mu.Unlock()
		if a.of.open--; a.of.open == 0 {
			delete(a.requests.open, a.id)
		}
	})
	a.to.Answer(answer)
}

// ackRates bounds how fast each subagent acknowledges.
type ackRates struct {
	mu      sync.Mutex
	of      map[string]*rate.Limiter // guarded by mu
	sweepAt int                      // guarded by mu: the number of them that is looked through
}

func newAckRates() *ackRates { return &ackRates{of: make(map[string]*rate.Limiter), sweepAt: minSwept} }

// allow counts an acknowledgement of the subagent id.
func (a *ackRates) allow(id string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	limiter := a.of[id]
	if limiter == nil {
		if len(a.of) >= a.sweepAt {
			a.sweep(now)
		}
		limiter = rate.NewLimiter(ackRate, ackBurst)
		a.of[id] = limiter
	}
	return limiter.AllowN(now, 1)
}

// sweep forgets those that have not said anything for so long that they are as new.
func (a *ackRates) sweep(now time.Time) {
	for id, limiter := range a.of {
		if limiter.TokensAt(now) >= ackBurst {
			delete(a.of, id)
		}
	}
	a.sweepAt = max(minSwept, 2*len(a.of))
}
