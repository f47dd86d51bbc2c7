// Package child is what runs inside hayward-child: the supervisor of one
// subagent. It starts the command, keeps what the command writes, obeys the
// coordinator, and leaves a report.
//
// # Process
//
// Under every profile but off the supervisor is pid 1 of a PID namespace of its
// own, so its end is the end of everything it ever started. Elsewhere it is a
// child subreaper and finds its descendants in /proc. It is started with an
// empty environment and the descriptors of package handoff; the command gets
// none of them. No signal that can be caught ends it.
//
// # Delivery
//
// report.json, written through a descriptor before the supervisor exits, is the
// only source of the result. The output files are whole and have no line
// length; items on the bus are a view of them for readers in a hurry, thinned
// when the bus is slower than the output. The transcript has the same items
// without the bulk.
//
// # Ordering
//
// The report is written after the last process that can be reached is dead, the
// output pipes are at end of file (or their bound passed) and the output files
// are synced. A refused start writes the report before its status record.
//
// # What blocks
//
// Nothing waits for the bus: with none the command runs, ends, and is reported
// in the same way. Writing output never waits for a reader; the command waits
// for the disk.
package child
