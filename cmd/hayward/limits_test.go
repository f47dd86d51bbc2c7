package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is no limit is refused with the flag's name, before anything is started.
func TestLimitsArePlainNumbers(t *testing.T) {
	b := newIdleBench(t)
	for _, args := range [][]string{
		{"--max-per-session", "many"}, {"--max-per-session", "1e3"}, {"--max-total", "-1"},
		{"--max-queued", "99999999999999999999"}, {"--max-depth", "1.5"}, {"--max-per-type", "heavy"},
		{"--max-per-type", "heavy=0"}, {"--at-limit", "perhaps"}, {"--keep-finished", "-1"}, {"--keep-for", "-1h"},
	} {
		r := b.run(append([]string{"serve"}, args...)...)
		require.Equal(t, 2, r.code, "%v: %s", args, r.stderr)
		require.Contains(t, r.stderr, args[0])
	}
}
