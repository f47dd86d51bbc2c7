// Package coordinator owns what is pending, active and completed.
//
// # Ownership
//
// One goroutine, the drain loop, owns [State]. Everything else sends it
// messages and gets effects executed: persist, start, stop, publish, reply. The
// loop does no I/O, no callback runs on it, and it never blocks: effects run in
// their own goroutines and answer with internal messages.
//
// # Ordering
//
// Ends of processes and results of effects come before commands, commands
// before due timers, at most 64 of a kind in a row. So a finish beats a racing
// cancel, and nothing starves.
//
// # Delivery
//
// Every accepted request is answered exactly once. A reply that speaks of a
// record goes out once that record is durable. A completion stays unread until
// its reader acknowledged it.
//
// # What blocks
//
// [Coordinator.Submit] never blocks: past the bound of the intake it refuses
// with [events.CodeBusy]. The [Observer] methods never block either; what they
// may queue is bounded by the number of live children.
package coordinator
