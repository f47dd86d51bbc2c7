package main

import (
	"github.com/hayward-dev/hayward/events"
)

// inside returns the id of the subagent that this program runs in, or empty. One
// that names a state directory of its own has a coordinator of its own.
func (a *app) inside() string {
	if a.getenv("HAYWARD_STATE_DIR") != "" {
		return ""
	}
	return a.getenv("HAYWARD_SUBAGENT_ID")
}

// insideError is why the coordinator is out of reach in there.
func insideError(id string, err error) error {
	return events.Errorf(events.CodeForbidden, events.LayerPermission,
		"this runs inside subagent %s, whose sandbox hides the coordinator: subagents cannot spawn or look at others in this version: %s", id, events.AsError(err).Message).
		WithRemedy("run it outside, or set HAYWARD_STATE_DIR to a directory in here for a coordinator of its own")
}
