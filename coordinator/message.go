package coordinator

import "github.com/hayward-dev/hayward/events"

// Message is what [State.Apply] takes: a command of a caller, the answer of an
// effect, or the clock. Only types of this package implement it.
type Message interface{ isMessage() }

// Commands.
type (
	// Request is one of the six events with whom to answer.
	Request struct {
		Caller    Caller
		Event     events.SubagentEvent
		Responder Responder
		// Trace is where a spawned subagent stands in a distributed trace, nil for in
		// none.
		Trace *events.Trace
		// Agent is what the type of a spawn was resolved to; nil for a plain command.
		Agent *events.AgentSpec
		// Spawns says what the subagent may spawn itself, where the limit of depth
		// leaves room for that.
		Spawns *events.Spawns
		// Resume is what a spawn goes on from, and Warnings what its caller is told; nil
		// for one that begins anew.
		Resume   *events.ResumeSource
		Warnings []string

		// digest is that of the spawn, made outside the loop.
		digest string
	}
	// Ack acknowledges a reply that carried Token. By is the subagent that does,
	// empty for a client: it acknowledges nothing but ends of what it spawned.
	Ack struct{ Token, By string }
	// Abandoned tells that the caller of a request is gone.
	Abandoned struct{ Responder Responder }
	// Lookup asks for the durable record that Ref names. The reply is [Found].
	Lookup struct {
		Session, Ref string
		Responder    Responder
	}
	// Remove and Prune take finished subagents away. The reply is
	// [events.RemoveReply].
	Remove struct {
		Request   events.RemoveRequest
		Responder Responder
	}
	Prune struct {
		Request   events.PruneRequest
		Responder Responder
	}
	// AskStats asks how the coordinator is. The reply is [Stats].
	AskStats struct{ Responder Responder }
	// ShutDown ends the coordinator. The reply is [events.ShutdownReply]. A second
	// one with Kill escalates.
	ShutDown struct {
		Request   events.ShutdownRequest
		Responder Responder
	}
)

// Answers of effects, and the clock.
type (
	// Restore brings what an earlier coordinator left. It is the first message of
	// a [State] or never comes.
	Restore struct {
		Stored []Stored
		Gates  []events.Gate
	}
	// Forked, Started and Ended are what an [Observer] is told.
	Forked struct {
		ID   string
		Run  int
		Fork events.Fork
	}
	Started struct {
		ID     string
		Run    int
		Report events.SandboxReport
	}
	Ended struct {
		ID  string
		Run int
		End events.End
	}
	// Exited tells that no process of a subagent is left. It is answered with [Gone]
	// once nothing that it spawned lives; its own end follows.
	Exited struct {
		ID        string
		Run       int
		Responder Responder
	}
	// Persisted tells that Record is durable, and with it every earlier state of
	// that id.
	Persisted struct{ Record *events.Record }
	// PersistFailed tells that one attempt to write an id failed. The persister
	// goes on trying.
	PersistFailed struct {
		ID  string
		Err *events.Error
	}
	// GatePersisted tells that Gate is durable.
	GatePersisted struct{ Gate events.Gate }
	// Forgotten tells that an id was removed, or with Err that it was not.
	Forgotten struct {
		ID  string
		Err *events.Error
	}
	// ShutdownExpired ends the wait of every [ShutDown] with what is so far.
	ShutdownExpired struct{}
	// Halt ends the coordinator at once; children are left alone.
	Halt struct{ Err *events.Error }
	// Tick lets due timers fire, at most [timersPerTick] of them.
	Tick struct{}
	// barrier does nothing on purpose: done is closed once every message before it
	// was applied.
	barrier struct{ done chan struct{} }
)

func (Request) isMessage()         {}
func (Ack) isMessage()             {}
func (Abandoned) isMessage()       {}
func (Lookup) isMessage()          {}
func (Remove) isMessage()          {}
func (Prune) isMessage()           {}
func (AskStats) isMessage()        {}
func (ShutDown) isMessage()        {}
func (Restore) isMessage()         {}
func (Forked) isMessage()          {}
func (Started) isMessage()         {}
func (Ended) isMessage()           {}
func (Exited) isMessage()          {}
func (Persisted) isMessage()       {}
func (PersistFailed) isMessage()   {}
func (GatePersisted) isMessage()   {}
func (Forgotten) isMessage()       {}
func (ShutdownExpired) isMessage() {}
func (Halt) isMessage()            {}
func (Tick) isMessage()            {}
func (barrier) isMessage()         {}

// Found answers a [Lookup].
type Found struct{ Record events.Record }

// Stats is how a coordinator is.
type Stats struct {
	// Counts by state, and of ends that nobody has read.
	Queued, Pending, Active, Completed, Unread int
	// Stopping counts live children that were told to end.
	Stopping int
	// Unsettled counts records whose latest state is not durable yet.
	Unsettled int
	// Waiting counts requests that wait for something to happen.
	Waiting int
	// LateReports counts reports of ended, stopped or unknown runs; they were
	// dropped. LateAcks counts acknowledgements that came too late.
	LateReports, LateAcks int64
	// StoreError is why records cannot be written now, or nil.
	StoreError *events.Error
	// ShuttingDown is true once no spawn is accepted any more.
	ShuttingDown bool
}

// Effect is what [State.Apply] wants done. Only types of this package
// implement it.
type Effect interface{ isEffect() }

// The effects. Records and specs they point to are never changed afterwards.
type (
	// Persist makes Record durable. Told: [Persisted], perhaps of a later state of
	// the same id; before that any number of [PersistFailed].
	Persist struct {
		Record *events.Record
		// Spec is set for an id that was not durable when this was made.
		Spec *events.Spec
	}
	// PersistGate makes Gate durable, however often it takes. Told:
	// [GatePersisted], perhaps of a later one of the same prompt. ForgetGate removes
	// the gate of a prompt.
	PersistGate struct{ Gate events.Gate }
	ForgetGate  struct{ Session, Prompt string }
	// Forget removes a finished subagent whose latest state is durable; before that
	// it writes Gate, if that is set. Told: [Forgotten].
	Forget struct {
		ID   string
		Gate *events.Gate
	}
	// Publish puts one event on the feed.
	Publish struct{ Event events.FeedEvent }
	// Reply answers To. What it speaks of is durable.
	Reply struct {
		To     Responder
		Answer Answer
	}
	// StartChild, ReleaseChild, StopChild and AdoptChild are calls of the
	// [Spawner], in this order for one id.
	StartChild   struct{ Spec *events.Spec }
	ReleaseChild struct{ ID string }
	StopChild    struct {
		ID   string
		Stop events.Stop
	}
	AdoptChild struct {
		Spec   *events.Spec
		Record *events.Record
	}
	// Finish ends the loop. Err is nil after a shutdown.
	Finish struct{ Err *events.Error }
)

func (Persist) isEffect()      {}
func (PersistGate) isEffect()  {}
func (ForgetGate) isEffect()   {}
func (Forget) isEffect()       {}
func (Publish) isEffect()      {}
func (Reply) isEffect()        {}
func (StartChild) isEffect()   {}
func (ReleaseChild) isEffect() {}
func (StopChild) isEffect()    {}
func (AdoptChild) isEffect()   {}
func (Finish) isEffect()       {}
