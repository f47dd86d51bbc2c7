package events

import "time"

// Removing what is kept of finished subagents: record and run directory. Live
// ones are never removed, and ends that nobody has read only by name and with
// force.
const (
	AdminRemove = "remove" // [RemoveRequest]
	AdminPrune  = "prune"  // [PruneRequest]
)

// MaxRemovals bounds the subagents that one [PruneRequest] removes or lists.
const MaxRemovals = 1000

// RemoveRequest removes finished subagents by id. The reply is [RemoveReply],
// with one result for each of IDs in their order.
type RemoveRequest struct {
	// ParentSessionID, when present, makes ids of other sessions look unknown.
	ParentSessionID string `json:"parent_session_id,omitempty"`
	// IDs are 1 to 100 subagent ids, names or unambiguous id endings.
	IDs []string `json:"ids"`
	// Force also removes ends that nobody has read.
	Force bool `json:"force,omitzero"`
	// DryRun tells what would be removed and changes nothing.
	DryRun bool `json:"dry_run,omitzero"`
}

// PruneRequest removes finished subagents that were read, oldest end first: those
// that ended at least OlderThanMS ago, and those beyond the Keep latest ends of
// their session. A criterion that is absent selects nothing; without either, the
// daemon's own retention is applied. The reply is [RemoveReply].
type PruneRequest struct {
	// ParentSessionID limits to one session. Absent: every session.
	ParentSessionID string `json:"parent_session_id,omitempty"`
	OlderThanMS     *int64 `json:"older_than_ms,omitzero"`
	Keep            *int   `json:"keep,omitzero"`
	// DryRun lists what would be removed and changes nothing.
	DryRun bool `json:"dry_run,omitzero"`
}

// RemoveReply answers [RemoveRequest] and [PruneRequest].
type RemoveReply struct {
	Results []RemoveResult `json:"results"`
	// Removed counts the results that were removed, or in a dry run would be.
	Removed int `json:"removed"`
	// Unread counts ends that a prune selected and kept, because nobody has read
	// them.
	Unread int `json:"unread,omitzero"`
	// More is true when a prune left others for the next one, see [MaxRemovals].
	More     bool     `json:"more,omitzero"`
	Warnings []string `json:"warnings,omitempty"`
}

// RemoveOutcome says what became of one subagent.
type RemoveOutcome string

// The outcomes of a removal.
const (
	// RemoveRemoved: its record and run directory are gone.
	RemoveRemoved RemoveOutcome = "removed"
	// RemoveWouldRemove: a dry run would have removed it.
	RemoveWouldRemove RemoveOutcome = "would_remove"
	// RemoveNotFound: no such subagent in the caller's scope.
	RemoveNotFound RemoveOutcome = "not_found"
	// RemoveLive: it has not ended; cancel it first.
	RemoveLive RemoveOutcome = "live"
	// RemoveUnread: nobody has read its end, and force was not given.
	RemoveUnread RemoveOutcome = "unread"
	// RemoveInUse: a live subagent reads its output or was spawned by it.
	RemoveInUse RemoveOutcome = "in_use"
	// RemoveFailed: Error tells why. It is kept, or goes at the next start.
	RemoveFailed RemoveOutcome = "failed"
)

// RemoveResult is what became of one subagent.
type RemoveResult struct {
	SubagentID      string        `json:"subagent_id"`
	Name            string        `json:"name,omitempty"`
	ParentSessionID string        `json:"parent_session_id,omitempty"`
	Outcome         RemoveOutcome `json:"outcome"`
	Status          Status        `json:"status,omitempty"`
	EndedAt         *time.Time    `json:"ended_at,omitempty"`
	Error           *Error        `json:"error,omitempty"`
}

// Validate lists every fault of the request at once, or returns nil.
func (r RemoveRequest) Validate() *Error {
	var f faults
	f.scope("parent_session_id", r.ParentSessionID, false)
	if len(r.IDs) == 0 {
		f.add(CodeInvalidRequest, "ids is required: 1 to %d of them", MaxQueryIDs)
	}
	f.refs("ids", r.IDs, MaxQueryIDs)
	return f.error(AdminRemove)
}

// Validate lists every fault of the request at once, or returns nil.
func (r PruneRequest) Validate() *Error {
	var f faults
	f.scope("parent_session_id", r.ParentSessionID, false)
	f.millis("older_than_ms", r.OlderThanMS, MaxDurationMS)
	if r.Keep != nil && *r.Keep < 0 {
		f.add(CodeInvalidRequest, "keep %d is negative", *r.Keep)
	}
	return f.error(AdminPrune)
}
