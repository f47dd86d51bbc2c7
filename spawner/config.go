package spawner

import (
	"context"
	"os"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/deadlines"
	"github.com/hayward-dev/hayward/internal/kernelaudit"
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

// Config is what a Spawner works with. All fields but Audit and Log are required.
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
	// Deadlines are those in force, none of them zero.
	Deadlines deadlines.Set
	// Home is HOME for commands whose client sends none.
	Home string
	// TempRoot is the directory that holds the TMPDIR of each child, of this user
	// alone. It is made when it is needed; where something else has its name, one
	// beside it is.
	TempRoot string
	// Profiles is the path of the global sandbox.toml, which may be missing.
	Profiles string
	// Protected are paths of ours that no child may write, Secrets those that none
	// may read either.
	Protected, Secrets []string

	// ModelCost is what the calls of an agent that has ended cost, once all of them
	// are counted; nil if it made none.
	ModelCost func(ctx context.Context, id string) *events.Cost
	// Validate returns a result that meets a JSON Schema, or says how it does not by
	// an [outputschema.MismatchError]. Nil: this program does, in another process.
	Validate func(ctx context.Context, schema, result []byte) ([]byte, error)
	// Audit is the kernel's log of refusals, nil where it is not read.
	Audit *kernelaudit.Log
	// Worktrees is for isolation worktree.
	Worktrees Worktrees
	// ModelCredential is what the agent of a run presents to the gateway.
	ModelCredential func(id string, run int) string

	// Exited tells that no process of a child that may spawn is left, and waits until
	// nothing that it spawned lives; left is what does at the deadline, and then it is
	// told again. The code shutting_down leaves that to the next coordinator. Nil:
	// nobody spawns from inside.
	Exited func(ctx context.Context, id string, run int) (left int, err error)
	// Program is the path of hayward, for agents that may spawn. Empty: they get no
	// tools for that.
	Program string
	// ModelUsage is what a child used of the gateway, at its end. Nil: nothing.
	ModelUsage func(id string) events.Usage

	Credentials Credentials
	Controller  Controller
	Observer    Observer
	Log         *zap.Logger
}
