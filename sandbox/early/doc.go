// Package early confines hayward-child. Importing it is the only wiring: its C
// constructor runs before the Go runtime, while the process has one thread, so
// one Landlock domain and one seccomp filter cover every thread there will be.
//
// # Contract
//
// The constructor reads everything from the descriptors of internal/handoff and
// nothing from argv or the environment. It reads the plan, blocks on the start
// pipe before it changes anything, and then passes the steps in the order of
// [handoff.Step], each with one status record. End of file on the start pipe
// ends the process before anything of the plan happened; a required step that
// fails is recorded with its errno and ends the process with exit code 125.
// What was applied cannot be taken back.
//
// A process whose descriptor 3 is no memfd was not launched through a plan: the
// constructor then does nothing and [Confined] is false. A program that must
// not run unconfined checks [Confined] first thing in main; the parent checks
// the records. Without cgo, and on systems other than Linux, there is no
// constructor and Confined is always false.
package early
