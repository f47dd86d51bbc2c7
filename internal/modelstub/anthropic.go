package modelstub

import (
	"encoding/json"
	"fmt"
)

// anthropic is the messages API.
type anthropic struct{}

func (anthropic) parse(body []byte) (call, error) {
	var req struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return call{}, fmt.Errorf("the body is no request of the messages API: %w", err)
	}
	c := call{model: req.Model, stream: req.Stream}
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			c.turn++
		}
	}
	return c, nil
}

func (anthropic) parts(c call, t Turn) parts {
	var p parts
	usage := map[string]any{
		"input_tokens": t.Usage.Input, "output_tokens": 1,
		"cache_read_input_tokens": t.Usage.CacheRead, "cache_creation_input_tokens": t.Usage.CacheCreation,
	}
	message := map[string]any{
		"id": fmt.Sprintf("msg_stub%02d", c.turn), "type": "message", "role": "assistant", "model": c.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}
	p.event("message_start", map[string]any{"type": "message_start", "message": message})

	content := []any{}
	block := func(start map[string]any, whole map[string]any, deltas ...map[string]any) {
		i := len(content)
		p.event("content_block_start", map[string]any{"type": "content_block_start", "index": i, "content_block": start})
		for _, d := range deltas {
			p.event("content_block_delta", map[string]any{"type": "content_block_delta", "index": i, "delta": d})
		}
		p.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": i})
		content = append(content, whole)
	}
	deltas := func(kind, member, text string) (out []map[string]any) {
		for _, piece := range pieces(text) {
			out = append(out, map[string]any{"type": kind, member: piece})
		}
		return out
	}
	if t.Thinking != "" {
		ds := append(deltas("thinking_delta", "thinking", t.Thinking), map[string]any{"type": "signature_delta", "signature": "c3R1Yg=="})
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""},
			map[string]any{"type": "thinking", "thinking": t.Thinking, "signature": "c3R1Yg=="}, ds...)
	}
	if t.Text != "" {
		block(map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text", "text": t.Text},
			deltas("text_delta", "text", t.Text)...)
	}
	for i, tool := range t.Tools {
		id := fmt.Sprintf("toolu_stub%02d%02d", c.turn, i)
		block(map[string]any{"type": "tool_use", "id": id, "name": tool.Name, "input": map[string]any{}},
			map[string]any{"type": "tool_use", "id": id, "name": tool.Name, "input": tool.Input},
			deltas("input_json_delta", "partial_json", string(tool.Input))...)
	}
	p.event("message_delta", map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": t.stop(), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": t.Usage.Output},
	})
	p.event("message_stop", map[string]any{"type": "message_stop"})

	whole := map[string]any{}
	for k, v := range message {
		whole[k] = v
	}
	whole["content"], whole["stop_reason"] = content, t.stop()
	whole["usage"] = map[string]any{
		"input_tokens": t.Usage.Input, "output_tokens": t.Usage.Output,
		"cache_read_input_tokens": t.Usage.CacheRead, "cache_creation_input_tokens": t.Usage.CacheCreation,
	}
	p.whole = whole
	return p
}
