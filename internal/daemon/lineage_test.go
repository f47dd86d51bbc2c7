package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/gateway"
)

// sums adds up what is carried over as the gateway does.
type sums struct {
	above   map[string][]string
	tree    map[string]int64
	prompts map[string]int64
}

func (s *sums) Reopen(id string, l gateway.Lineage) { s.above[id] = l.Above }

func (s *sums) Restore(id string, l gateway.Lineage, used events.Usage) {
	for _, above := range l.Above {
		s.tree[above] += used.Total()
	}
	s.prompts[l.Prompt] += used.Total()
}

// After a restart what lives counts all that was used below it, once, whatever is in
// between or was removed.
func TestCarryUsage(t *testing.T) {
	tokens := func(n int64) *events.Usage {
		if n == 0 {
			return nil
		}
		return &events.Usage{OutputTokens: n}
	}
	var stored []coordinator.Stored
	add := func(id, parent string, live bool, own, tree int64) {
		r := events.Record{ID: id, ParentID: parent, ParentSessionID: "s", ParentPromptID: "p", State: events.StateCompleted, Usage: tokens(own), TreeUsage: tokens(tree)}
		if live {
			r.State, r.Usage, r.TreeUsage = events.StateActive, nil, nil
		}
		stored = append(stored, coordinator.Stored{Record: r})
	}
	add("top", "", true, 0, 0)
	// A command used nothing itself; what it spawned did, and what of it is left.
	add("ended", "top", false, 0, 950)
	add("deep", "ended", false, 900, 900)
	// Two that live below one another, and one that lives below one that ended.
	add("mid", "top", true, 0, 0)
	add("leaf", "mid", false, 7, 7)
	add("orphan", "ended", true, 0, 0)
	add("below", "orphan", false, 3, 3)
	// A tree that is over counts for its prompt alone.
	add("over", "", false, 10, 30)
	add("part", "over", false, 20, 20)
	// Its spawner was removed.
	add("left", "removed", false, 5, 5)

	for _, byPrompt := range []bool{false, true} {
		s := &sums{above: map[string][]string{}, tree: map[string]int64{}, prompts: map[string]int64{}}
		carryUsage(s, stored, byPrompt)
		require.Equal(t, map[string][]string{"top": nil, "mid": {"top"}, "orphan": {"top"}}, s.above)
		require.Equal(t, map[string]int64{"top": 960, "mid": 7, "orphan": 3}, s.tree)
		want := int64(960)
		if byPrompt {
			want += 35
		}
		require.Equal(t, want, s.prompts["p"])
	}
}
