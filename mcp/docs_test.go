package mcp

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/mcp.md has each tool with each of its arguments.
func TestToolsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/mcp.md")
	require.NoError(t, err)
	for _, tool := range tools {
		_, section, found := strings.Cut(string(page), "\n### "+tool.name+"\n")
		require.True(t, found, tool.name)
		section, _, _ = strings.Cut(section, "\n##")
		for _, a := range tool.input {
			require.Contains(t, section, "`"+a.name+"`", tool.name)
		}
	}
}
