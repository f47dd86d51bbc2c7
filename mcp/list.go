package mcp

import (
	"fmt"

	"github.com/hayward-dev/hayward/events"
)

// listPage is how many subagents a list has at most: a line each.
const listPage = 50

// shownLimits are the limits that a parent may run into.
var shownLimits = []string{"per_session", "total", "queue_length", "depth", "max_runtime_ms", "max_memory_bytes"}

type listArguments struct {
	Finished bool   `json:"include_finished"`
	After    string `json:"after"`
	Max      *int64 `json:"max"`
}

var listInput = []argument{
	{"include_finished", flag("also those that have ended and are kept")},
	{"after", text("goes on behind this id: the member after of the last answer")},
	{"max", number("how many at most", 1, listPage)},
}

// list lists the session's subagents, oldest first. It hands over no end.
func (k *call) list(a listArguments) (*answer, error) {
	if err := within("max", a.Max, 1, listPage); err != nil {
		return nil, err
	}
	most := int64(listPage)
	if a.Max != nil {
		most = *a.Max
	}
	r, err := k.c.ListActive(k.ctx, events.ListActive{
		ParentSessionID: k.o.Session, IncludeFinished: a.Finished, After: a.After, Max: int(most),
	})
	if err != nil {
		return nil, err
	}
	out := &answer{rows: r.Value.Subagents, body: body{Subagents: []subagent{}, After: r.Value.Next, More: r.Value.Next != "", Warnings: r.Value.Warnings}}
	if status, err := k.c.Status(k.ctx); err == nil { // else it is a list without limits
		out.body.Limits = make(map[string]int64)
		for _, name := range shownLimits {
			if n, ok := status.Limits[name]; ok {
				out.body.Limits[name] = n
			}
		}
	}
	for _, s := range r.Value.Subagents {
		if !s.Status.Terminal() {
			out.body.StillRunning = append(out.body.StillRunning, s.SubagentID)
		}
	}
	if len(out.rows) == 0 {
		out.lines = []string{"There is none."}
	}
	if out.body.More {
		out.body.NextStep = fmt.Sprintf("There are more: call list_subagents with after %q.", out.body.After)
	}
	return out, nil
}
