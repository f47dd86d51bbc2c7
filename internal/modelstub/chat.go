package modelstub

import (
	"encoding/json"
	"fmt"
)

// chat is the chat completions API.
type chat struct{}

func (chat) parse(body []byte) (call, error) {
	var req struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return call{}, fmt.Errorf("the body is no request of the chat completions API: %w", err)
	}
	c := call{model: req.Model, stream: req.Stream}
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			c.turn++
		}
	}
	return c, nil
}

func (chat) parts(c call, t Turn) parts {
	var p parts
	id := fmt.Sprintf("chatcmpl-stub%02d", c.turn)
	input := t.Usage.Input + t.Usage.CacheRead + t.Usage.CacheCreation
	usage := map[string]any{
		"prompt_tokens": input, "completion_tokens": t.Usage.Output, "total_tokens": input + t.Usage.Output,
		"prompt_tokens_details": map[string]any{"cached_tokens": t.Usage.CacheRead},
	}
	chunk := func(delta map[string]any, finish any) {
		p.event("", map[string]any{
			"id": id, "object": "chat.completion.chunk", "created": 1767225600, "model": c.model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, piece := range pieces(t.Text) {
		chunk(map[string]any{"content": piece}, nil)
	}
	calls := []any{}
	for i, tool := range t.Tools {
		callID := fmt.Sprintf("call_stub%02d%02d", c.turn, i)
		function := func(arguments string) map[string]any {
			return map[string]any{"name": tool.Name, "arguments": arguments}
		}
		chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": callID, "type": "function", "function": function("")}}}, nil)
		for _, piece := range pieces(string(tool.Input)) {
			chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": piece}}}}, nil)
		}
		calls = append(calls, map[string]any{"id": callID, "type": "function", "function": function(string(tool.Input))})
	}
	finish := map[string]string{"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}[t.stop()]
	if finish == "" {
		finish = "stop"
	}
	chunk(map[string]any{}, finish)
	p.event("", map[string]any{
		"id": id, "object": "chat.completion.chunk", "created": 1767225600, "model": c.model, "choices": []any{}, "usage": usage,
	})
	p.stream = append(p.stream, "data: [DONE]\n\n")

	message := map[string]any{"role": "assistant", "content": t.Text}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	p.whole = map[string]any{
		"id": id, "object": "chat.completion", "created": 1767225600, "model": c.model, "usage": usage,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
	}
	return p
}
