package spawner

import (
	"context"
	"errors"
	"fmt"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/outputschema"
)

// self is the program of this process, whatever has become of its file.
const self = "/proc/self/exe"

// structure checks the answer of an agent that succeeded against the schema of its
// spec. What does not meet it, or cannot be validated, is a failure.
func (c *child) structure(end *events.End, report *events.Report) {
	if c.spec.Agent == nil || c.spec.Agent.OutputSchema == nil || end.Status != events.StatusCompleted || report == nil || end.Agent == nil {
		return
	}
	validate := c.s.cfg.Validate
	if validate == nil {
		validate = func(ctx context.Context, schema, result []byte) ([]byte, error) {
			return outputschema.Run(ctx, self, schema, result)
		}
	}
	value, err := validate(context.Background(), c.spec.Agent.OutputSchema, []byte(report.Answer))
	mismatch := new(outputschema.MismatchError)
	switch {
	case errors.As(err, &mismatch):
		end.Error = events.Errorf(events.CodeOutputMismatch, events.LayerGate, "run %s: its result does not meet output_schema: %w", c.spec.ID, err).
			WithRemedy("spawn it again, or ask for less in the schema")
	case err != nil:
		end.Error = events.Errorf(events.CodeOutputMismatch, events.LayerGate, "run %s: its result could not be compared with output_schema: %w", c.spec.ID, err).
			WithRemedy("its output has the result; a simpler schema may do")
	case len(value) > events.MaxStructured:
		end.Agent.Warnings = append(end.Agent.Warnings, fmt.Sprintf("its structured result has %d bytes and is only in its output", len(value)))
		return
	default:
		end.Agent.Structured = value
		return
	}
	end.Status, end.Reason = events.StatusFailed, events.ReasonExit
}
