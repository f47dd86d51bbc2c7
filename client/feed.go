package client

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/hayward-dev/hayward/events"
)

// ErrFeedGap is what [Feed.Next] returns when events may have been missed,
// because the connection broke or the reader was too slow. The feed goes on: a
// reader that shows state reads it anew with [Client.ListAll] or [Client.Query].
var ErrFeedGap = errors.New("events of the feed may have been missed")

// feedBuffer is how far a reader may fall behind.
const feedBuffer = 8192

// Feed yields state changes as they happen. It is for one reader.
type Feed struct {
	c       *Client
	filter  FeedFilter
	sub     *nats.Subscription
	msgs    chan *nats.Msg
	lost    <-chan struct{}
	dropped int
}

// FeedFilter selects events. Empty members select all.
type FeedFilter struct {
	ID      string
	Session string
	Prompt  string
}

// Feed begins to watch. What happens after it returned is seen.
func (c *Client) Feed(ctx context.Context, filter FeedFilter) (*Feed, error) {
	if err := c.outside("feed"); err != nil {
		return nil, err
	}
	subject := events.FeedSubjects
	if filter.ID != "" {
		if !events.ValidID(filter.ID) {
			return nil, events.Errorf(events.CodeInvalidID, events.LayerGate, "feed: %q is not a subagent id", filter.ID)
		}
		subject = events.FeedSubject(filter.ID, "*")
	}
	f := &Feed{c: c, filter: filter, msgs: make(chan *nats.Msg, feedBuffer)}
	var p pacer
	for {
		f.lost, _ = c.link.state()
		err := f.subscribe(ctx, subject)
		if err == nil || !errors.Is(err, errLost) {
			return f, err
		}
		if err := c.standBy(ctx, &p); err != nil {
			return nil, err
		}
	}
}

func (f *Feed) subscribe(ctx context.Context, subject string) error {
	sub, err := f.c.nc.ChanSubscribe(subject, f.msgs)
	if err != nil {
		return f.c.sendError(subject, err)
	}
	if err := f.c.flush(ctx); err != nil {
		_ = sub.Unsubscribe() // the first error leads
		return err
	}
	f.sub = sub
	return nil
}

// flush returns once the server has taken what was sent before.
func (c *Client) flush(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.nc.FlushWithContext(limited)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, nats.ErrConnectionClosed) && c.nc.IsClosed():
		return errClosed("flush")
	}
	return errors.Join(errLost, err)
}

// Next returns the next event, or [ErrFeedGap] after the last one before the gap.
func (f *Feed) Next(ctx context.Context) (events.FeedEvent, error) {
	for {
		msg, err := f.take(ctx)
		if err != nil {
			return events.FeedEvent{}, err
		}
		var e events.FeedEvent
		if err := events.DecodeRecord(msg.Data, &e); err != nil {
			return e, events.Errorf(events.CodeInternal, events.LayerCoordinator, "the event on %s is malformed: %w", msg.Subject, err)
		}
		if f.selects(e) {
			return e, nil
		}
	}
}

func (f *Feed) take(ctx context.Context) (*nats.Msg, error) {
	select {
	case msg := <-f.msgs:
		return msg, nil
	default:
	}
	if dropped, err := f.sub.Dropped(); err == nil && dropped != f.dropped {
		f.dropped = dropped
		return nil, ErrFeedGap
	}
	select {
	case msg := <-f.msgs:
		return msg, nil
	case <-f.lost:
		return nil, f.resume(ctx)
	case <-f.c.closed:
		return nil, errClosed("feed")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// resume waits until the feed goes on after a broken connection, and tells of
// the gap: what happens after it returned is seen.
func (f *Feed) resume(ctx context.Context) error {
	var p pacer
	for {
		if err := f.c.standBy(ctx, &p); err != nil {
			return err
		}
		f.lost, _ = f.c.link.state()
		err := f.c.flush(ctx)
		if err == nil {
			return ErrFeedGap
		}
		if !lost(err) {
			return err
		}
	}
}

func (f *Feed) selects(e events.FeedEvent) bool {
	return (f.filter.Session == "" || e.Session == f.filter.Session) &&
		(f.filter.Prompt == "" || e.Prompt == f.filter.Prompt)
}

// Close stops the feed.
func (f *Feed) Close() error {
	if err := f.sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return events.Errorf(events.CodeInternal, events.LayerCoordinator, "close the feed: %w", err)
	}
	return nil
}
