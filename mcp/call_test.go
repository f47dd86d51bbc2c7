package mcp

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/tracecontext"
)

// No call outlasts its limit: it answers with what there is.
func TestCallsAnswerInTime(t *testing.T) {
	b := newBench(t, "", func(o *Options) { o.CallLimit = 900 * time.Millisecond })
	r := b.call("spawn_subagent", map[string]any{"command": []string{"work"}, "name": "one", "parent_prompt_id": "p"})
	require.False(t, r.error, r.text)
	id := r.Subagents[0].ID
	require.Equal(t, []string{id}, r.StillRunning)
	require.Contains(t, r.NextStep, "query_subagents")
	require.Empty(t, r.ends)

	b.background("two").Exit(0)
	r = b.call("query_subagents", map[string]any{"ids": []string{"one", "two", "nobody"}, "wait_ms": 600_000})
	require.Len(t, r.Subagents, 2)
	require.Equal(t, []string{id}, r.StillRunning)
	require.Equal(t, []string{"nobody"}, r.Unknown)
	require.Len(t, r.ends, 1)
	require.Empty(t, b.call("read_completions", map[string]any{"wait_ms": 600_000}).Subagents)

	r = b.call("outstanding", map[string]any{"parent_prompt_id": "p"})
	require.Equal(t, []string{id}, r.Outstanding.LiveIDs)
	r = b.call("outstanding", nil)
	require.Equal(t, []string{id}, r.Outstanding.LiveIDs)
}

// A coordinator that does not answer makes an error of the tool, in time.
func TestNoCoordinator(t *testing.T) {
	b := newBench(t, "", func(o *Options) {
		o.CallLimit = 900 * time.Millisecond
		o.Connect = func(context.Context) (*client.Client, error) {
			return nil, events.Errorf(events.CodeUnreachable, events.LayerCoordinator, "nobody listens")
		}
	})
	r := b.call("list_subagents", nil)
	require.True(t, r.error)
	require.Equal(t, events.CodeUnreachable, r.Error.Code)
	require.Contains(t, r.Error.Remedy, "tell the user")
}

func TestOtherSessionsAreNotSeen(t *testing.T) {
	b := newBench(t, "", nil)
	foreign, refusal := b.coord.Accept(events.Spawn{ParentSessionID: "other", Name: "theirs", Command: []string{"work"}})
	require.Nil(t, refusal)
	mine := b.background("mine")
	for _, ref := range []string{foreign.ID(), "theirs", foreign.ID()[30:]} {
		require.Equal(t, events.CodeUnknownID, b.call("query_subagents", map[string]any{"ids": []string{ref}}).Error.Code)
		require.Equal(t, events.CodeUnknownID, b.call("cancel_subagents", map[string]any{"ids": []string{ref}}).Error.Code)
		require.Equal(t, events.CodeUnknownID, b.call("query_subagents", map[string]any{"ids": []string{ref}, "output_offset": 0}).Error.Code)
	}
	r := b.call("list_subagents", map[string]any{"include_finished": true})
	require.Len(t, r.Subagents, 1)
	require.Equal(t, mine.ID(), r.Subagents[0].ID)
	foreign.Exit(0)
	require.Empty(t, b.call("read_completions", nil).Subagents)
}

func TestCancel(t *testing.T) {
	b := newBench(t, "", nil)
	b.coord.Script = nil
	a := b.background("one")
	done := make(chan reply, 1)
	go func() { done <- b.call("cancel_subagents", map[string]any{"ids": []string{"one", "nobody"}}) }()
	stop, ok := a.Stop(1)
	require.True(t, ok)
	require.Equal(t, events.ReasonParent, stop.Reason)
	require.Equal(t, "mcp: test", stop.Actor)
	a.Cancelled("SIGTERM")
	r := <-done
	require.ElementsMatch(t, []events.CancelOutcome{events.CancelCancelled, events.CancelNotFound}, []events.CancelOutcome{r.Results[0].Outcome, r.Results[1].Outcome})
	require.Equal(t, []any{a.ID()}, r.ends, "its end is told here")
	require.Empty(t, b.call("read_completions", nil).Subagents)
}

