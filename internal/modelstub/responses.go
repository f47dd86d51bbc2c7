package modelstub

import (
	"encoding/json"
	"fmt"
)

// responses is the responses API.
type responses struct{}

func (responses) parse(body []byte) (call, error) {
	var req struct {
		Model  string          `json:"model"`
		Stream bool            `json:"stream"`
		Input  json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return call{}, fmt.Errorf("the body is no request of the responses API: %w", err)
	}
	c := call{model: req.Model, stream: req.Stream}
	var items []struct {
		Type string `json:"type"`
		Role string `json:"role"`
	}
	if json.Unmarshal(req.Input, &items) != nil {
		return c, nil // a text alone: the first turn
	}
	// One answer is several items in a row.
	answering := false
	for _, it := range items {
		var ours bool
		switch it.Type {
		case "", "message":
			ours = it.Role == "assistant"
		case "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call":
			ours = true
		}
		if ours && !answering {
			c.turn++
		}
		answering = ours
	}
	return c, nil
}

func (responses) parts(c call, t Turn) parts {
	var p parts
	id := fmt.Sprintf("resp_stub%02d", c.turn)
	response := func(status string, output []any, usage any) map[string]any {
		return map[string]any{
			"id": id, "object": "response", "created_at": 1767225600, "model": c.model, "status": status,
			"output": output, "usage": usage, "error": nil, "incomplete_details": incomplete(t),
		}
	}
	seq := 0
	send := func(name string, members map[string]any) {
		members["type"], members["sequence_number"] = name, seq
		seq++
		p.event(name, members)
	}
	send("response.created", map[string]any{"response": response("in_progress", []any{}, nil)})

	output := []any{}
	item := func(added, done map[string]any, deltas func(index int)) {
		i := len(output)
		send("response.output_item.added", map[string]any{"output_index": i, "item": added})
		deltas(i)
		send("response.output_item.done", map[string]any{"output_index": i, "item": done})
		output = append(output, done)
	}
	if t.Thinking != "" {
		rs := fmt.Sprintf("rs_stub%02d", c.turn)
		item(map[string]any{"type": "reasoning", "id": rs, "summary": []any{}},
			map[string]any{"type": "reasoning", "id": rs, "summary": []any{map[string]any{"type": "summary_text", "text": t.Thinking}}},
			func(i int) {
				send("response.reasoning_summary_part.added", map[string]any{
					"item_id": rs, "output_index": i, "summary_index": 0, "part": map[string]any{"type": "summary_text", "text": ""},
				})
				for _, piece := range pieces(t.Thinking) {
					send("response.reasoning_summary_text.delta", map[string]any{"item_id": rs, "output_index": i, "summary_index": 0, "delta": piece})
				}
			})
	}
	if t.Text != "" {
		msg := fmt.Sprintf("msg_stub%02d", c.turn)
		message := func(status string, content []any) map[string]any {
			return map[string]any{"type": "message", "id": msg, "role": "assistant", "status": status, "content": content}
		}
		item(message("in_progress", []any{}),
			message("completed", []any{map[string]any{"type": "output_text", "text": t.Text, "annotations": []any{}}}),
			func(i int) {
				for _, piece := range pieces(t.Text) {
					send("response.output_text.delta", map[string]any{"item_id": msg, "output_index": i, "content_index": 0, "delta": piece})
				}
			})
	}
	for n, tool := range t.Tools {
		fc, callID := fmt.Sprintf("fc_stub%02d%02d", c.turn, n), fmt.Sprintf("call_stub%02d%02d", c.turn, n)
		if text, ok := tool.custom(); ok {
			whole := map[string]any{"type": "custom_tool_call", "id": fc, "call_id": callID, "name": tool.Name, "input": text, "status": "completed"}
			item(whole, whole, func(int) {})
			continue
		}
		function := func(arguments, status string) map[string]any {
			return map[string]any{"type": "function_call", "id": fc, "call_id": callID, "name": tool.Name, "arguments": arguments, "status": status}
		}
		item(function("", "in_progress"), function(string(tool.Input), "completed"), func(i int) {
			for _, piece := range pieces(string(tool.Input)) {
				send("response.function_call_arguments.delta", map[string]any{"item_id": fc, "output_index": i, "delta": piece})
			}
		})
	}
	status, event := "completed", "response.completed"
	if incomplete(t) != nil {
		status, event = "incomplete", "response.incomplete"
	}
	input := t.Usage.Input + t.Usage.CacheRead + t.Usage.CacheCreation
	whole := response(status, output, map[string]any{
		"input_tokens": input, "input_tokens_details": map[string]any{"cached_tokens": t.Usage.CacheRead},
		"output_tokens": t.Usage.Output, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
		"total_tokens": input + t.Usage.Output,
	})
	send(event, map[string]any{"response": whole})
	p.whole = whole
	return p
}

// incomplete is why an answer was cut, or nil.
func incomplete(t Turn) any {
	if t.Stop == "max_tokens" {
		return map[string]any{"reason": "max_output_tokens"}
	}
	return nil
}
