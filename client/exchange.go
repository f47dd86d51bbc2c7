package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hayward-dev/hayward/events"
)

// errLost means that a request has no reply and will get none on this
// connection: it may or may not have been carried out.
var errLost = errors.New("the reply was lost")

const (
	// callTimeout bounds the wait for the reply of a request that does not block.
	callTimeout = 30 * time.Second
	// slack is what a blocking request gets beyond its own deadline.
	slack    = 15 * time.Second
	minPause = 20 * time.Millisecond
	maxPause = time.Second
)

// call is one request.
type call struct {
	subject string
	body    []byte
	// limit bounds one attempt. 0: none, then probe must find what goes wrong.
	limit time.Duration
	// probe, when set, is called every Options.ProbeEvery while there is no reply;
	// an error of it ends the attempt. Such a request has a subscription alone.
	probe func(context.Context) error
}

const (
	// busyPatience is how long a coordinator may say that it is busy: nothing was
	// done then, and a moment later it mostly is not.
	busyPatience = 5 * time.Second
	minBusyPause = 20 * time.Millisecond
	maxBusyPause = 500 * time.Millisecond
)

// do sends a request until it has a reply: again after each lost one. It must
// be safe to repeat.
func (c *Client) do(ctx context.Context, q call) (*nats.Msg, error) {
	var p pacer
	for {
		msg, err := c.attemptIdle(ctx, q)
		if !errors.Is(err, errLost) {
			return msg, err
		}
		if err := c.standBy(ctx, &p); err != nil {
			return nil, err
		}
	}
}

// attemptIdle is attempt, again for a while after each reply that says busy.
func (c *Client) attemptIdle(ctx context.Context, q call) (*nats.Msg, error) {
	end := time.Now().Add(busyPatience)
	for wait := minBusyPause; ; wait = min(2*wait, maxBusyPause) {
		msg, err := c.attempt(ctx, q)
		if err != nil || !events.HasCode(serviceError(msg), events.CodeBusy) {
			return msg, err
		}
		// At the caller's own end, busy says more than a deadline.
		if time.Now().After(end) || pause(ctx, wait) != nil {
			return msg, nil
		}
	}
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, q call) (*nats.Msg, error) {
	lost, _ := c.link.state()
	refused, stop := c.watchRefusal(q.subject)
	defer stop()
	expect := c.answers.expect
	if q.probe != nil {
		expect = alone
	}
	inbox, replies, forget, err := expect(c.nc)
	if err != nil {
		return nil, c.sendError(q.subject, err)
	}
	defer forget()
	if err := c.nc.PublishMsg(c.request(ctx, q, inbox)); err != nil {
		return nil, c.sendError(q.subject, err)
	}

	var limit, probe <-chan time.Time
	if q.limit > 0 {
		t := time.NewTimer(q.limit)
		defer t.Stop()
		limit = t.C
	}
	if q.probe != nil {
		t := time.NewTicker(c.opts.ProbeEvery)
		defer t.Stop()
		probe = t.C
	}
	for {
		select {
		case msg := <-replies:
			if len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
				return nil, fmt.Errorf("%w: no service answers on %s", errLost, q.subject)
			}
			return msg, nil
		case err := <-refused:
			return nil, err
		case <-c.closed:
			return nil, errClosed(q.subject)
		case <-lost:
			// A reply that came before the connection broke is still a reply.
			select {
			case msg := <-replies:
				return msg, nil
			default:
			}
			return nil, fmt.Errorf("%w: the connection broke", errLost)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limit:
			return nil, events.Errorf(events.CodeTimeout, events.LayerCoordinator, "the coordinator did not answer on %s within %v", q.subject, q.limit)
		case <-probe:
			if err := q.probe(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// sendError sorts why a request could not be sent.
func (c *Client) sendError(subject string, err error) error {
	switch {
	case errors.Is(err, nats.ErrConnectionClosed):
		return errClosed(subject)
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionReconnecting), errors.Is(err, nats.ErrDisconnected):
		return fmt.Errorf("%w: %w", errLost, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return events.Errorf(events.CodeTooLarge, events.LayerGate, "send on %s: %w", subject, err)
	}
	return events.Errorf(events.CodeInternal, events.LayerCoordinator, "send on %s: %w", subject, err)
}

func errClosed(subject string) error {
	return events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "ask on %s: %w", subject, nats.ErrConnectionClosed)
}

// pacer spaces repeated attempts, and gives up on a coordinator that is
// connected and has answered nothing for the client's patience.
type pacer struct {
	pause time.Duration
	since time.Time
}

// standBy waits until asking again makes sense: until there is a connection,
// and a growing pause.
func (c *Client) standBy(ctx context.Context, p *pacer) error {
	now := time.Now()
	lost, up := c.link.state()
	select {
	case <-lost:
		if err := c.awaitLink(ctx, up); err != nil {
			return err
		}
		p.since = time.Time{}
	default:
		if p.since.IsZero() {
			p.since = now
		}
		if now.Sub(p.since) > c.opts.Patience {
			return events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "no service answers behind %s after %v", c.opts.Socket, c.opts.Patience)
		}
	}
	p.pause = min(max(2*p.pause, minPause), maxPause)
	return pause(ctx, p.pause)
}

// awaitLink waits for a connection, and has a coordinator started when none
// comes by itself.
func (c *Client) awaitLink(ctx context.Context, up <-chan struct{}) error {
	patience := time.NewTimer(c.opts.Patience)
	defer patience.Stop()
	revive := time.NewTimer(c.opts.ReviveAfter)
	defer revive.Stop()
	for {
		select {
		case <-up:
			return nil
		case <-c.closed:
			return errClosed(c.opts.Socket)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-patience.C:
			return events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "the coordinator on %s is gone and did not come back within %v", c.opts.Socket, c.opts.Patience).
				WithRemedy("start it with: hayward serve; what was accepted is kept")
		case <-revive.C:
			if err := c.revive(ctx); err != nil {
				return err
			}
		}
	}
}

func (c *Client) revive(ctx context.Context) error {
	if c.opts.Revive == nil {
		return nil
	}
	select {
	case c.reviving <- struct{}{}:
		defer func() { <-c.reviving }()
	default:
		return nil // another call is at it
	}
	if err := c.opts.Revive(ctx); err != nil {
		return fmt.Errorf("start the coordinator again: %w", err)
	}
	return nil
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
