package client

import (
	"context"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// ask sends one of the six events, which must be safe to repeat.
func ask[T any](ctx context.Context, c *Client, e events.SubagentEvent, limit time.Duration) (Reply[T], error) {
	if err := e.Validate(); err != nil {
		return Reply[T]{}, err
	}
	return send[T](ctx, c, c.subject(e.EventKind()), e, limit)
}

// send sends any request that is safe to repeat.
func send[T any](ctx context.Context, c *Client, subject string, request any, limit time.Duration) (Reply[T], error) {
	body, err := events.Marshal(request)
	if err != nil {
		return Reply[T]{}, err
	}
	msg, err := c.do(ctx, call{subject: subject, body: body, limit: limit})
	if err != nil {
		return Reply[T]{}, err
	}
	return decode[T](c, subject, msg)
}

func millis(ms *int64, absent int64) time.Duration {
	if ms == nil {
		return time.Duration(absent) * time.Millisecond
	}
	return time.Duration(*ms) * time.Millisecond
}

// Query reads subagents by id, and with Block waits at most TimeoutMS for them.
func (c *Client) Query(ctx context.Context, q events.Query) (Reply[events.QueryReply], error) {
	limit := callTimeout
	if q.Block {
		limit = millis(q.TimeoutMS, events.DefaultQueryMS) + slack
	}
	return ask[events.QueryReply](ctx, c, q, limit)
}

// Wait waits until the mode of q is met, however long a single query may block.
// timeout bounds the wait, 0 does not; at its end the reply is as of then, with
// TimedOut set. Block and TimeoutMS of q are ignored.
func (c *Client) Wait(ctx context.Context, q events.Query, timeout time.Duration) (Reply[events.QueryReply], error) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	q.Block = true
	var p pacer
	for {
		ms := int64(events.MaxQueryMS)
		last := false
		if !deadline.IsZero() {
			left := max(time.Until(deadline), 0)
			if last = left.Milliseconds() <= ms; last {
				ms = left.Milliseconds()
			}
		}
		q.TimeoutMS = &ms
		r, err := c.Query(ctx, q)
		if events.HasCode(err, events.CodeShuttingDown) {
			if err := c.standBy(ctx, &p); err != nil { // the next coordinator knows the end
				return r, err
			}
			continue
		}
		if err != nil || !r.Value.TimedOut || last {
			return r, err
		}
	}
}

// Cancel ends subagents and returns once no process of them is left or at its
// deadline.
func (c *Client) Cancel(ctx context.Context, r events.Cancel) (Reply[events.CancelReply], error) {
	return ask[events.CancelReply](ctx, c, r, millis(r.TimeoutMS, events.DefaultCancelMS)+slack)
}

// ListActive reads one page of subagents.
func (c *Client) ListActive(ctx context.Context, r events.ListActive) (Reply[events.ListActiveReply], error) {
	return ask[events.ListActiveReply](ctx, c, r, callTimeout)
}

// ListAll reads all pages behind r.After.
func (c *Client) ListAll(ctx context.Context, r events.ListActive) (events.ListActiveReply, error) {
	all := events.ListActiveReply{Subagents: []events.Snapshot{}}
	for {
		page, err := c.ListActive(ctx, r)
		if err != nil {
			return all, err
		}
		all.Subagents = append(all.Subagents, page.Value.Subagents...)
		all.Warnings = append(all.Warnings, page.Value.Warnings...)
		if page.Value.Next == "" {
			return all, nil
		}
		if page.Value.Next == r.After {
			return all, events.Errorf(events.CodeInternal, events.LayerCoordinator, "list_active: the page behind %s names itself as the next", r.After)
		}
		r.After = page.Value.Next
	}
}

// Completions reads finished and unread subagents of a session. The caller
// acknowledges the reply once it has them safe.
func (c *Client) Completions(ctx context.Context, r events.Completions) (Reply[events.CompletionsReply], error) {
	return ask[events.CompletionsReply](ctx, c, r, callTimeout)
}

// Outstanding asks what still holds a prompt open.
func (c *Client) Outstanding(ctx context.Context, r events.Outstanding) (Reply[events.OutstandingReply], error) {
	return ask[events.OutstandingReply](ctx, c, r, callTimeout)
}

// Remove removes finished subagents by id. One that is gone already is not found.
func (c *Client) Remove(ctx context.Context, r events.RemoveRequest) (events.RemoveReply, error) {
	if err := r.Validate(); err != nil {
		return events.RemoveReply{}, err
	}
	if err := c.outside("remove"); err != nil {
		return events.RemoveReply{}, err
	}
	reply, err := send[events.RemoveReply](ctx, c, events.AdminSubject(events.AdminRemove), r, removeTimeout)
	return reply.Value, err
}

// Prune removes finished subagents by age and number, at most
// [events.MaxRemovals] of them; More of the reply tells that there are others.
func (c *Client) Prune(ctx context.Context, r events.PruneRequest) (events.RemoveReply, error) {
	if err := r.Validate(); err != nil {
		return events.RemoveReply{}, err
	}
	if err := c.outside("prune"); err != nil {
		return events.RemoveReply{}, err
	}
	reply, err := send[events.RemoveReply](ctx, c, events.AdminSubject(events.AdminPrune), r, removeTimeout)
	return reply.Value, err
}

// removeTimeout allows for the files of a whole page.
const removeTimeout = time.Minute

// Status asks how the coordinator is.
func (c *Client) Status(ctx context.Context) (events.StatusReply, error) {
	if err := c.outside("status"); err != nil {
		return events.StatusReply{}, err
	}
	r, err := send[events.StatusReply](ctx, c, events.AdminSubject(events.AdminStatus), events.StatusRequest{}, callTimeout)
	return r.Value, err
}

// Shutdown ends the coordinator. It is sent once: a connection that breaks
// before the reply is the error unreachable, and the coordinator is then ending
// or gone.
func (c *Client) Shutdown(ctx context.Context, r events.ShutdownRequest) (events.ShutdownReply, error) {
	if err := c.outside("shutdown"); err != nil {
		return events.ShutdownReply{}, err
	}
	subject := events.AdminSubject(events.AdminShutdown)
	body, err := events.Marshal(r)
	if err != nil {
		return events.ShutdownReply{}, err
	}
	msg, err := c.attempt(ctx, call{subject: subject, body: body, limit: shutdownTimeout})
	if err != nil {
		if lost(err) {
			return events.ShutdownReply{}, events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "shutdown: the coordinator left before it answered: %w", err)
		}
		return events.ShutdownReply{}, err
	}
	reply, err := decode[events.ShutdownReply](c, subject, msg)
	return reply.Value, err
}

// shutdownTimeout allows for grace and proof of the end of every child.
const shutdownTimeout = 2 * time.Minute
