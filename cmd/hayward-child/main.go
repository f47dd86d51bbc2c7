// Hayward-child is the supervisor of one subagent. The coordinator starts it
// with an empty environment and the descriptors of internal/handoff; it is not
// meant to be run by hand and refuses to.
package main

import (
	"os"

	"github.com/hayward-dev/hayward/child"
)

func main() { os.Exit(child.Main(config)) }
