package gateway

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

const anthropicStream = `event: message_start
data: {"type":"message_start","message":{"id":"m","model":"claude-x","usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":5,"output_tokens":1}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\"usage\""}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}

event: message_stop
data: {"type":"message_stop"}

`

const responsesStream = "event: response.created\r\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"gpt-x\",\"usage\":null}}\r\n\r\n" +
	"event: response.completed\r\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-x\",\"usage\":{\"input_tokens\":20,\"input_tokens_details\":{\"cached_tokens\":8},\"output_tokens\":7}}}\r\n\r\n"

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name, dialect, contentType, body, model string
		want                                    events.Usage
	}{
		{"stream of messages", "anthropic", "text/event-stream; charset=utf-8", anthropicStream, "claude-x",
			events.Usage{InputTokens: 10, OutputTokens: 42, CacheReadTokens: 5, CacheCreationTokens: 3}},
		{"stream that broke off", "anthropic", "text/event-stream", anthropicStream[:len(anthropicStream)/2], "claude-x",
			events.Usage{InputTokens: 10, OutputTokens: 1, CacheReadTokens: 5, CacheCreationTokens: 3}},
		{"message", "anthropic", "application/json", `{"model":"claude-x","usage":{"input_tokens":1,"output_tokens":2}}`, "claude-x",
			events.Usage{InputTokens: 1, OutputTokens: 2}},
		{"stream of a response", "openai", "text/event-stream", responsesStream, "gpt-x", events.Usage{InputTokens: 12, OutputTokens: 7, CacheReadTokens: 8}},
		{"chat completion", "openai", "application/json",
			`{"model":"gpt-y","usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":2}}}`, "gpt-y",
			events.Usage{InputTokens: 7, OutputTokens: 4, CacheReadTokens: 2}},
		{"chunks of a chat", "openai", "text/event-stream",
			"data: {\"model\":\"gpt-y\",\"usage\":null}\n\ndata: {\"model\":\"gpt-y\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n", "gpt-y",
			events.Usage{InputTokens: 9, OutputTokens: 4}},
		{"error", "anthropic", "application/json", `{"type":"error","error":{"type":"api_error","message":"usage"}}`, "", events.Usage{}},
		{"counts that are none", "anthropic", "application/json", `{"model":"m","usage":{"input_tokens":-5,"output_tokens":9007199254740993}}`, "m", events.Usage{}},
		{"no JSON", "openai", "application/json", `"usage" <html>`, "", events.Usage{}},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			m := newMeter(dialects[c.dialect].read(), c.contentType)
			for rest := c.body; rest != ""; {
				n := min(size, len(rest))
				written, err := m.Write([]byte(rest[:n]))
				require.NoError(t, err)
				require.Equal(t, n, written)
				rest = rest[n:]
			}
			model, u := m.finish()
			require.Equal(t, c.model, model, "%s by %d", c.name, size)
			require.Equal(t, c.want, u, "%s by %d", c.name, size)
		}
	}
}

func TestMeterIsBounded(t *testing.T) {
	m := newMeter(&anthropicUsage{}, "text/event-stream")
	long := strings.Repeat("x", maxEvent)
	for range 8 {
		_, err := m.Write([]byte(long))
		require.NoError(t, err)
	}
	require.Less(t, cap(m.line), 2*maxEvent)
	_, err := m.Write([]byte("\n" + anthropicStream))
	require.NoError(t, err)
	_, u := m.finish()
	require.EqualValues(t, 42, u.OutputTokens)
}

func FuzzMeter(f *testing.F) {
	f.Add(anthropicStream, "anthropic", true)
	f.Add(responsesStream, "openai", true)
	f.Add(`{"usage":{"input_tokens":1}}`, "anthropic", false)
	f.Fuzz(func(t *testing.T, body, dialect string, stream bool) {
		d, ok := dialects[dialect]
		if !ok {
			return
		}
		contentType := "application/json"
		if stream {
			contentType = "text/event-stream"
		}
		m := newMeter(d.read(), contentType)
		m.Write([]byte(body))
		if _, u := m.finish(); u.InputTokens < 0 || u.OutputTokens < 0 || u.CacheReadTokens < 0 || u.CacheCreationTokens < 0 {
			t.Fatalf("%q: %+v", body, u)
		}
	})
}

