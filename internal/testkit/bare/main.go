// Bare is hayward-child without its constructor, for tests of the supervisor
// alone: nothing confines it. It is built by testkit and never installed.
package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/child"
	"github.com/hayward-dev/hayward/internal/handoff"
)

func main() {
	// The constructor closes what a careless parent left open. Here the runtime
	// has opened files of its own already, so they are only kept from the command.
	if err := unix.CloseRange(handoff.FDLast+1, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		fmt.Fprintf(os.Stderr, "bare: close_range: %v\n", err)
		os.Exit(child.ExitRefused)
	}
	os.Exit(child.Main(child.Config{
		Confined:     func() bool { return true },
		PlanEnforced: func() bool { return false },
	}))
}
