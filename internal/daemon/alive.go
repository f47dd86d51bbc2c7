package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// feedWatchdog gives a service manager signs of life until stop is called.
func (d *daemon) feedWatchdog() (stop func()) {
	if d.opts.Watchdog <= 0 || d.opts.Alive == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		// Two signs may fail before the manager loses its patience.
		interval := d.opts.Watchdog / 3
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if status, turned := d.loopTurned(ctx, interval); turned {
					d.opts.Alive(status)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); group.Wait() }
}

// loopTurned waits until the drain loop has turned: it answers a question, or is
// seen to be at other work. A loop that is at rest is woken by the question.
func (d *daemon) loopTurned(ctx context.Context, within time.Duration) (status string, turned bool) {
	before := d.coord.Health().LastTurn
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	st, err := d.coord.Stats(ctx)
	if err == nil {
		return fmt.Sprintf("%d active, %d pending, %d queued", st.Active, st.Pending, st.Queued), true
	}
	return "busy", d.coord.Health().LastTurn.After(before)
}

// stopping tells, once, that the daemon leaves.
func (d *daemon) stopping() {
	if d.opts.Stopping != nil && !d.stopped {
		d.stopped = true
		d.opts.Stopping()
	}
}
