// Package events is Hayward's wire contract: what clients ask, what the
// coordinator answers, what children report, what is kept on disk, and the
// subjects all of it travels on. It holds no logic beyond validation and no
// I/O, and every other package may import it.
//
// # Requests and replies
//
// [SubagentEvent] is the sealed sum of the six requests: [Spawn], [Query],
// [Cancel], [ListActive], [Completions] and [Outstanding]. Each has exactly one
// reply: its own reply type, or an [Error]. A request is answered exactly once.
//
// # Ordering
//
// The feed subject of one subagent is ordered by [FeedEvent.Seq]. Nothing is
// promised across subagents. A reply that speaks of a record is sent after that
// record is durable, so a later query sees at least what the reply said.
//
// # Delivery
//
// Requests are at most once: a client that got no reply asks again by id (a
// spawn with the same id and the same content is answered duplicate_id, and
// [Query] tells the rest). Completions are state, kept until acknowledged, so
// they are delivered at least once and carry [Completion.DedupeID].
//
// # Encoding
//
// JSON, snake_case; times are RFC 3339 in UTC, durations are milliseconds in
// members named *_ms. Requests are decoded strictly by [DecodeStrict]: unknown,
// duplicate and wrongly cased members are errors that name the member. Records
// are decoded by [DecodeRecord], which tolerates unknown members so that an
// older program can read what a newer one wrote.
package events
