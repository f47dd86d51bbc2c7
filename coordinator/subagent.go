package coordinator

import (
	"time"

	"github.com/hayward-dev/hayward/events"
)

// subagent is one subagent in [State].
type subagent struct {
	id string
	// ord numbers subagents by creation.
	ord uint64
	// rec is the latest state, durable the latest acknowledged one: nil before the
	// first. What callers are told comes from durable, what is decided from rec.
	// Both point to records that are never changed once an effect carried them.
	rec, durable *events.Record
	// spec is kept until the end is durable.
	spec    *events.Spec
	session *session
	inbox   *inbox
	prompt  *prompt
	// nameSlot is the place in index.byName.
	nameSlot int

	// asked tells that a child was asked for, released that it was let go.
	asked, released bool
	// exited tells that no process of it is left, before its end is told.
	exited bool
	// stop is what the child was last told, or nil.
	stop *events.Stop
	// stopResumed tells that stop is one of an earlier coordinator. Whoever asked
	// for it asks again, and that is no second order.
	stopResumed bool
	// refused is why the spawn was not accepted: its first write failed.
	refused *events.Error
	// dirty tells that rec is not yet in an effect and may be changed in place.
	dirty bool
	// unsettledSince is since when rec is ahead of durable.
	unsettledSince time.Time

	// leaving tells that it is to be removed, forgetting that this is under way,
	// gone that it is done; removeErr is why the last removal failed. forgetGate is
	// written with the removal.
	leaving, forgetting, gone bool
	removeErr                 *events.Error
	forgetGate                *events.Gate

	// feed holds state changes that are published once durable.
	feed []events.FeedEvent
	// waits are the requests that wait for this subagent.
	waits map[wait]struct{}
	// lease hides an unread end from other readers.
	lease *lease
	// The child's timers: to have started, to have ended, to have stopped.
	startTimer, runTimer, stopTimer *timer
}

// endDurable reports whether the end is durable.
func (e *subagent) endDurable() bool { return e.durable != nil && !e.durable.Live() }

// settled reports whether the latest state is durable.
func (e *subagent) settled() bool { return e.durable == e.rec }

// running reports whether e has or is getting a child.
func (e *subagent) running() bool {
	return e.rec.State == events.StatePending || e.rec.State == events.StateActive
}

// holdsSlot reports whether e counts against the limits: it was admitted, and its
// end is not durable. A restart before that would find it running.
func (e *subagent) holdsSlot() bool {
	return e.running() || (!e.rec.Live() && !e.endDurable() && e.rec.PendingAt != nil)
}

// isChild reports whether the caller is a subagent.
func (c Caller) isChild() bool { return events.ValidID(c.Principal) }
