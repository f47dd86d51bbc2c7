package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// defaultUnreadLease is how long an end is hidden from other readers while a
// loop body has it.
const defaultUnreadLease = time.Minute

// UnreadOptions say whose ends to read, and how.
type UnreadOptions struct {
	// Session owns the subagents. Required.
	Session string
	// Follow waits for further ends. Without it the loop ends when none is left.
	Follow bool
	// Lease is how long an end is hidden from other readers while the body has it;
	// longer than the body takes. Default one minute.
	Lease time.Duration
	// Suppress are ids to leave out; they stay unread.
	Suppress []string
}

// Unread yields the ends that nobody has read, in the order in which they came,
// and acknowledges each once the body of the loop is through with it: when the
// next one is asked for. An end at which the loop is left, by break, return or
// panic, is not acknowledged; it comes back when its lease is over, as does one
// whose reader died. So every end is delivered at least once, and the same one
// again has the same DedupeID.
//
// An error is the last thing that is yielded. With Follow that is how the end of
// ctx shows.
func (c *Client) Unread(ctx context.Context, o UnreadOptions) iter.Seq2[events.Completion, error] {
	return func(yield func(events.Completion, error) bool) {
		u, err := c.newUnread(ctx, o)
		if err != nil {
			yield(events.Completion{}, err)
			return
		}
		defer u.close()
		for {
			done, ok, err := u.next()
			if err != nil {
				yield(events.Completion{}, fmt.Errorf("read the ends of session %s: %w", o.Session, err))
				return
			}
			if !ok || !yield(done, nil) {
				return
			}
			u.taken = []string{done.DedupeID}
		}
	}
}

// HandleUnread calls handle for each end that [Client.Unread] yields and
// acknowledges those for which it returns nil. Its first error ends it and is
// returned.
func (c *Client) HandleUnread(ctx context.Context, o UnreadOptions, handle func(context.Context, events.Completion) error) error {
	for done, err := range c.Unread(ctx, o) {
		if err != nil {
			return err
		}
		if err := handle(ctx, done); err != nil {
			return fmt.Errorf("handle the end of %s: %w", done.SubagentID, err)
		}
	}
	return nil
}

// unread reads ends one by one. One request acknowledges the last and takes the
// next.
type unread struct {
	c      *Client
	ctx    context.Context
	cancel context.CancelFunc
	o      UnreadOptions
	// taken is what the next request acknowledges.
	taken []string
	// wake has a token when there may be more; feedErr is why none will come.
	wake      chan struct{}
	feedErr   chan error
	following sync.WaitGroup
}

func (c *Client) newUnread(ctx context.Context, o UnreadOptions) (*unread, error) {
	if o.Lease <= 0 {
		o.Lease = defaultUnreadLease
	}
	u := &unread{c: c, o: o, wake: make(chan struct{}, 1), feedErr: make(chan error, 1)}
	u.ctx, u.cancel = context.WithCancel(ctx)
	if !o.Follow {
		return u, nil
	}
	feed, err := c.Feed(u.ctx, FeedFilter{Session: o.Session})
	if err != nil {
		u.cancel()
		return nil, err
	}
	u.following.Go(func() { u.feedErr <- u.follow(feed) })
	return u, nil
}

// follow wakes the reader at each end. A gap may have hidden one.
func (u *unread) follow(feed *Feed) error {
	for {
		e, err := feed.Next(u.ctx)
		switch {
		case errors.Is(err, ErrFeedGap):
		case err != nil:
			return errors.Join(err, feed.Close())
		case !e.Status.Terminal():
			continue
		}
		select {
		case u.wake <- struct{}{}:
		default:
		}
	}
}

func (u *unread) close() {
	u.cancel()
	u.following.Wait()
}

// next returns the next end; ok is false when there is none and nothing to wait
// for.
func (u *unread) next() (done events.Completion, ok bool, err error) {
	one, lease := 1, max(u.o.Lease.Milliseconds(), 1)
	for {
		r, err := u.c.Completions(u.ctx, events.Completions{
			ParentSessionID: u.o.Session, AckIDs: u.taken, SuppressIDs: u.o.Suppress, Max: &one, LeaseMS: &lease,
		})
		if err != nil {
			return done, false, err
		}
		u.taken = nil
		if len(r.Value.Completions) > 0 {
			return r.Value.Completions[0], true, nil
		}
		if !u.o.Follow {
			return done, false, nil
		}
		if err := u.await(); err != nil {
			return done, false, err
		}
	}
}

// await waits until there may be an end to read: one came, or a lease that
// another reader left is over.
func (u *unread) await() error {
	t := time.NewTimer(u.o.Lease)
	defer t.Stop()
	select {
	case <-u.wake:
		return nil
	case <-t.C:
		return nil
	case err := <-u.feedErr:
		return err
	case <-u.ctx.Done():
		return context.Cause(u.ctx)
	}
}
