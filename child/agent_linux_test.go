package child_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// recorded is the path of what a real CLI printed.
func recorded(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "adapter", "testdata", name+".jsonl"))
	require.NoError(t, err)
	return path
}

// agent is a spec of an agent that is played by a script.
func agent(kind, script string, args ...string) events.ChildSpec {
	spec := shell(script, args...)
	spec.Adapter = &events.AdapterSpec{Agent: kind}
	return spec
}

func transcriptItems(t *testing.T, c *testkit.ChildProcess) (items []events.Item) {
	t.Helper()
	for line := range bytes.Lines(c.File("transcript.jsonl")) {
		var item events.Item
		require.NoError(t, events.DecodeRecord(line, &item))
		items = append(items, item)
	}
	return items
}

func kinds(items []events.Item) (names []string) {
	for _, i := range items {
		names = append(names, string(i.Kind))
	}
	return names
}

func TestAgentsStreamIsRead(t *testing.T) {
	for _, kind := range []string{events.AgentClaude, events.AgentCodex} {
		t.Run(kind, func(t *testing.T) {
			file := recorded(t, kind+"-success")
			c, r := run(t, agent(kind, `cat "$1"; echo aside >&2`, file))
			requireCode(t, 0, r)
			require.Nil(t, r.AgentError)
			require.NotNil(t, r.Agent)
			require.Equal(t, events.StopEnd, r.Agent.StopReason)
			require.Equal(t, events.Usage{InputTokens: 230, OutputTokens: 29, CacheReadTokens: 205}, r.Agent.Usage)
			require.NotEmpty(t, r.Agent.SessionID)
			require.Equal(t, "Done: made.txt says hello.", r.Answer)
			require.Equal(t, "Done: made.txt says hello.", r.LastLine)

			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), string(c.File("stdout.log")), "the file has the stream as it is")
			items := transcriptItems(t, c)
			require.Subset(t, kinds(items), []string{"command", "session", "thinking", "message", "tool_call", "tool_result", "result", "exit"})
			for n, i := range items {
				require.EqualValues(t, n+1, i.Seq)
				if i.Kind == events.ItemToolCall {
					require.Contains(t, string(i.Input), "made.txt")
				}
				require.False(t, i.Kind == events.ItemOutput && i.Stream == "stdout", "the stream is not there twice")
			}
		})
	}
}

// A stream without its terminal event is a failure, also with exit code 0.
func TestAgentThatIsCutFails(t *testing.T) {
	_, r := run(t, agent(events.AgentClaude, `head -n 3 "$1"`, recorded(t, "claude-success")))
	requireCode(t, 0, r)
	require.NotNil(t, r.AgentError)
	require.Equal(t, events.CodeAgentIncomplete, r.AgentError.Code)
	require.Equal(t, events.StopCut, r.Agent.StopReason)
	require.True(t, r.Agent.UsageIncomplete)
}

// A stop interrupts an agent first, so that it says what it used.
func TestAgentIsInterruptedFirst(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		spec := agent(events.AgentClaude, `trap 'tail -n 2 "$1"; exit 0' INT; trap 'exit 3' TERM
			head -n 4 "$1"; while :; do sleep 0.05; done`, recorded(t, "claude-cancelled"))
		c := startLive(t, p, spec)
		c.says(t, "I write the file.")
		c.stop(t, events.ReasonParent)
		r := c.requireEnd(t)
		requireCode(t, 0, r)
		require.Equal(t, events.ReasonParent, r.Ended)
		require.Nil(t, r.AgentError)
		require.Equal(t, events.StopCancelled, r.Agent.StopReason)
		require.Equal(t, events.Usage{InputTokens: 100, OutputTokens: 20}, r.Agent.Usage)
		require.False(t, r.Agent.UsageIncomplete)
	})
}

// An agent that does not heed it is terminated after half of the grace, then killed.
func TestAgentStopEscalates(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		spec := agent(events.AgentCodex, `trap '' INT; trap 'echo terminated >&2' TERM; echo ready >&2; while :; do sleep 0.05; done`)
		spec.GraceMS = 400
		c := startLive(t, p, spec)
		c.says(t, "ready")
		began := time.Now()
		c.stop(t, events.ReasonUser)
		r := c.requireEnd(t)
		requireSignal(t, "SIGKILL", r)
		require.Contains(t, r.StderrTail, "terminated")
		require.GreaterOrEqual(t, time.Since(began), 400*time.Millisecond)
	})
}

// A line that is too long to be read is named by its place, and the rest is read.
func TestAgentsLongLines(t *testing.T) {
	c, r := run(t, agent(events.AgentClaude, `head -c 20000000 /dev/zero | tr '\0' x; echo; cat "$1"`, recorded(t, "claude-success")))
	requireCode(t, 0, r)
	require.Nil(t, r.AgentError)
	require.Equal(t, "Done: made.txt says hello.", r.Answer)
	i := transcriptItems(t, c)[1]
	require.Equal(t, events.ItemEvent, i.Kind)
	require.True(t, i.TextOmitted)
	require.EqualValues(t, 20_000_000, i.Bytes)
	require.Empty(t, i.Text)
}

func TestUnknownAgentIsACommand(t *testing.T) {
	c, r := run(t, agent("gemini", "echo hi"))
	requireCode(t, 0, r)
	require.Nil(t, r.Agent)
	require.Contains(t, strings.Join(kinds(transcriptItems(t, c)), " "), "note")
}
