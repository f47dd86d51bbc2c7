package child

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// catchSignals makes every signal that can be caught harmless and returns the
// channel that tells of ended children.
//
// The signals are caught and dropped, not ignored: an ignored signal stays
// ignored over exec, and the command would not notice its SIGTERM. SIGURG is
// left to the Go runtime, which uses and otherwise ignores it.
func catchSignals() <-chan os.Signal {
	dropped := make(chan os.Signal, 1)
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		switch sig {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, unix.SIGCHLD:
		default:
			signal.Notify(dropped, sig)
		}
	}
	guardFaults()
	defaultLibrarySignals()
	// One slot: a notice stands for any number of ended children.
	sigchld := make(chan os.Signal, 1)
	signal.Notify(sigchld, unix.SIGCHLD)
	return sigchld
}
