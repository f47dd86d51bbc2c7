package coordinator

import "github.com/hayward-dev/hayward/events"

// Cause is why a subagent goes from one state to the next.
type Cause string

// The causes.
const (
	CauseAccepted  Cause = "accepted"  // the spawn was taken
	CauseAdmitted  Cause = "admitted"  // a slot was free
	CauseStarted   Cause = "started"   // its child reported that it is confined and running
	CauseEnded     Cause = "ended"     // its child ended, or could not be made
	CauseWithdrawn Cause = "withdrawn" // ended before its child was asked for
	CauseLost      Cause = "lost"      // an earlier coordinator left nothing that could go on
)

// Transition is one legal step. From is empty for a new subagent.
type Transition struct {
	From, To events.State
	Cause    Cause
}

// Transitions are all legal steps. Whatever is not listed does not happen: a
// report that asks for it is dropped and counted.
var Transitions = []Transition{
	{"", events.StateQueued, CauseAccepted},
	{events.StateQueued, events.StatePending, CauseAdmitted},
	{events.StateQueued, events.StateCompleted, CauseWithdrawn},
	{events.StateQueued, events.StateCompleted, CauseLost},
	{events.StatePending, events.StateActive, CauseStarted},
	{events.StatePending, events.StateCompleted, CauseWithdrawn},
	{events.StatePending, events.StateCompleted, CauseEnded},
	{events.StatePending, events.StateCompleted, CauseLost},
	{events.StateActive, events.StateCompleted, CauseEnded},
}

// legal reports whether the table lists t.
func legal(t Transition) bool {
	for _, row := range Transitions {
		if row == t {
			return true
		}
	}
	return false
}
