package coordinator

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
)

// publisher puts events on the feed, in order. One that fails is tried again; a
// feed that stays broken loses its oldest events, which is counted and logged.
// Records are the truth, the feed tells of them.
type publisher struct {
	port     Publisher
	in       *queue[events.FeedEvent]
	deadline time.Duration
	log      *zap.Logger
	dropped  atomic.Int64
}

// maxFeed bounds the events that wait for a broken feed.
const maxFeed = 16 << 10

func newPublisher(port Publisher, deadline time.Duration, log *zap.Logger) *publisher {
	return &publisher{port: port, in: newQueue[events.FeedEvent](0), deadline: deadline, log: log}
}

// run publishes until in is closed and empty, or ctx ends.
func (p *publisher) run(ctx context.Context) {
	for {
		e, ok := p.in.pop()
		switch {
		case ok:
			if !p.publish(ctx, e) {
				p.abandon()
				return
			}
		case p.in.drained():
			return
		default:
			select {
			case <-p.in.wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// abandon counts what is left when the time is up.
func (p *publisher) abandon() {
	if n := p.in.depth(); n > 0 {
		p.dropped.Add(int64(n))
		p.log.Error("feed events were left unpublished", zap.Int("events", n))
	}
}

// publish tries until e is on the feed. It gives e up when too many wait behind
// it, and reports false when ctx ended.
func (p *publisher) publish(ctx context.Context, e events.FeedEvent) bool {
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		once, cancel := context.WithTimeout(ctx, p.deadline)
		err := p.port.Publish(once, e)
		cancel()
		if err == nil {
			return true
		}
		log := p.log.With(zap.String("id", e.SubagentID), zap.String("session", e.Session), zap.Uint64("seq", e.Seq), zap.Error(err))
		if ctx.Err() != nil || p.in.depth() >= maxFeed {
			p.dropped.Add(1)
			log.Error("a feed event was dropped")
			return ctx.Err() == nil
		}
		log.Warn("publish a feed event")
		wait := time.NewTimer(backoff)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}
