// Package mcp lets a parent agent drive Hayward over the Model Context Protocol:
// six tools, one for each event of the wire contract.
//
// # Session
//
// A [Server] serves one connection, which owns one session: its own, or the one
// that its starter named. No argument of a tool can choose another; what belongs
// to others looks unknown.
//
// # Time
//
// No call takes longer than [Options.CallLimit], because clients give up on a
// call after a minute or so. One that waits answers with what there is by then,
// lists what is still running, and says what to call next. A call that the client
// cancels stops waiting; the subagent goes on.
//
// # Delivery
//
// An end is handed over in an answer of spawn_subagent, query_subagents,
// cancel_subagents (by id) or read_completions. The answer's _meta names the ends
// in it, see [MetaEnds]. They count as read when the next tool call arrives: then
// the client has gone on from the answer. Until then nothing is acknowledged, but
// this connection does not offer them again. What was in an answer that the client
// cancelled is offered by the next read_completions. What was in the last answer
// of a connection comes back to the next connection of the same session; a session
// of this connection alone has no next one, so there it counts as read at the end.
// So an end is delivered at least once, and once to a client that takes each
// answer that it did not cancel. The same end again has the same dedupe_id.
//
// # Size
//
// An answer stays below [maxAnswer]: outputs in it share a budget and are cut with
// head and tail; query_subagents with output_offset reads the rest.
//
// # End
//
// When the client closes its side, or the context of [Server.Run] ends, calls that
// wait answer at once and no further ones are read. The subagents go on, unless
// [Options.CancelOnExit].
package mcp
