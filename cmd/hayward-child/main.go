// Hayward-child is the supervisor of one subagent. The coordinator starts it
// with an empty environment and the descriptors of internal/handoff. It is not
// meant to be run by hand, and refuses: unless the constructor in sandbox/early
// carried out a plan before the Go runtime started, nothing is run.
package main

import (
	"os"

	"github.com/hayward-dev/hayward/child"
	"github.com/hayward-dev/hayward/sandbox/early"
)

func main() {
	os.Exit(child.Main(child.Config{Confined: early.Confined, PlanEnforced: early.PlanEnforced, TimerSlack: early.TimerSlack}))
}
