// Command hayward runs subagents as sandboxed child processes: it is the
// coordinator's daemon (serve) and its command line (every other verb).
//
// stdout is data and stderr is for people. With --json each verb prints one
// object, streams print one object a line, and a failure is an object with the
// member error. The exit codes are in exit.go.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(newApp().run(context.Background(), os.Args[1:]))
}
