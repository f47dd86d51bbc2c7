package plan

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentation: the example of docs/plans.md is a plan, its graph is as
// drawn there, and its table lists every key that an entry may have, and no other.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../docs/plans.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(text), "```toml\n")
	require.True(t, found)
	example, _, found = strings.Cut(example, "```\n")
	require.True(t, found)
	p := parse(t, example)
	require.Len(t, p.Subagents, 4)
	require.Contains(t, string(text), "```\n"+p.Check().Draw(), "the graph that --check draws of it")
	require.Equal(t, map[string]string{"vet_client": "vet-client", "vet_events": "vet-events"}, p.Subagents[3].Inputs)

	entry := newTable(&faults{}, "", nil)
	readSettings(entry)
	known := map[string]bool{"name": true, "description": true, "needs": true, "for_each": true, "show": true}
	for k := range entry.asked {
		known[k] = true
	}
	_, table, found := strings.Cut(string(text), "| key | value | meaning |")
	require.True(t, found)
	documented := make(map[string]bool)
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") && strings.TrimSpace(line) != "" {
			break
		}
		if cell, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ := strings.Cut(cell, "`")
			documented[name] = true
		}
	}
	require.Equal(t, known, documented)
}
