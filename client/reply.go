package client

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hayward-dev/hayward/events"
)

const ackTimeout = 5 * time.Second

// Reply is a reply and the right to say that it has arrived.
type Reply[T any] struct {
	// Value is the reply itself.
	Value T

	c *Client
	// ack is the subject that acknowledges the reply, empty when it needs none.
	ack string
}

// NeedsAck reports whether the reply hands over ends that stay unread until
// [Reply.Ack].
func (r Reply[T]) NeedsAck() bool { return r.ack != "" }

// Ack tells the coordinator that the value arrived where it belongs, so the
// ends in it count as read. It does nothing for a reply that needs none. When it
// fails, or comes over five seconds after the reply, they stay unread.
func (r Reply[T]) Ack(ctx context.Context) error {
	if r.ack == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	if err := r.c.nc.Publish(r.ack, nil); err != nil {
		return fmt.Errorf("acknowledge the reply: %w", err)
	}
	if err := r.c.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("acknowledge the reply: %w", err)
	}
	return nil
}

// decode reads a reply, or the error that came instead.
func decode[T any](c *Client, subject string, msg *nats.Msg) (Reply[T], error) {
	r := Reply[T]{c: c, ack: msg.Header.Get(events.HeaderAck)}
	if err := serviceError(msg); err != nil {
		return r, err
	}
	if err := events.DecodeRecord(msg.Data, &r.Value); err != nil {
		return r, events.Errorf(events.CodeInternal, events.LayerCoordinator, "the reply on %s is malformed: %w", subject, err)
	}
	return r, nil
}

// serviceError returns the error in msg, or nil. The body has it whole; a
// foreign or older service may send the headers only.
func serviceError(msg *nats.Msg) error {
	text, code := msg.Header.Get(micro.ErrorHeader), msg.Header.Get(micro.ErrorCodeHeader)
	if text == "" && code == "" {
		return nil
	}
	var e events.Error
	if len(msg.Data) > 0 && events.DecodeRecord(msg.Data, &e) == nil && e.Code != "" {
		return &e
	}
	if code == "" {
		code = string(events.CodeInternal)
	}
	return events.Errorf(events.Code(code), events.LayerCoordinator, "%s", text)
}