// Outputs are cut so that the answer fits, and can be read on.
func TestLongOutputs(t *testing.T) {
	b := newBench(t, "", nil)
	var ids []string
	for _, name := range strings.Fields("a b c d e f g") {
		a := b.background(name)
		a.Write("stdout", strings.Repeat("\"\\\x1b[31m\u00e4\x01\n", 9_000))
		a.Write("stderr", strings.Repeat("\\", 4_000))
		a.Exit(1)
		ids = append(ids, a.ID())
	}
	result, err := b.cs.CallTool(b.ctx, &sdk.CallToolParams{Name: "query_subagents", Arguments: map[string]any{"ids": ids}})
	require.NoError(t, err)
	r := b.read(result)
	require.Len(t, r.Subagents, len(ids))
	require.LessOrEqual(t, len(r.text), maxAnswer)
	structured, err := events.MarshalRecord(r.body)
	require.NoError(t, err)
	require.LessOrEqual(t, len(structured), maxAnswer)
	for _, s := range r.Subagents {
		require.True(t, s.Truncated)
		require.Contains(t, s.Output, "output_offset")
		require.NotContains(t, s.Output, "\x1b")
	}

	// Read on to the end: what was said is all there, once.
	a := b.background("whole")
	var want strings.Builder
	for i := range 9_000 {
		want.WriteString(strings.Repeat("\u20ac", i%7) + "\n")
	}
	a.Write("stdout", want.String())
	a.Exit(0)
	var got strings.Builder
	for offset := int64(0); ; {
		r := b.call("query_subagents", map[string]any{"ids": []string{"whole"}, "output_offset": offset})
		require.False(t, r.error, r.text)
		got.WriteString(r.Part.Text)
		offset = r.Part.Next
		if r.Part.EOF {
			break
		}
		require.Contains(t, r.NextStep, "output_offset")
	}
	require.Equal(t, want.String(), got.String())
}

func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		output    events.Output
		n         int
		want      string
		offset    int64
		truncated bool
	}{
		"whole":  {output: events.Output{Text: "abc", Bytes: 3}, n: 3, want: "abc"},
		"cut":    {output: events.Output{Text: "0123456789abcdef", Bytes: 16}, n: 8, want: "01\n[... 8 of 16 bytes left out; query_subagents with output_offset 2 reads on ...]\nabcdef", offset: 2, truncated: true},
		"runes":  {output: events.Output{Text: "\u20ac\u20ac\u20ac\u20ac", Bytes: 12}, n: 8, want: "\n[... 6 of 12 bytes left out; query_subagents with output_offset 0 reads on ...]\n\u20ac\u20ac", truncated: true},
		"binary": {output: events.Output{Text: base64.StdEncoding.EncodeToString([]byte("a\xffb")), Encoding: "base64", Bytes: 3}, n: 8, want: "a\uFFFDb"},
	} {
		var v subagent
		v.cut(c.output, c.n)
		require.Equal(t, c.want, v.Output, name)
		require.Equal(t, c.truncated, v.Truncated, name)
		if c.truncated {
			require.Equal(t, c.offset, *v.OutputOffset, name)
		}
	}
}

// Many calls at once are all answered: done, or refused as busy.
func TestFlood(t *testing.T) {
	b := newBench(t, "", func(o *Options) { o.CallLimit = 5 * time.Second })
	b.background("one")
	var calls sync.WaitGroup
	answers := make(chan reply, 4*maxCalls)
	for range cap(answers) {
		calls.Go(func() {
			answers <- b.call("query_subagents", map[string]any{"ids": []string{"one"}, "wait_ms": 500})
		})
	}
	calls.Wait()
	close(answers)
	done := 0
	for r := range answers {
		if !r.error {
			done++
			continue
		}
		require.Equal(t, events.CodeBusy, r.Error.Code)
	}
	require.GreaterOrEqual(t, done, maxCalls)
}

