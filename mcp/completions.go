package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

// leaseMS is how long an end that was handed over is hidden from other readers of
// the session. This connection does not offer it again anyway; it bounds how long
// an end is out of reach when this process dies.
const leaseMS = 60_000

type completionsArguments struct {
	Max    *int64 `json:"max"`
	WaitMS *int64 `json:"wait_ms"`
}

var completionsInput = []argument{
	{"max", number("how many at most (default 10)", 1, maxIDs)},
	{"wait_ms", number("when there is none, wait at most that long for one; a call takes less than a minute whatever is asked. Default 0: do not wait", 0, events.MaxQueryMS)},
}

// completions hands over the ends that the session has not read.
func (k *call) completions(a completionsArguments) (*answer, error) {
	if err := errors.Join(asError(within("max", a.Max, 1, maxIDs)), asError(within("wait_ms", a.WaitMS, 0, events.MaxQueryMS))); err != nil {
		return nil, err
	}
	most := 10
	if a.Max != nil {
		most = int(*a.Max)
	}
	out := &answer{body: body{Subagents: []subagent{}}}
	again, err := k.returned(most)
	if err != nil {
		return nil, err
	}
	out.handOver(again)
	if len(again) < most {
		fresh, more, err := k.unread(most-len(again), a.WaitMS, len(again) == 0)
		if err != nil {
			k.ledger.giveBack(out.ends)
			return nil, err
		}
		out.handOver(fresh)
		out.body.More = more
	} else {
		out.body.More = true
	}
	switch {
	case len(out.shown) == 0:
		live, err := k.c.ListActive(k.ctx, events.ListActive{ParentSessionID: k.o.Session, Max: maxIDs})
		if err != nil {
			return nil, err
		}
		for _, s := range live.Value.Subagents {
			if s.ParentID == k.c.Inside() {
				out.body.StillRunning = append(out.body.StillRunning, s.SubagentID)
			}
		}
		out.lines = []string{"Nothing has ended that you have not read."}
		if len(out.body.StillRunning) > 0 {
			out.body.NextStep = stillRunning(out.body.StillRunning)
		}
	case out.body.More:
		out.body.NextStep = "There are more: call read_completions again."
	}
	return out, nil
}

// asError keeps the nil of a typed error nil.
func asError(e *events.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// returned reads again what was in answers that the client gave up.
func (k *call) returned(most int) ([]events.Snapshot, error) {
	ends := k.ledger.takeReturned(most)
	if len(ends) == 0 {
		return nil, nil
	}
	r, err := k.snapshots(idsOf(ends))
	if err != nil {
		k.ledger.giveBack(ends)
		return nil, err
	}
	return r.Snapshots, nil
}

// unread leases unread ends. It waits for one, if it may and there is none.
func (k *call) unread(most int, waitMS *int64, mayWait bool) (list []events.Snapshot, more bool, err error) {
	ask := func() ([]events.Snapshot, bool, error) {
		lease := int64(leaseMS)
		r, err := k.c.Completions(k.ctx, events.Completions{
			ParentSessionID: k.o.Session, LeaseMS: &lease, Max: &most, SuppressIDs: k.suppressed(),
		})
		if err != nil || len(r.Value.Completions) == 0 {
			return nil, r.Value.More, err
		}
		list, err := k.whole(r.Value.Completions)
		return list, r.Value.More, err
	}
	list, more, err = ask()
	if err != nil || len(list) > 0 || !mayWait || waitMS == nil || *waitMS == 0 {
		return list, more, err
	}
	ctx, cancel := context.WithTimeout(k.wait, k.left(waitMS))
	defer cancel()
	// What ends from here on is seen; what ended before it, by the next question.
	next, stopWatching, err := k.watch(ctx)
	if err != nil {
		return nil, false, k.unlessOver(ctx, err)
	}
	defer stopWatching()
	stop := k.progress("waiting for an end", func() []string { return nil })
	defer stop()
	for {
		if list, more, err = ask(); err != nil || len(list) > 0 {
			return list, more, err
		}
		if err := next(); err != nil {
			return nil, false, k.unlessOver(ctx, err)
		}
	}
}

// watch returns what waits for the next end. Inside a subagent there is no feed: it
// waits for what lives then.
func (k *call) watch(ctx context.Context) (next func() error, stop func(), err error) {
	if k.c.Inside() != "" {
		return func() error { return k.anyEnd(ctx) }, func() {}, nil
	}
	feed, err := k.c.Feed(ctx, client.FeedFilter{Session: k.o.Session})
	if err != nil {
		return nil, nil, err
	}
	// The error of its close is that of the connection, which calls report.
	return func() error { return nextEnd(ctx, feed) }, func() { _ = feed.Close() }, nil
}

// anyPause is how often it is looked for what lives when there is nothing.
const anyPause = time.Second

// anyEnd waits until one of those has ended that live now; of those that ended before
// that, the next question tells.
func (k *call) anyEnd(ctx context.Context) error {
	live, err := k.c.ListActive(ctx, events.ListActive{ParentSessionID: k.o.Session, Max: events.MaxQueryIDs})
	if err != nil {
		return err
	}
	ids := make([]string, 0, len(live.Value.Subagents))
	for _, s := range live.Value.Subagents {
		ids = append(ids, s.SubagentID)
	}
	if len(ids) == 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(anyPause):
			return nil
		}
	}
	_, err = k.c.Wait(ctx, events.Query{ParentSessionID: k.o.Session, IDs: ids, Mode: events.QueryAny}, 0)
	return err
}

