// Package spawner takes an admitted spawn to a live, watched process tree and
// to its proven end.
//
// # Life of a child
//
//	Start ──> prepare ──> fork ──> Forked ──Release──> confine ──> Started ──> watch ──> Ended
//	             │          │         │                   │                      │
//	             └──────────┴── undo ─┴───────────────────┴─────── end tree ─────┘
//
// Start is a transaction: each step has an undo, a failure undoes in reverse,
// and the End that is told names the step. Fork is in two phases: the child
// blocks on its start pipe before it runs anything; only after its identity is
// durable does Release write the one byte that lets it go. A closed pipe instead
// ends it, so every process that ever ran a command is in a durable record.
//
// # Ownership
//
// One goroutine owns one child from Start or Adopt to Ended. The methods of
// [Spawner] only put a word into its mailbox and return at once. [Spawner.Close]
// waits for all of them.
//
// # End
//
// Ended is told after every process of the child is gone: its pidfd is readable
// (the end of pid 1 of a PID namespace is the end of all in it), its connection
// to the bus is at end of file, and report.json was read, which is the only
// source of the result.
package spawner
