package main

import "github.com/hayward-dev/hayward/internal/daemon"

// runDaemon serves until ctx ends. It is a variable so that tests can serve a
// scripted coordinator.
var runDaemon = daemon.Run
