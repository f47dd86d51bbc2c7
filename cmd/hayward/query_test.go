package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestWhatIsNamedTwiceIsShownOnce(t *testing.T) {
	b := newBench(t)
	b.ended(events.Spawn{Name: "good", Command: []string{"echo", "hi"}})
	b.ended(events.Spawn{Name: "other", Command: []string{"echo", "hi"}})
	for _, verb := range []string{"query", "wait"} {
		r := b.run(verb, "--json", "good", "nobody", "other", "good", "nobody")
		require.Equal(t, 4, r.code)
		require.Equal(t, 2, strings.Count(r.stdout, `"subagent_id"`), r.stdout)
		require.Equal(t, 1, strings.Count(r.stdout, `"nobody"`), r.stdout)
		require.Less(t, strings.Index(r.stdout, `"name":"good"`), strings.Index(r.stdout, `"name":"other"`))
	}
}

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 subagents were ended", 1: "1 subagent was ended", 2: "2 subagents were ended"} {
		require.Equal(t, want, counted(n, "subagent was ended", "subagents were ended"))
	}
}