// A client that asks for progress hears of it while a call waits.
func TestProgress(t *testing.T) {
	b := newBench(t, "", func(o *Options) { o.ProgressEvery = 10 * time.Millisecond })
	told := make(chan *sdk.ProgressNotificationParams, 100)
	cs, _ := b.join("", &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		select {
		case told <- r.Params:
		default:
		}
	}})
	a := b.background("one")
	params := &sdk.CallToolParams{Name: "query_subagents", Arguments: map[string]any{"ids": []string{"one"}, "wait_ms": 20_000}}
	params.SetProgressToken("token")
	done := make(chan reply, 1)
	go func() {
		r, err := cs.CallTool(b.ctx, params)
		require.NoError(t, err)
		done <- b.read(r)
	}()
	p := <-told
	require.Equal(t, "token", p.ProgressToken)
	require.Equal(t, "0 of 1 ended", p.Message)
	require.Greater(t, (<-told).Progress, p.Progress)
	a.Exit(0)
	require.Empty(t, (<-done).StillRunning)
}

// The span of a call goes with the request of its spawn, and one that is none does
// not.
func TestTraceContextIsPassedOn(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		meta  sdk.Meta
		valid bool
	}{
		{sdk.Meta{"traceparent": parent, "tracestate": "a=b"}, true},
		{sdk.Meta{"traceparent": ""}, false}, {sdk.Meta{"traceparent": 3}, false},
		{sdk.Meta{"traceparent": "two\nlines"}, false}, {sdk.Meta{"traceparent": strings.Repeat("x", 600)}, false},
	} {
		k := &call{request: &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Meta: c.meta}}}
		span := trace.SpanContextFromContext(k.traced(t.Context()))
		require.Equal(t, c.valid, span.IsValid(), c.meta)
		if c.valid {
			got, state := tracecontext.Headers(span)
			require.Equal(t, parent, got)
			require.Equal(t, "a=b", state)
		}
	}
}

// When the client leaves, waits end and subagents go on, or not.
func TestLeaving(t *testing.T) {
	b := newBench(t, "", func(o *Options) { o.CancelOnExit = true })
	ended := b.background("ended")
	ended.Exit(0)
	a := b.background("one")
	other, refusal := b.coord.Accept(events.Spawn{ParentSessionID: "s", Name: "not-mine", Command: []string{"work"}})
	require.Nil(t, refusal)
	left := make(chan error, 1)
	go func() { left <- b.leave() }()
	stop, ok := a.Stop(1)
	require.True(t, ok)
	require.Equal(t, "mcp: the connection ended", stop.Actor)
	a.Cancelled("SIGTERM")
	require.NoError(t, <-left)
	require.Equal(t, events.StateQueued, other.Snapshot().State, "what another spawned goes on")
}

// The result of an agent says why it stopped, what it used and was denied.
func TestAgentsTellWhatTheyUsed(t *testing.T) {
	b := newBench(t, "", nil)
	cost := 0.0125
	b.background("one").End(func(s *events.Snapshot) {
		s.Status = events.StatusCompleted
		s.Agent = &events.AgentResult{
			Agent: "claude", StopReason: "end_turn", Turns: 3, ToolCalls: 7, Usage: events.Usage{InputTokens: 1000, OutputTokens: 200}, CostUSD: &cost,
			DenialCount: 9, Denials: make([]events.Denial, 9),
		}
	})
	r := b.call("read_completions", nil)
	require.Contains(t, r.text, "claude stopped: end_turn, after 3 turns, 7 tool calls and 1200 tokens for $0.0125; 9 calls were denied")
	require.Equal(t, int64(1000), r.Subagents[0].Agent.Usage.InputTokens)
	require.Len(t, r.Subagents[0].Agent.Denials, maxDenials)
	require.Equal(t, 9, r.Subagents[0].Agent.DenialCount)
}
