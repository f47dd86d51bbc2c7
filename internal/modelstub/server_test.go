package modelstub

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var toolTurn = Turn{
	Thinking: "Which file?", Text: "I look at the directory, in größter Ruhe.",
	Tools: []ToolCall{{Name: "Bash", Input: json.RawMessage(`{"command":"ls -l"}`)}},
	Usage: Usage{Input: 100, Output: 20, CacheRead: 50, CacheCreation: 5},
}

// start serves a script for the time of a test.
func start(t *testing.T, s Script) *Server {
	t.Helper()
	server, err := Start(s, Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		http.DefaultClient.CloseIdleConnections()
	})
	return server
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// post sends a body with a key and returns the response, which the caller closes.
func post(t *testing.T, server *Server, path, key, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(within(t), http.MethodPost, server.URL()+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func whole(t *testing.T, resp *http.Response) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&v))
	return v
}

// eventsOf reads a stream to its end.
func eventsOf(t *testing.T, body io.Reader) (all []map[string]any, err error) {
	t.Helper()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found || data == "[DONE]" {
			continue
		}
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(data), &v))
		all = append(all, v)
	}
	return all, lines.Err()
}

func TestAnthropicStreamSaysWhatTheWholeAnswerSays(t *testing.T) {
	s := start(t, Script{Scenarios: []Scenario{{Turns: []Turn{toolTurn}}}})
	const body = `{"model":"claude-x","messages":[{"role":"user","content":"hi"}]`
	one := whole(t, post(t, s, "/v1/messages", "k", body+`}`))
	require.Equal(t, "tool_use", one["stop_reason"])
	require.Equal(t, map[string]any{
		"input_tokens": 100.0, "output_tokens": 20.0, "cache_read_input_tokens": 50.0, "cache_creation_input_tokens": 5.0,
	}, one["usage"])

	all, err := eventsOf(t, post(t, s, "/v1/messages?beta=true", "k", body+`,"stream":true}`).Body)
	require.NoError(t, err)
	var blocks []map[string]any
	joined := map[string]string{}
	for _, e := range all {
		switch e["type"] {
		case "content_block_start":
			blocks = append(blocks, e["content_block"].(map[string]any))
		case "content_block_delta":
			d := e["delta"].(map[string]any)
			for _, member := range []string{"thinking", "text", "partial_json"} {
				if v, ok := d[member].(string); ok {
					joined[member] += v
				}
			}
		}
	}
	require.Len(t, blocks, 3)
	require.Equal(t, toolTurn.Thinking, joined["thinking"])
	require.Equal(t, toolTurn.Text, joined["text"])
	require.JSONEq(t, `{"command":"ls -l"}`, joined["partial_json"])
	require.Equal(t, "message_stop", all[len(all)-1]["type"])
	require.Equal(t, one["content"].([]any)[2].(map[string]any)["id"], blocks[2]["id"])
}

func TestResponsesStreamEndsWithTheWholeAnswer(t *testing.T) {
	s := start(t, Script{Scenarios: []Scenario{{Turns: []Turn{toolTurn}}}})
	const body = `{"model":"gpt-x","input":[{"type":"message","role":"user","content":[]}]`
	one := whole(t, post(t, s, "/v1/responses", "k", body+`}`))
	all, err := eventsOf(t, post(t, s, "/v1/responses", "k", body+`,"stream":true}`).Body)
	require.NoError(t, err)
	last := all[len(all)-1]
	require.Equal(t, "response.completed", last["type"])
	require.Equal(t, one, last["response"])
	require.Equal(t, 155.0, one["usage"].(map[string]any)["input_tokens"])
	call := one["output"].([]any)[2].(map[string]any)
	require.Equal(t, "function_call", call["type"])
	require.JSONEq(t, `{"command":"ls -l"}`, call["arguments"].(string))
}

func TestChatCompletions(t *testing.T) {
	s := start(t, Script{Scenarios: []Scenario{{Turns: []Turn{toolTurn}}}})
	const body = `{"model":"gpt-x","messages":[{"role":"user","content":"hi"}]`
	one := whole(t, post(t, s, "/v1/chat/completions", "k", body+`}`))
	require.Equal(t, "tool_calls", one["choices"].([]any)[0].(map[string]any)["finish_reason"])
	all, err := eventsOf(t, post(t, s, "/v1/chat/completions", "k", body+`,"stream":true}`).Body)
	require.NoError(t, err)
	require.Equal(t, one["usage"], all[len(all)-1]["usage"])
}

