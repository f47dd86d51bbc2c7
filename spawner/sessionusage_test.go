package spawner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// What codex has counted of a session is found in it, also where its last run told
// nothing at its end.
func TestCodexSessionUsage(t *testing.T) {
	const session = "01a22ec7-fd76-71f2-8dcf-7fc64c42f1d3"
	home := t.TempDir()
	_, err := codexSessionUsage(home, session)
	require.ErrorIs(t, err, os.ErrNotExist)

	dir := filepath.Join(home, "sessions/2026/11/30")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	file := filepath.Join(dir, "rollout-2026-11-30T23-26-28-"+session+".jsonl")
	count := func(input, cached, output string) string {
		return `{"timestamp":"x","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":` + input +
			`,"cached_input_tokens":` + cached + `,"cache_write_input_tokens":0,"output_tokens":` + output + `},"last_token_usage":{"input_tokens":9}}}}`
	}
	write := func(lines ...string) events.Usage {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644))
		used, err := codexSessionUsage(home, session)
		require.NoError(t, err)
		return used
	}
	require.Zero(t, write(`{"type":"session_meta"}`), "nothing was asked yet")
	require.Equal(t, events.Usage{InputTokens: 230, OutputTokens: 29, CacheReadTokens: 7}, write(
		count("100", "0", "20"),
		`{"type":"response_item","payload":{"type":"message","text":"\"token_count\" `+strings.Repeat("x", 2*maxSessionLine)+`"}}`,
		count("237", "7", "29"),
		`{"type":"event_msg","payload":{"type":"token_count","info":null}}`,
		`not JSON "token_count"`,
		count("999", "0", "9")[:60], // cut by a crash
	))

	// Other sessions do not count, nor what is no file.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rollout-x-another.jsonl"), []byte(count("1", "0", "1")), 0o644))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe-"+session+".jsonl"), 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link-"+session+".jsonl")))
	require.EqualValues(t, 20, write(count("100", "0", "20")).OutputTokens)
}
