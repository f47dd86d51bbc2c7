// Package metrics counts and writes what it counted in the text format of
// Prometheus, version 0.0.4.
//
// Counting costs an atomic addition behind a read lock, so it may be done on any
// goroutine; nothing of it waits for a reader. The number of series of a metric
// is bounded by [MaxSeries]: what comes beyond it is counted under "other", so a
// label can never take the memory of its process.
//
// It is not the client library of Prometheus, whose initialization every run of
// the command line would pay for (docs/adr/0015-observability.md); the tests
// read what it writes with that library.
package metrics
