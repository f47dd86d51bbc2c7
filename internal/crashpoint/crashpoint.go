// Package crashpoint names the places at which a coordinator may die between
// two effects, so that tests can make it die exactly there. Built without the
// tag "crashpoints", [Hit] does nothing and costs nothing.
package crashpoint

// Point is one place.
type Point string

// The points, in the order in which the life of one subagent passes them. Each
// stands directly after the effect in its name and before anything that tells
// of it.
const (
	SpecWritten   Point = "spec-written"   // spec.json is in the run directory, no record yet
	RecordPut     Point = "record-put"     // a record was put, the loop does not know
	Prepared      Point = "prepared"       // TMPDIR, plan and credentials made, nothing forked
	ChildForked   Point = "forked"         // the child blocks on its start pipe, not recorded
	ForkRecorded  Point = "fork-recorded"  // the child is in its record, not let go
	ChildReleased Point = "released"       // the start byte was written
	ChildStarted  Point = "started"        // the runner runs, the record says pending
	StopSent      Point = "stop-sent"      // a stop was asked of the child, not answered
	ChildGone     Point = "gone"           // no process is left, report.json not read
	ResultRead    Point = "result-read"    // the result is known, TMPDIR still there
	EndTold       Point = "end-told"       // TMPDIR removed, the end is not durable
	ResultWritten Point = "result-written" // result.json is in the run directory, the record says active
	FeedPublished Point = "feed-published" // a state was published
	AnswerSent    Point = "answer-sent"    // an answer went out, not acknowledged
	AckTaken      Point = "ack-taken"      // a reader acknowledged, not durable
	GateWritten   Point = "gate-written"   // a cancelled prompt's gate is written, nobody was told
	Condemned     Point = "condemned"      // a run directory is to go, its record is there
	RecordDeleted Point = "record-deleted" // the record is gone, the run directory is not
	Purged        Point = "purged"         // both are gone, the loop does not know

	WorktreeReferred Point = "worktree-referred" // the refs of a new working tree are set, it has no record
	WorktreeMade     Point = "worktree-made"     // a working tree is complete, nothing of the subagent is prepared
	SnapshotReferred Point = "snapshot-referred" // the refs of a working tree's end are set, its record says live
	SnapshotRecorded Point = "snapshot-recorded" // the working tree's record says ended, the directory is there

	WorktreeTaken Point = "worktree-taken" // the directory of a resumed one's working tree was moved to its new owner
	ResumeCopied  Point = "resume-copied"  // the conversation of a resumed one is in the run directory, nothing says so
)

// Worktree lists the points that only a subagent with a working tree passes, in
// their order.
var Worktree = []Point{WorktreeReferred, WorktreeMade, SnapshotReferred, SnapshotRecorded}

// Resume lists the points that only a resumed subagent with a working tree passes.
var Resume = []Point{WorktreeTaken, ResumeCopied}

// The points that the command line passes when it applies a working tree.
const (
	ApplyStaged    Point = "apply-staged"    // new content is beside its targets, none is touched
	ApplyMoved     Point = "apply-moved"     // every target is changed, nothing says so
	ApplyCommitted Point = "apply-committed" // the journal says so, what was replaced is there
)

// Apply lists them in their order.
var Apply = []Point{ApplyStaged, ApplyMoved, ApplyCommitted}

// Removal lists the points that only a removal passes, in their order.
var Removal = []Point{Condemned, RecordDeleted, Purged}

// All lists every point of a subagent's life up to its end: a test visits each.
var All = []Point{
	SpecWritten, RecordPut, Prepared, ChildForked, ForkRecorded, ChildReleased, ChildStarted, StopSent,
	ChildGone, ResultRead, EndTold, ResultWritten, FeedPublished, AnswerSent, AckTaken,
}
