package agents

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHookSettings(t *testing.T) {
	for _, c := range []struct{ hooks, want, says string }{
		{"", "", ""},
		{"hooks:\n", "", ""},
		{"hooks: {}\n", "", ""},
		{"hooks:\n  Stop:\n", "", ""},
		{
			"hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: ./check.sh\n        - {type: command, command: b, timeout: 5}\n",
			`{"PreToolUse":[{"hooks":[{"command":"./check.sh","timeout":30,"type":"command"},{"command":"b","timeout":5,"type":"command"}],"matcher":"Bash"}]}`, "",
		},
		{"hooks: all\n", "", "not a table of events"},
		{"hooks: {Stop: x}\n", "", "hooks of Stop is not a list"},
		{"hooks: {Stop: [x]}\n", "", "not a table with matcher and hooks"},
		{"hooks: {Stop: [{matcher: x}]}\n", "", "has no hooks"},
		{"hooks: {Stop: [{matcher: [x], hooks: []}]}\n", "", "matcher is not a text"},
		{"hooks: {Stop: [{when: x, hooks: []}]}\n", "", "when is not known"},
		{"hooks: {Stop: [{hooks: [{type: command}]}]}\n", "", "only type command"},
		{"hooks: {Stop: [{hooks: [{type: http, url: x}]}]}\n", "", "url of a hook is not known"},
		{"hooks: {Stop: [{hooks: [{type: prompt, command: x}]}]}\n", "", "a hook of type prompt is not run"},
		{"hooks: {Stop: [{hooks: [{type: command, command: x, timeout: 601}]}]}\n", "", "from 1 to 600"},
		{"hooks: {Stop: [{hooks: [{type: command, command: x, timeout: soon}]}]}\n", "", "timeout soon"},
	} {
		p := Parse([]byte("---\nname: a\ndescription: b\n"+c.hooks+"---\nx\n"), Source{Scope: ScopeUser}, "a.md")
		require.NotNil(t, p.Definition, "%s: %v", c.hooks, p.Faults)
		got, err := p.Definition.HookSettings()
		if c.says != "" {
			require.ErrorContains(t, err, c.says, c.hooks)
			require.Contains(t, p.Faults[0].Message, "a spawn of this type is refused", c.hooks)
			continue
		}
		require.NoError(t, err, c.hooks)
		require.Equal(t, c.want, string(got))
	}
}
