package main

import "github.com/hayward-dev/hayward/internal/daemon"

// runDaemon serves until its context ends. It is a variable so that tests can
// serve a scripted coordinator.
var runDaemon = daemon.Run