// The number of the turn is in the conversation that the request carries, so that
// conversations do not disturb each other.
func TestTurnsFollowTheConversation(t *testing.T) {
	s := start(t, Script{Scenarios: []Scenario{
		{Match: "special", Turns: []Turn{{Text: "matched"}}},
		{Turns: []Turn{{Text: "zero"}, {Text: "one"}, {Text: "more", Repeat: true}}},
	}})
	ask := func(path, body string) string {
		b, err := json.Marshal(whole(t, post(t, s, path, "k", body)))
		require.NoError(t, err)
		return string(b)
	}
	require.Contains(t, ask("/v1/messages", `{"messages":[{"role":"user"}]}`), "zero")
	require.Contains(t, ask("/v1/messages", `{"messages":[{"role":"user"},{"role":"assistant"},{"role":"user"}]}`), "one")
	require.Contains(t, ask("/v1/messages", `{"messages":[{"role":"user"}]}`), "zero")
	require.Contains(t, ask("/v1/messages", `{"messages":[{"role":"user","content":"special"}]}`), "matched")
	// Reasoning, a text and two calls in a row are one answer.
	require.Contains(t, ask("/v1/responses", `{"input":[{"type":"message","role":"user"},{"type":"reasoning"},
		{"type":"message","role":"assistant"},{"type":"function_call"},{"type":"function_call"},{"type":"function_call_output"}]}`), "one")
	require.Contains(t, ask("/v1/chat/completions", `{"messages":[{"role":"assistant"},{"role":"tool"},{"role":"assistant"},{"role":"assistant"},{"role":"assistant"}]}`), "more")

	resp := post(t, s, "/v1/messages", "k", `{"messages":[{"role":"assistant"},{"role":"user","content":"special"}]}`)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
}

func TestFailuresComeBeforeTheAnswer(t *testing.T) {
	s := start(t, Script{Scenarios: []Scenario{
		{Match: "always", Turns: []Turn{{Fail: []Failure{{Status: 500}}, Always: true}}},
		{Turns: []Turn{{Text: "A text that takes several parts of the stream.", Fail: []Failure{
			{Status: 429, RetryAfter: "1"}, {Status: 529}, {Cut: 2},
		}}}},
	}})
	const body = `{"stream":true,"messages":[{"role":"user"}]}`
	first := post(t, s, "/v1/messages", "k", body)
	require.Equal(t, 429, first.StatusCode)
	require.Equal(t, "1", first.Header.Get("Retry-After"))
	require.Equal(t, "rate_limit_error", whole(t, first)["error"].(map[string]any)["type"])
	require.Equal(t, 529, post(t, s, "/v1/messages", "k", body).StatusCode)

	cut := post(t, s, "/v1/messages", "k", body)
	require.Equal(t, 200, cut.StatusCode)
	all, err := eventsOf(t, cut.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Len(t, all, 2)

	all, err = eventsOf(t, post(t, s, "/v1/messages", "k", body).Body)
	require.NoError(t, err)
	require.Equal(t, "message_stop", all[len(all)-1]["type"])
	for range 3 {
		require.Equal(t, 500, post(t, s, "/v1/messages", "k", `{"messages":[{"role":"user","content":"always"}]}`).StatusCode)
	}
}

func TestSecretsAreRecordedByFingerprint(t *testing.T) {
	s := start(t, Script{Keys: []string{"right"}, Scenarios: []Scenario{{Turns: []Turn{{Text: "hi"}}}}})
	require.Equal(t, http.StatusUnauthorized, post(t, s, "/v1/messages", "wrong", `{}`).StatusCode)
	require.Equal(t, http.StatusOK, post(t, s, "/v1/messages", "right", `{"messages":[]}`).StatusCode)
	got, err := s.Wait(within(t), 1)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, Fingerprint("right"), got[0].Key)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.NotContains(t, string(b), "right")
}

// Close does not wait for a client that holds its connection, nor for a turn.
func TestCloseEndsWhatIsHeld(t *testing.T) {
	s, err := Start(Script{Scenarios: []Scenario{{Turns: []Turn{{Text: "held", Hold: true}}}}}, Options{})
	require.NoError(t, err)
	resp := post(t, s, "/v1/messages", "k", `{"stream":true,"messages":[]}`)
	_, err = bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err)
	http.DefaultClient.CloseIdleConnections()
}

func TestScriptsAreChecked(t *testing.T) {
	for name, body := range map[string]string{
		"an unknown member": `{"scenario":[]}`,
		"a repeat inside":   `{"scenarios":[{"turns":[{"repeat":true},{"text":"x"}]}]}`,
		"no failure":        `{"scenarios":[{"turns":[{"always":true}]}]}`,
		"an empty failure":  `{"scenarios":[{"turns":[{"fail":[{}]}]}]}`,
		"a good status":     `{"scenarios":[{"turns":[{"fail":[{"status":200}]}]}]}`,
	} {
		path := filepath.Join(t.TempDir(), "script.json")
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		_, err := Load(path)
		require.Error(t, err, name)
	}
	path := filepath.Join(t.TempDir(), "script.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"scenarios":[{"turns":[{"tools":[{"name":"Bash","input":{"command":"ls"}}],"usage":{"input":3}}]}]}`), 0o600))
	s, err := Load(path)
	require.NoError(t, err)
	require.Equal(t, int64(3), s.Scenarios[0].Turns[0].Usage.Input)
}
