package mcp

import (
	"context"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

// call is one call of a tool.
type call struct {
	*Server
	request *sdk.CallToolRequest
	c       *client.Client
	// ctx ends with the call: when the client cancels it, or at the limit.
	ctx context.Context
	// wait ends earlier when the connection does: then it is time to answer.
	wait context.Context
	// until is when waiting is over, so that there is time left to answer.
	until time.Time
}

// The causes of the ends of a call's contexts.
var (
	errLimit = errors.New("the call took too long")
	errGone  = errors.New("the connection has ended")
)

// handler makes the SDK's handler of a tool.
func (s *Server) handler(life context.Context, t tool) sdk.ToolHandler {
	return func(clientCtx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		began := time.Now()
		ctx, cancel := context.WithTimeoutCause(clientCtx, s.o.CallLimit, errLimit)
		defer cancel()
		wait, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		defer context.AfterFunc(life, func() { stop(errGone) })()
		k := &call{
			Server: s, request: r, ctx: ctx, wait: wait,
			until: began.Add(s.o.CallLimit - s.o.CallLimit/9), // 40 s of 45 s
		}
		a, err := k.run(t)
		if clientCtx.Err() != nil {
			if a != nil { // the SDK answers for us, with an error
				s.ledger.giveBack(a.ends)
			}
			return nil, context.Cause(clientCtx)
		}
		if err != nil {
			return failure(err, t), nil
		}
		return a.result()
	}
}

func (k *call) run(t tool) (*answer, error) {
	select {
	case k.slots <- struct{}{}:
		defer func() { <-k.slots }()
	default:
		return nil, events.Errorf(events.CodeBusy, events.LayerGate, "%d calls of this connection are in flight", maxCalls).
			WithRemedy("wait for an answer before you call again")
	}
	do, refusal := t.decode(k.request.Params.Arguments)
	if refusal != nil {
		return nil, refusal
	}
	var err error
	if k.c, err = k.client(k.ctx); err != nil {
		return nil, k.explain(err)
	}
	if err := k.acknowledge(k.ctx, k.c); err != nil {
		return nil, k.explain(err)
	}
	a, err := do(k)
	return a, k.explain(err)
}

// explain turns the end of the call's own time into an error that says so.
func (k *call) explain(err error) error {
	if err != nil && k.ctx.Err() != nil && errors.Is(context.Cause(k.ctx), errLimit) {
		return events.Errorf(events.CodeTimeout, events.LayerCoordinator, "no answer of the coordinator within %v: %w", k.o.CallLimit, err).
			WithRemedy("call list_subagents to see what there is, then go on from there")
	}
	return err
}

// left is how long the call may wait, at most ms if that is given.
func (k *call) left(ms *int64) time.Duration {
	left := max(time.Until(k.until), time.Millisecond)
	if ms != nil {
		left = min(left, time.Duration(*ms)*time.Millisecond)
	}
	return left
}

// gone reports whether err only means that the connection ended: the call answers
// with what there is.
func (k *call) gone(err error) bool {
	return err != nil && k.wait.Err() != nil && k.ctx.Err() == nil
}

// snapshots reads subagents as they are now.
func (k *call) snapshots(ids []string) (events.QueryReply, error) {
	r, err := k.c.Query(k.ctx, events.Query{ParentSessionID: k.o.Session, IDs: ids})
	return r.Value, err
}
