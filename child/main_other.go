//go:build !linux

package child

import (
	"fmt"
	"os"
	"runtime"
)

// Main refuses: confinement and supervision are those of Linux.
func Main(Config) int {
	fmt.Fprintf(os.Stderr, "hayward-child: %s is not supported\n", runtime.GOOS)
	return ExitRefused
}
