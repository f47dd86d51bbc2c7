package mcp

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MetaEnds is the member of an answer's _meta that lists the ends that the answer
// hands over, by their dedupe ids; what a cancel ended, by its id.
const MetaEnds = "hayward/ends"

// lastAnswers bounds how long the answers of calls in flight take when the
// connection ends.
const lastAnswers = 5 * time.Second

// transport tells a ledger what comes and goes on a connection.
type transport struct {
	sdk.Transport
	life   context.Context
	ledger *ledger
	// end ends every wait.
	end func()
}

// Connect implements sdk.Transport.
func (t *transport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{Connection: c, t: t}, nil
}

type connection struct {
	sdk.Connection
	t *transport
}

// Read implements sdk.Connection. It reports the end of the connection once the
// calls in flight have their answers: after it nothing can be written.
func (c *connection) Read(context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(c.t.life)
	if err != nil {
		ended := c.t.life.Err() != nil
		c.t.end()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.life), lastAnswers)
		defer cancel()
		c.t.ledger.drain(ctx)
		if ended {
			err = io.EOF
		}
		return nil, err
	}
	if r, ok := msg.(*jsonrpc.Request); ok {
		c.t.ledger.request(r)
	}
	return msg, nil
}

// request notes what a message of the client means for the answers.
func (l *ledger) request(r *jsonrpc.Request) {
	switch {
	case r.IsCall() && r.Method == "tools/call":
		l.arrived(r.ID)
	case r.Method == "notifications/cancelled":
		var params struct {
			RequestID any `json:"requestId"`
		}
		if json.Unmarshal(r.Params, &params) != nil {
			return // the SDK says so to the client
		}
		if id, err := jsonrpc.MakeID(params.RequestID); err == nil {
			l.cancelled(id)
		}
	}
}

// Write implements sdk.Connection.
func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	r, ok := msg.(*jsonrpc.Response)
	if !ok {
		return c.Connection.Write(ctx, msg)
	}
	var result struct {
		Meta struct {
			Ends []string `json:"hayward/ends"`
		} `json:"_meta"`
	}
	if r.Error == nil {
		// A result of another shape has no ends.
		_ = json.Unmarshal(r.Result, &result)
	}
	written := c.t.ledger.answering(r.ID, result.Meta.Ends)
	err := c.Connection.Write(ctx, msg)
	written(err)
	return err
}