func TestPause(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	for _, c := range []struct {
		attempt, status int
		header          http.Header
		want            time.Duration
		shared          bool
	}{
		{1, 500, nil, 500 * time.Millisecond, false},
		{3, 503, nil, 2 * time.Second, false},
		{60, 0, nil, maxPause, false},
		{1, 429, nil, 500 * time.Millisecond, true},
		{1, 529, nil, 500 * time.Millisecond, true},
		{1, 429, header("Retry-After", "7"), 7 * time.Second, true},
		{1, 503, header("Retry-After", "0"), 0, true},
		{1, 429, header("Retry-After-Ms", "1500"), 1500 * time.Millisecond, true},
		{1, 429, header("Retry-After", now.Add(time.Minute).Format(http.TimeFormat)), time.Minute, true},
		{1, 429, header("Retry-After", now.Add(-time.Minute).Format(http.TimeFormat)), 0, true},
		{1, 429, header("Retry-After", "86400"), maxAfter, true},
		{1, 429, header("Retry-After", "soon"), 500 * time.Millisecond, true},
	} {
		d, shared := pause(c.attempt, c.status, c.header, now)
		require.Equal(t, c.want, d, "%+v", c)
		require.Equal(t, c.shared, shared, "%+v", c)
	}
}

func TestUpstream(t *testing.T) {
	for _, c := range []struct{ base, path, want string }{
		{"https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages?beta=true"},
		{"https://api.openai.com/v1", "/v1/responses", "https://api.openai.com/v1/responses?beta=true"},
		{"http://127.0.0.1:8080/proxy/v1/", "/v1/models", "http://127.0.0.1:8080/proxy/v1/models?beta=true"},
	} {
		u, err := Upstream{Name: "x", Base: c.base}.target(c.path, "beta=true")
		require.NoError(t, err)
		require.Equal(t, c.want, u.String())
	}
	a := dialects["anthropic"]
	require.True(t, a.allows("POST", "/v1/messages"))
	require.True(t, a.allows("GET", "/v1/models/claude-x"))
	for _, no := range []string{"GET /v1/messages", "POST /v1/files", "POST /v1/messages/batches", "GET /v1/models/a/b", "POST /"} {
		method, p, _ := strings.Cut(no, " ")
		require.False(t, a.allows(method, p), no)
	}
}

func TestKey(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	env := map[string]string{"KEY": "from-env", "CREDENTIALS_DIRECTORY": dir}
	getenv := func(name string) string { return env[name] }
	u := Upstream{Name: "anthropic", KeyEnv: "KEY", Credential: "credential"}
	key, err := u.Key(getenv)
	require.NoError(t, err)
	require.Equal(t, "from-env", key)
	file("credential", "from-systemd\n", 0o400)
	key, err = u.Key(getenv)
	require.NoError(t, err)
	require.Equal(t, "from-systemd", key)
	u.KeyFile = file("key", "from-file\n", 0o600)
	key, err = u.Key(getenv)
	require.NoError(t, err)
	require.Equal(t, "from-file", key)

	for _, bad := range []string{file("open", "k", 0o640), file("empty", "\n", 0o600), file("two", "a\nb", 0o600), dir, filepath.Join(dir, "missing")} {
		u.KeyFile = bad
		_, err = u.Key(getenv)
		require.Error(t, err, bad)
	}
	_, err = Upstream{Name: "openai", KeyEnv: "OTHER"}.Key(getenv)
	require.ErrorIs(t, err, ErrNoKey)
	require.ErrorContains(t, err, "set OTHER in the environment of hayward serve, or gateway.openai_key_file")
}

func TestCredential(t *testing.T) {
	g := &Gateway{opts: Options{Secret: []byte("s")}}
	id, other := events.NewID(), events.NewID()
	require.True(t, g.admits(id, g.Credential(id, 3)))
	require.False(t, g.admits(other, g.Credential(id, 3)))
	for _, bad := range []string{"", "hayward-", "hayward-3-", "hayward-x-y", "sk-ant", Credential([]byte("t"), id, 3)} {
		require.False(t, g.admits(id, bad), bad)
	}
}
