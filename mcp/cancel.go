package mcp

import (
	"fmt"

	"github.com/hayward-dev/hayward/events"
)

type cancelArguments struct {
	IDs            []string          `json:"ids"`
	ParentPromptID string            `json:"parent_prompt_id"`
	Labels         map[string]string `json:"labels"`
	All            bool              `json:"all"`
	Kill           bool              `json:"kill"`
	DryRun         bool              `json:"dry_run"`
}

var cancelInput = []argument{
	{"ids", list("the subagents: ids, names, or unambiguous endings of ids", 1, events.MaxQueryIDs)},
	{"parent_prompt_id", text("all of that turn, background ones too; later spawns of it are refused")},
	{"labels", table("all that have all of these labels")},
	{"all", flag("all of this session")},
	{"kill", flag("skip the graceful steps")},
	{"dry_run", flag("only tell what would be cancelled")},
}

// cancelled is what became of one target.
type cancelled struct {
	ID      string               `json:"subagent_id"`
	Name    string               `json:"name,omitempty"`
	Outcome events.CancelOutcome `json:"outcome" jsonschema:"cancelled (no process of it is left), already_finished, not_found, draining (processes are left), would_cancel"`
	Status  events.Status        `json:"status,omitempty"`
}

// cancel ends subagents and returns once no process of them is left.
func (k *call) cancel(a cancelArguments) (*answer, error) {
	targets := 0
	for _, set := range []bool{len(a.IDs) > 0, a.ParentPromptID != "", len(a.Labels) > 0, a.All} {
		if set {
			targets++
		}
	}
	if targets != 1 {
		return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "give exactly one of ids, parent_prompt_id, labels and all")
	}
	timeout := min(k.left(nil).Milliseconds(), events.DefaultCancelMS)
	stop := k.progress("cancelling", func() []string { return nil })
	r, err := k.c.Cancel(k.ctx, events.Cancel{
		ParentSessionID: k.o.Session, Kill: a.Kill, DryRun: a.DryRun, TimeoutMS: &timeout, Reason: events.ReasonParent, Actor: k.actor(),
		Target: events.CancelTarget{IDs: a.IDs, ParentPromptID: a.ParentPromptID, Label: a.Labels, Session: a.All},
	})
	stop()
	if err != nil {
		return nil, err
	}
	out := &answer{body: body{Results: []cancelled{}, Warnings: r.Value.Warnings}}
	missing, draining := 0, 0
	for _, c := range r.Value.Results {
		out.body.Results = append(out.body.Results, cancelled{c.SubagentID, c.Name, c.Outcome, c.Status})
		line := fmt.Sprintf("%s: %s", clean(c.SubagentID), c.Outcome)
		if c.Status != "" {
			line += fmt.Sprintf(" (%s)", c.Status)
		}
		out.lines = append(out.lines, line)
		switch c.Outcome {
		case events.CancelCancelled:
			if len(a.IDs) > 0 { // its end is told here; ends of a group are for read_completions
				out.ends = append(out.ends, c.SubagentID)
			}
		case events.CancelNotFound:
			missing++
		case events.CancelDraining:
			draining++
			out.body.StillRunning = append(out.body.StillRunning, c.SubagentID)
		}
	}
	switch {
	case len(r.Value.Results) == 0:
		out.lines = append(out.lines, "There was nothing to cancel.")
	case missing == len(r.Value.Results):
		return nil, events.Errorf(events.CodeUnknownID, events.LayerCoordinator, "there is no subagent %s in this session", quoted(a.IDs))
	case draining > 0:
		out.body.NextStep = "Some still have processes: call cancel_subagents again with kill."
	}
	return out, nil
}

// actor names who cancels, for the record.
func (k *call) actor() string {
	name := "mcp"
	if p := k.request.Session.InitializeParams(); p != nil && p.ClientInfo != nil {
		name += ": " + clean(p.ClientInfo.Name)
	}
	return head(name, events.MaxActor)
}
