package spawner

import (
	"context"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/sandbox"
)

// Credentials gives children their place on the bus and takes it away.
type Credentials interface {
	// Grant admits the child id with the token of which hash is the SHA-256, in hex.
	Grant(id, hash string)
	// Revoke forgets the token and cuts the child's connections.
	Revoke(id string)
	// Drained is closed once no connection of the child is open: everything it
	// sent has been handed to the server.
	Drained(id string) <-chan struct{}
}

// Controller sends a control message to a child and waits for its answer.
type Controller interface {
	Control(ctx context.Context, id string, c events.Control) (events.ControlReply, error)
}

// Observer is told of children; see the coordinator's port of the same name.
type Observer interface {
	Forked(id string, run int, fork events.Fork)
	Started(id string, run int, report events.SandboxReport)
	Ended(id string, run int, end events.End)
}

// Deadlines bound every wait of a child's life.
type Deadlines struct {
	// Control is how long a child may take to answer a stop (1 s).
	Control time.Duration
	// Grace is how long a command gets between SIGTERM and SIGKILL (10 s).
	Grace time.Duration
	// KillProof is how long processes may take to go after SIGKILL before it is
	// logged that they have not (10 s). The wait itself goes on: Ended is never
	// said while something is left.
	KillProof time.Duration
	// Drain is how long the bus connection may take to reach end of file after
	// the process is gone (2 s).
	Drain time.Duration
	// Heartbeat is the interval of a child's heartbeats (5 s).
	Heartbeat time.Duration
	// MaxRuntime bounds a run whose request sets none (4 h).
	MaxRuntime time.Duration
}

// DefaultDeadlines are those of the documentation.
func DefaultDeadlines() Deadlines {
	return Deadlines{
		Control:    time.Second,
		Grace:      10 * time.Second,
		KillProof:  10 * time.Second,
		Drain:      2 * time.Second,
		Heartbeat:  5 * time.Second,
		MaxRuntime: 4 * time.Hour,
	}
}

// Config is what a Spawner works with. All fields but Log are required.
type Config struct {
	// Root holds the run directories.
	Root rundir.Root
	// ChildBinary is the path of hayward-child.
	ChildBinary string
	// Bus is an O_PATH descriptor of the children's socket directory.
	Bus *os.File
	// BusPath is the path of that directory.
	BusPath string
	// Hidden are directories of ours that no child may reach.
	Hidden []string
	// CacheRoot is what sandboxed children may use as caches.
	CacheRoot string
	Support   sandbox.Support
	Deadlines Deadlines
	// Home is HOME for commands whose client sends none.
	Home string
	// TempRoot is where a child's own TMPDIR is made.
	TempRoot string

	Credentials Credentials
	Controller  Controller
	Observer    Observer
	Log         *zap.Logger
}
