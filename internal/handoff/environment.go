package handoff

// Environment is all that a supervisor gets as its own environment, whatever that
// of the coordinator is; the command's is in the spec. A supervisor waits for one
// process, and beside a thousand others: one processor for Go code and one arena of
// the C library's heap are enough for it, and start it with 40 page faults less.
func Environment() []string { return []string{"GOMAXPROCS=1", "MALLOC_ARENA_MAX=1"} }
