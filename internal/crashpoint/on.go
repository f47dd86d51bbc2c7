//go:build crashpoints

package crashpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Enabled tells whether [Hit] can end the process.
const Enabled = true

// Variable names the point to die at, and after a colon on which visit.
const Variable = "HAYWARD_CRASHPOINT"

var (
	wanted, visit = parse(os.Getenv(Variable))
	visits        atomic.Int64
)

func parse(s string) (Point, int64) {
	name, count, ok := strings.Cut(s, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if !ok || err != nil || n < 1 {
		n = 1
	}
	return Point(name), n
}

// Hit ends the process with SIGKILL at p if a test asked for it: no deferred
// function runs and nothing is flushed.
func Hit(p Point) {
	if p != wanted || visits.Add(1) != visit {
		return
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal takes effect before this could matter
}
