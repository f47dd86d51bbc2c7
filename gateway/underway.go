package gateway

import (
	"context"
)

// begin says that an exchange is under way, until end is called.
func (c *costs) begin(x *exchange) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := x.child
	if c.open[id] == nil {
		c.open[id] = make(map[*exchange]struct{})
	}
	c.open[id][x] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.open[id], x); len(c.open[id]) > 0 {
			return
		}
		delete(c.open, id)
		if _, ok := c.settled[id]; ok {
			delete(c.settled, id)
			delete(c.of, id)
		}
		for _, waiting := range c.closed[id] {
			close(waiting)
		}
		delete(c.closed, id)
	}
}

// stop ends what a subagent has under way at its model APIs.
func (c *costs) stop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for x := range c.open[id] {
		x.stop()
	}
}

// stopAll ends everything.
func (c *costs) stopAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range c.open {
		for x := range all {
			x.stop()
		}
	}
}

// mayLinger takes a place for the answer of an agent that left, if there is one.
func (c *costs) mayLinger(x *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := 0
	for other := range c.open[x.child] {
		if other.left {
			taken++
		}
	}
	x.left = taken < maxLingering
	return x.left
}

// wait returns once no exchange of a subagent is under way.
func (c *costs) wait(ctx context.Context, id string) error {
	c.mu.Lock()
	if len(c.open[id]) == 0 {
		c.mu.Unlock()
		return nil
	}
	none := make(chan struct{})
	c.closed[id] = append(c.closed[id], none)
	c.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forget drops what a subagent cost. A call under way still adds its cost, which
// goes with the last one.
func (c *costs) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, id)
	if len(c.open[id]) > 0 {
		c.settled[id] = struct{}{}
	}
}