// unlessOver is err, or nil when it is that of a wait that is over.
func (k *call) unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil && k.ctx.Err() == nil {
		return nil
	}
	return err
}

// nextEnd waits for an end. A gap may have hidden one.
func nextEnd(ctx context.Context, feed *client.Feed) error {
	for {
		e, err := feed.Next(ctx)
		switch {
		case errors.Is(err, client.ErrFeedGap):
			return nil
		case err != nil:
			return err
		case e.Status.Terminal():
			return nil
		}
	}
}

// suppressed are the ends that this connection has handed over already.
func (k *call) suppressed() []string {
	held := k.ledger.held()
	return held[:min(len(held), events.MaxAckIDs)]
}

// whole are ends with as much output as a query has.
func (k *call) whole(ends []events.Completion) ([]events.Snapshot, error) {
	var ids []string
	for _, e := range ends {
		ids = append(ids, e.SubagentID)
	}
	r, err := k.snapshots(ids)
	if err != nil {
		return nil, err
	}
	list := r.Snapshots
	for _, e := range ends {
		if !slices.ContainsFunc(list, func(s events.Snapshot) bool { return s.SubagentID == e.SubagentID }) {
			list = append(list, e.Snapshot)
		}
	}
	return list, nil
}

// idsOf are the ids of dedupe ids.
func idsOf(ends []string) []string {
	var ids []string
	for _, end := range ends {
		id, _, _ := strings.Cut(end, ".")
		ids = append(ids, id)
	}
	return ids
}

type outstandingArguments struct {
	ParentPromptID string `json:"parent_prompt_id"`
}

var outstandingInput = []argument{
	{"parent_prompt_id", text("the turn; without it, the whole session")},
}

// outstanding says what is open.
type outstanding struct {
	ParentPromptID string   `json:"parent_prompt_id,omitempty"`
	LiveIDs        []string `json:"live_ids" jsonschema:"foreground subagents that live: they hold the turn open"`
	BackgroundLive bool     `json:"background_live"`
	Unread         int      `json:"unread" jsonschema:"ends that nobody has read, at most 100 are counted for a session"`
	UsageSettled   *bool    `json:"usage_settled,omitzero"`
}

// outstanding tells what of a turn, or of the session, is not finished.
func (k *call) outstanding(a outstandingArguments) (*answer, error) {
	o := &outstanding{ParentPromptID: a.ParentPromptID, LiveIDs: []string{}}
	out := &answer{body: body{Outstanding: o}}
	if a.ParentPromptID != "" {
		r, err := k.c.Outstanding(k.ctx, events.Outstanding{ParentSessionID: k.o.Session, ParentPromptID: a.ParentPromptID})
		if err != nil {
			return nil, err
		}
		v := r.Value
		o.LiveIDs, o.BackgroundLive, o.Unread, o.UsageSettled = append(o.LiveIDs, v.LiveIDs...), v.BackgroundLive, v.Unread, &v.UsageSettled
		out.body.Warnings = v.Warnings
	} else {
		live, err := k.c.ListAll(k.ctx, events.ListActive{ParentSessionID: k.o.Session})
		if err != nil {
			return nil, err
		}
		for _, s := range live.Subagents {
			switch {
			case s.ParentID != k.c.Inside(): // nested: its spawner sees to it
			case s.Background:
				o.BackgroundLive = true
			default:
				o.LiveIDs = append(o.LiveIDs, s.SubagentID)
			}
		}
		slices.Sort(o.LiveIDs)
		r, err := k.c.Completions(k.ctx, events.Completions{ParentSessionID: k.o.Session, Peek: true, SuppressIDs: k.suppressed()})
		if err != nil {
			return nil, err
		}
		o.Unread = len(r.Value.Completions)
	}
	o.LiveIDs = o.LiveIDs[:min(len(o.LiveIDs), events.MaxPage)]
	background := "none"
	if o.BackgroundLive {
		background = "some"
	}
	out.lines = []string{fmt.Sprintf("Live in the foreground: %d. Live in the background: %s. Ended and unread: %d.", len(o.LiveIDs), background, o.Unread)}
	switch {
	case o.Unread > 0:
		out.body.NextStep = "Call read_completions for what has ended."
	case len(o.LiveIDs) > 0 || o.BackgroundLive:
		out.body.NextStep = "Call read_completions with wait_ms to wait for the next end."
	}
	return out, nil
}
