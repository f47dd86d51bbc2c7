package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// A chat that streams says what it used, whatever its client asked for; nothing else
// of the request changes.
func TestCountable(t *testing.T) {
	for _, c := range []struct{ path, body, want, refused string }{
		{pathChat, `{"model": "m", "stream": true, "x": 1.00}`, `{"stream_options":{"include_usage":true},"model": "m", "stream": true, "x": 1.00}`, ""},
		{pathChat, `{"stream":true,"stream_options": null , "x":1}`, `{"stream":true,"stream_options": {"include_usage":true} , "x":1}`, ""},
		{pathChat, `{"stream":true,"stream_options":{"a":[1, 2],"include_usage":false}}`, `{"stream":true,"stream_options":{"a":[1, 2],"include_usage":true}}`, ""},
		{pathChat, `{"stream":true,"stream\u005foptions":{"a":1}}`, `{"stream":true,"stream\u005foptions":{"include_usage":true,"a":1}}`, ""},
		{pathChat, "{\"stream\":true,\"x\":\"\xff\"}", "{\"stream_options\":{\"include_usage\":true},\"stream\":true,\"x\":\"\xff\"}", ""},
		{pathChat, `{"stream":true,"stream_options":[]}`, "", "stream_options: it is not an object (make it an object, or leave it out)"},
		{pathChat, `{"stream":false,"stream_options":{}}`, `{"stream":false,"stream_options":{}}`, ""},
		{pathResponses, `{"stream":true}`, `{"stream":true}`, ""},
		{pathResponses, `{"background":true,"stream":true}`, "", "responses in the background are not forwarded"},
	} {
		var a ask
		require.NoError(t, events.DecodeRecord([]byte(c.body), &a), c.body)
		got, err := openaiCountable(c.path, a, []byte(c.body))
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused, c.body)
			continue
		}
		require.Nil(t, err, c.body)
		require.Equal(t, c.want, string(got))
	}
}

func TestMost(t *testing.T) {
	a := ask{MaxTokens: 1, MaxOutputTokens: 2, MaxCompletionTokens: 3, Choices: 4}
	require.EqualValues(t, 1, a.most("/v1/messages"))
	require.EqualValues(t, 2, a.most(pathResponses))
	require.EqualValues(t, 12, a.most(pathChat))
	require.EqualValues(t, assumedOutput, ask{MaxTokens: 1}.most(pathResponses), "it does not know that bound")
	require.EqualValues(t, assumedOutput, ask{MaxTokens: -1}.most(pathChat))
	huge := ask{MaxCompletionTokens: 1<<63 - 1, Choices: 1<<63 - 1}
	require.Positive(t, huge.most(pathChat))
}

func withOpenAI(o *Options) {
	o.Upstreams = append(o.Upstreams, Upstream{Name: "openai", Base: o.Upstreams[0].Base, KeyEnv: "KEY"})
}

func TestChatThatStreamsIsCounted(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		stream(w, "data: {\"model\":\"gpt-x\",\"choices\":[{}]}\n\n")
		if strings.Contains(string(b), `"include_usage":true`) {
			stream(w, "data: {\"model\":\"gpt-x\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n")
		}
		stream(w, "data: [DONE]\n\n")
	}, withOpenAI)
	a := w.run(step{Method: "POST", Path: "/openai" + pathChat, Body: `{"model":"gpt-x","stream":true}`},
		step{Method: "POST", Path: "/openai" + pathChat, Body: `{"stream":true,"stream_options":{"include_usage":false}}`})
	for _, one := range a.told(t) {
		require.Equal(t, 200, one.Status, one.Body)
	}
	w.counted(a)
	require.Equal(t, events.Usage{InputTokens: 18, OutputTokens: 8}, w.g.Forget(a.id))
}

// What cannot be counted is not let through.
func TestRefusesWhatCannotBeCounted(t *testing.T) {
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("asked %s", r.URL)
	}, withOpenAI, priced, func(o *Options) { o.MaxCostUSD = 5 })
	for _, c := range []struct{ path, body, want string }{
		{"/openai" + pathResponses, `{"model":"claude-x","background":true}`, "leave background out"},
		{"/anthropic/v1/messages", `{"model":"claude-x","model":"claude-y"}`, "the body cannot be read"},
		{"/anthropic/v1/messages", `{}`, "the request names no model"},
		{"/anthropic/v1/messages", "\x1f\x8b", "the body cannot be read"},
	} {
		one := w.run(step{Method: "POST", Path: c.path, Body: c.body}).told(t)[0]
		require.Equal(t, 400, one.Status)
		require.Contains(t, one.Body, c.want)
	}
}

// A list of models has no model and costs nothing.
func TestBudgetLetsModelsBeListed(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[]}`) }, priced,
		func(o *Options) { o.MaxCostUSD, o.MaxTokens = 5, 1 })
	for _, one := range w.run(step{Method: "GET", Path: "/anthropic/v1/models"}, step{Method: "GET", Path: "/anthropic/v1/models"}).told(t) {
		require.Equal(t, 200, one.Status, one.Body)
	}
}

// An answer that does not say what it used spends the most that it may have been.
func TestBudgetsFailClosed(t *testing.T) {
	ledger := &memory{calls: map[string][]Call{}}
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/count_tokens") {
			io.WriteString(w, `{"input_tokens":1000}`)
			return
		}
		stream(w, "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n")
	}, priced, func(o *Options) { o.MaxTokens, o.MaxCostUSD, o.Ledger = 120, 5, ledger })
	const body = `{"model":"claude-x","max_tokens":60}`
	all := w.run(step{Method: "POST", Path: "/anthropic" + pathCountTokens, Body: body}, step{Body: body}, step{Body: body}, step{Body: body}).told(t)
	require.Equal(t, []int{200, 200, 200, 400}, []int{all[0].Status, all[1].Status, all[2].Status, all[3].Status})
	require.Contains(t, all[3].Body, "the budget of 120 tokens is used up: 134")
	for _, calls := range ledger.calls {
		require.False(t, calls[0].Unknown)
		require.True(t, calls[1].Unknown)
		require.Equal(t, events.Usage{InputTokens: 7, OutputTokens: 60}, calls[1].Usage)
		require.InDelta(t, (7*3+60*15)/1e6, *calls[1].CostUSD, 1e-12)
	}
}

func TestBodiesOfASubagentAreBounded(t *testing.T) {
	b := newBodies(10)
	require.NoError(t, b.take("a", 6))
	require.NoError(t, b.take("b", 6))
	require.ErrorIs(t, b.take("a", 5), errHeld)
	b.give("a", 6)
	b.give("b", 6)
	require.Empty(t, b.held)

	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{}`) }, func(o *Options) { o.held = 1000 })
	fits, over := step{Body: strings.Repeat("x", 900)}, step{Body: strings.Repeat("x", 1100)}
	all := w.run(fits, over, fits).told(t)
	require.Equal(t, []int{200, 503, 200}, []int{all[0].Status, all[1].Status, all[2].Status})
	require.Contains(t, all[1].Body, "overloaded_error")
	require.Contains(t, all[1].Body, "the requests of this subagent have over 1000 bytes together")
}

// An agent that does not send what it began does not keep its place.
func TestBodyThatDoesNotCome(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") }, func(o *Options) { o.bodyWithin = 200 * time.Millisecond })
	one := w.run(step{Body: "{", Stall: true}).told(t)[0]
	require.Equal(t, http.StatusRequestTimeout, one.Status, one.Err)
	require.Contains(t, one.Body, "did not come within 200ms")
	require.Empty(t, w.g.bodies.held)
}
