package client

import (
	"context"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Inside returns the subagent that a program with this environment runs in, and the
// socket at which it asks in that one's name; both are empty outside, in a subagent
// that may not spawn, and where a state directory is named: that is a coordinator of
// its own.
func Inside(getenv func(string) string) (id, socket string) {
	id, socket = getenv(events.VariableSubagent), getenv(events.VariableBus)
	if socket == "" || !events.ValidID(id) || getenv("HAYWARD_STATE_DIR") != "" {
		return "", ""
	}
	return id, socket
}

// Inside returns the id of the subagent in whose name c asks, or empty.
func (c *Client) Inside() string { return c.opts.Inside }

// backPause is how long a coordinator that is away is given to come back before the
// next attempt: nobody inside can start one.
const backPause = 100 * time.Millisecond

func comesBack(ctx context.Context) error { return pause(ctx, backPause) }

// inbox is where replies come in.
func (o Options) inbox() string {
	if o.Inside != "" {
		return events.RPCInbox(o.Inside)
	}
	return events.ClientInboxPrefix
}

// subject is where c sends event k.
func (c *Client) subject(k events.Kind) string {
	if c.opts.Inside != "" {
		return events.RPCSubject(c.opts.Inside, k)
	}
	return events.RequestSubject(k)
}

// outside refuses what is not to be had from inside a subagent.
func (c *Client) outside(what string) error {
	if c.opts.Inside == "" {
		return nil
	}
	return events.Errorf(events.CodeForbidden, events.LayerPermission,
		"%s: this runs inside subagent %s, which sees only what it spawned itself", what, c.opts.Inside).
		WithRemedy("run it outside")
}
