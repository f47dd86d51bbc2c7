package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hayward-dev/hayward/events"
)

// progress reports to a client that asked for it how subagents get on, until what
// it returns is called.
func (k *call) progress(what string, ids func() []string) (stop func()) {
	token := k.request.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(k.wait)
	var reporter sync.WaitGroup
	reporter.Go(func() {
		began, tick := time.Now(), time.NewTicker(k.o.ProgressEvery)
		defer tick.Stop()
		for {
			message := what
			if list := ids(); len(list) > 0 {
				message = k.howFar(ctx, list)
			}
			// It is a service to the client: one that cannot be sent is left out.
			_ = k.request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: token, Message: message,
				Progress: time.Since(began).Seconds(), Total: k.o.CallLimit.Seconds(),
			})
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		reporter.Wait()
	}
}

// howFar is a line about subagents.
func (k *call) howFar(ctx context.Context, ids []string) string {
	r, err := k.c.Query(ctx, events.Query{ParentSessionID: k.o.Session, IDs: ids})
	if err != nil {
		return "the coordinator does not answer"
	}
	ended, last := 0, ""
	for _, s := range r.Value.Snapshots {
		if s.Status.Terminal() {
			ended++
		} else if s.Progress != nil && s.Progress.LastLine != "" {
			last = fmt.Sprintf("; %s: %s", label(s), clean(s.Progress.LastLine))
		}
	}
	return fmt.Sprintf("%d of %d ended%s", ended, len(r.Value.Snapshots), last)
}
