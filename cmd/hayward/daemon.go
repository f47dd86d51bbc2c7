package main

import (
	"context"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/daemon"
)

// runDaemon serves until ctx ends. It is a variable so that tests can serve a
// scripted coordinator.
var runDaemon = func(context.Context, daemon.Options) error {
	return events.Errorf(events.CodeUnsupported, events.LayerCoordinator, "this build has no daemon")
}
