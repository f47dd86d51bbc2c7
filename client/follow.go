package client

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hayward-dev/hayward/events"
)

// FollowFeed calls f for each event of the feed behind the sequence after, in the
// order of the feed, with the sequence of the event; 0 begins with the oldest that
// is kept. Unlike [Client.Feed] it misses nothing: a reader that stores the last
// sequence that it is done with goes on behind it, over restarts of its own and
// of the coordinator. An event may come twice if it was not stored.
//
// It returns what f returns, the cause of ctx, or [ErrFeedGap] when events behind
// after are not kept any more: state is then to be read anew, and followed from
// the sequence that comes with the error.
func (c *Client) FollowFeed(ctx context.Context, after uint64, f func(sequence uint64, e events.FeedEvent) error) (uint64, error) {
	if err := c.outside("feed"); err != nil {
		return after, err
	}
	var p pacer
	for {
		next, err := c.followFeed(ctx, after, f)
		if next != after {
			after, p = next, pacer{}
		}
		if !lost(err) {
			return after, err
		}
		if err := c.standBy(ctx, &p); err != nil {
			return after, err
		}
	}
}

// followFeed follows until something breaks.
func (c *Client) followFeed(ctx context.Context, after uint64, f func(uint64, events.FeedEvent) error) (uint64, error) {
	broken, _ := c.link.state()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	done := make(chan struct{})
	defer func() { close(stop); <-done }()
	go func() {
		defer close(done)
		select {
		case <-broken:
			cancel(errLost)
		case <-c.closed:
			cancel(errClosed("feed"))
		case <-stop:
		}
	}()
	js, err := jetstream.New(c.nc)
	if err != nil {
		return after, c.sendError("feed", err)
	}
	limited, release := context.WithTimeout(ctx, callTimeout)
	defer release()
	stream, err := js.Stream(limited, events.FeedStream)
	if err != nil {
		return after, followError(ctx, err)
	}
	if first := stream.CachedInfo().State.FirstSeq; after > 0 && after+1 < first {
		return first - 1, ErrFeedGap
	}
	consumer, err := stream.OrderedConsumer(limited, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
	})
	if err != nil {
		return after, followError(ctx, err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return after, followError(ctx, err)
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return after, followError(ctx, err)
		}
		about, err := msg.Metadata()
		if err != nil {
			return after, events.Errorf(events.CodeInternal, events.LayerCoordinator, "the event on %s is malformed: %w", msg.Subject(), err)
		}
		var e events.FeedEvent
		if err := events.DecodeRecord(msg.Data(), &e); err != nil {
			return after, events.Errorf(events.CodeInternal, events.LayerCoordinator, "the event on %s is malformed: %w", msg.Subject(), err)
		}
		if err := f(about.Sequence.Stream, e); err != nil {
			return after, err
		}
		after = about.Sequence.Stream
	}
}

// followError is why the feed cannot be followed now: the caller's end, the end
// of the connection, or what the server says, which is tried again.
func followError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errors.Join(errLost, err)
}
