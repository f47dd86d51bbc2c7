package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/hayward-dev/hayward/events"
)

// Watch yields the state changes that filter selects, from now on, until ctx
// ends. [ErrFeedGap] is yielded between events and the loop goes on after it; any
// other error is the last thing that is yielded. What happens after the first
// request for a value is seen, so begin to watch before what is to be seen, or
// use [Client.Feed].
func (c *Client) Watch(ctx context.Context, filter FeedFilter) iter.Seq2[events.FeedEvent, error] {
	return func(yield func(events.FeedEvent, error) bool) {
		feed, err := c.Feed(ctx, filter)
		if err != nil {
			yield(events.FeedEvent{}, err)
			return
		}
		// A close can fail only with the connection, which the next call reports.
		defer func() { _ = feed.Close() }()
		feed.All(ctx)(yield)
	}
}

// All yields what [Feed.Next] returns, as [Client.Watch] does. It leaves the feed
// open.
func (f *Feed) All(ctx context.Context) iter.Seq2[events.FeedEvent, error] {
	return func(yield func(events.FeedEvent, error) bool) {
		for {
			e, err := f.Next(ctx)
			if !yield(e, err) || err != nil && !errors.Is(err, ErrFeedGap) {
				return
			}
		}
	}
}

// errStop ends a copy whose reader wants no more.
var errStop = errors.New("stop")

// Items yields the items of a subagent's transcript: from r.Offset, or the last
// r.Tail, to what is its end now; with r.Follow until the subagent has ended. An
// error is the last thing that is yielded.
func (c *Client) Items(ctx context.Context, r events.FileRequest) iter.Seq2[events.Item, error] {
	return func(yield func(events.Item, error) bool) {
		var rest []byte
		err := c.eachPart(ctx, events.FilesTranscript, r, func(part events.FileReply) error {
			rest = append(rest, part.Data...)
			for {
				line, behind, whole := bytes.Cut(rest, []byte("\n"))
				if !whole {
					return nil
				}
				rest = behind
				if len(bytes.TrimSpace(line)) == 0 {
					continue
				}
				var item events.Item
				if err := events.DecodeRecord(line, &item); err != nil {
					return fmt.Errorf("the transcript of %s has a damaged line: %w", r.ID, err)
				}
				if !yield(item, nil) {
					return errStop
				}
			}
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(events.Item{}, err)
		}
	}
}

// Subagents yields the subagents that r selects, oldest first, reading page by
// page. An error is the last thing that is yielded.
func (c *Client) Subagents(ctx context.Context, r events.ListActive) iter.Seq2[events.Snapshot, error] {
	return func(yield func(events.Snapshot, error) bool) {
		for {
			page, err := c.ListActive(ctx, r)
			if err != nil {
				yield(events.Snapshot{}, err)
				return
			}
			for _, s := range page.Value.Subagents {
				if !yield(s, nil) {
					return
				}
			}
			if page.Value.Next == "" || page.Value.Next == r.After {
				return
			}
			r.After = page.Value.Next
		}
	}
}
