// Package load drives a coordinator with many subagents from several client
// processes at once, and keeps a ledger of what became of each.
//
// [Run] starts client processes ([Client]), each with a session of its own. They
// spawn, cancel and read completions with a lease and an acknowledgement, and say
// what they saw on a pipe. Run alone keeps the [Ledger]; beside what the clients
// say it counts, from outside, what the subagents wrote themselves and which
// processes are left.
//
// The load is a [Scenario]: what a subagent does, and so what its right end is,
// follows from its number, and is checked.
package load
