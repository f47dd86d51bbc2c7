package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hayward-dev/hayward/events"
)

// controller sends control messages to children over the bus.
type controller struct{ nc *nats.Conn }

// noResponderPause is how long to wait before asking a child again that is not
// connected yet: its runner starts before its connection is up.
const noResponderPause = 25 * time.Millisecond

// Control asks child id and waits for the answer until ctx ends.
func (c controller) Control(ctx context.Context, id string, ask events.Control) (events.ControlReply, error) {
	var reply events.ControlReply
	body, err := events.Marshal(ask)
	if err != nil {
		return reply, err
	}
	for {
		msg, err := c.nc.RequestWithContext(ctx, events.ControlSubject(id), body)
		if err == nil {
			return reply, events.DecodeRecord(msg.Data, &reply)
		}
		if !errors.Is(err, nats.ErrNoResponders) {
			return reply, events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "%s %s: no answer from the child: %w", ask.Kind, id, err)
		}
		select {
		case <-ctx.Done():
			return reply, events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "%s %s: the child is not connected: %w", ask.Kind, id, context.Cause(ctx))
		case <-time.After(noResponderPause):
		}
	}
}
