package coordinator

import (
	"context"

	"github.com/hayward-dev/hayward/events"
)

// The ports: what the coordinator needs of the world. It calls none of them on
// the drain goroutine.

// Journal makes records durable. Its owner is the persister: one call at a time
// for one id, calls for different ids may overlap.
type Journal interface {
	// Put writes p and returns the record's new revision. A revision that does not
	// match is a second writer: [events.CodeStoreConflict]. No space:
	// [events.CodeStorageFull]. A write that failed otherwise may have happened; it
	// is given again with the same revision and the same or a later state, which
	// is then no conflict.
	Put(ctx context.Context, p Put) (revision uint64, err error)
	// Delete removes a finished record and its run directory. It is decided or has
	// not happened: what a crash interrupts is finished at the next start.
	Delete(ctx context.Context, id string, revision uint64) error
	// PutGate writes a gate in place of the one of the same session and prompt;
	// DeleteGate removes it, and none is no error.
	PutGate(ctx context.Context, g events.Gate) error
	DeleteGate(ctx context.Context, session, prompt string) error
}

// Put is one write of one record.
type Put struct {
	Record events.Record
	// Revision is that of the last write of this id, 0 for the first.
	Revision uint64
	// Spec is set on the first write: it goes into the run directory before the
	// record is acknowledged. A terminal record is written there as well.
	Spec *events.Spec
}

// Stored is a record as loaded at start.
type Stored struct {
	Record   events.Record
	Revision uint64
	// Spec is nil for finished records.
	Spec *events.Spec
}

// Spawner makes, watches and ends child processes. Its methods return at once;
// what happens is told to an [Observer].
type Spawner interface {
	// Start prepares and forks. Told: Forked, or Ended if it failed, in which case
	// everything was undone.
	Start(spec events.Spec)
	// Release lets a forked child go. Told: Started, later Ended.
	Release(id string)
	// Stop ends a child in any phase, one that was only asked to Start too. Told:
	// Ended. Stopping an unknown or ended id does nothing.
	Stop(id string, stop events.Stop)
	// Adopt takes over a child of an earlier coordinator, or finds that it is
	// gone. Told: Ended, then or later; before that Started, if record is pending
	// and the child can be seen to run.
	Adopt(spec events.Spec, record events.Record)
}

// Observer is told of children. [Coordinator] implements it; the calls never
// block and may come from any goroutine.
type Observer interface {
	Forked(id string, run int, fork events.Fork)
	Started(id string, run int, report events.SandboxReport)
	// Ended is the last word on a run: no process of it is left.
	Ended(id string, run int, end events.End)
}

// Publisher puts feed events on the bus, in the order given.
type Publisher interface {
	Publish(ctx context.Context, e events.FeedEvent) error
}

// Files reads what subagents wrote.
type Files interface {
	// Output returns at most limit bytes of id's stdout, head and tail.
	Output(id string, limit int) (events.Output, error)
	// Progress returns the latest of a running subagent, or nil.
	Progress(id string) *events.Progress
}

// Responder takes the answer of one request, exactly once. It is called on the
// replier goroutine and must not block for long.
type Responder interface {
	Answer(a Answer)
}

// Answer is a reply or an error, never both.
type Answer struct {
	Reply any
	Error *events.Error
	// Reads are the ids that count as read once the client acknowledges the
	// reply; AckToken, when set, is the token it does that with.
	Reads    []string
	AckToken string
}

// Caller says who asks.
type Caller struct {
	// Principal is "client" or the id of a child.
	Principal string
	// Depth and Session are those of a child; a client names its session itself.
	Depth   int
	Session string
}
