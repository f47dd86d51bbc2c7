// Package coordinator owns what is pending, active and completed.
//
// # Ownership
//
// One goroutine, the drain loop, owns [State]. Everything else sends it
// messages and gets effects executed: persist, start, stop, publish, reply. The
// loop does no I/O, no callback runs on it, and it never blocks: effects run in
// their own goroutines and answer with internal messages.
//
// # Two views of a record
//
// State keeps the latest state of each subagent and the latest durable one.
// Decisions come from the latest: a cancel finds a spawn whose record is still
// being written. What callers are told comes from the durable one: a reply or a
// feed event never says what a crash could undo.
//
//	spawn ── put ──> durable ── Start ──> Forked ── put ──> durable ── Release ──> Started ──> Ended ── put ──> durable ──> reply
//
// A slot is taken from admission until the end is durable. Slots, queues and
// whatever else is looked up are derived from records and can be derived anew.
//
// # Ordering
//
// Ends of processes and results of effects come before commands, commands
// before due timers, at most 64 of a kind in a row. So a finish beats a racing
// cancel, and nothing starves. The feed is in order for each subagent. Admission
// goes round robin over the sessions and is first in, first out within one.
//
// # Delivery
//
// Every accepted request is answered exactly once. A reply that speaks of a
// record goes out once that record is durable. A completion stays unread until
// its reader acknowledged it; while it is leased to one reader others do not get
// it.
//
// # Failure of the store
//
// Records that cannot be written are held and tried again. Meanwhile spawns are
// refused, queued subagents keep their place, running ones run, and queries show
// what is durable. A spawn whose first write failed is refused, and since that
// write may have happened its record goes on to failed: it never starts. A
// conflict of revisions is a second writer and ends the coordinator.
//
// # Restart and shutdown
//
// Queued subagents are queued again, those with a process are adopted, and a
// stop that was under way is taken up again. What was pending without a durable
// process never ran and is failed. Callers are gone, so everything that lives
// goes on in the background. A shutdown ends what runs and leaves queued
// subagents queued for the next coordinator: they were accepted, and to shut
// down must not lose what a crash would keep.
//
// # Cancelled prompts
//
// A gate refuses later spawns of a cancelled prompt, and of the prompts that a
// cancelled session had. Gates are durable by themselves, so they hold where a
// prompt has no subagent, and over restarts; a spawn with reopen lifts one. They
// end with their age, as finished subagents do.
//
// # Retention
//
// A finished subagent goes once it was read and is too old, or is one too many of
// its session, or when somebody asks for it. What lives, what nobody has read and
// what a live one uses stays. Until it is gone it can be looked at and its id is
// taken. A removal that fails leaves it whole.
//
// # What blocks
//
// [Coordinator.Submit] never blocks: past the bound of the intake it refuses
// with [events.CodeBusy]. The [Observer] methods never block either; what they
// may queue is bounded by the number of live children.
package coordinator
