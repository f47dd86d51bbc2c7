package adapter

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// codexStream reads codex exec --json.
type codexStream struct {
	k known
	// before is the usage of the session's earlier runs, which codex counts along.
	before events.Usage
}

func newCodexStream(before events.Usage) *codexStream {
	s := &codexStream{before: before}
	s.k.result.SessionUsage = before
	return s
}

func (s *codexStream) known() *known { return &s.k }

type codexEvent struct {
	Type     string     `json:"type"`
	ThreadID string     `json:"thread_id"`
	Item     codexItem  `json:"item"`
	Message  string     `json:"message"`
	Error    codexError `json:"error"`
	Usage    struct {
		Input      int64 `json:"input_tokens"`
		Cached     int64 `json:"cached_input_tokens"`
		CacheWrite int64 `json:"cache_write_input_tokens"`
		Output     int64 `json:"output_tokens"`
	} `json:"usage"`
}

type codexError struct {
	Message string `json:"message"`
}

type codexItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
	Text   string `json:"text"`

	Command  string `json:"command"`
	Output   string `json:"aggregated_output"`
	ExitCode *int   `json:"exit_code"`

	Changes   jsontext.Value `json:"changes"`
	Items     jsontext.Value `json:"items"`
	Server    string         `json:"server"`
	Tool      string         `json:"tool"`
	Arguments jsontext.Value `json:"arguments"`
	Result    jsontext.Value `json:"result"`
	Error     codexError     `json:"error"`
	Query     string         `json:"query"`
	Message   string         `json:"message"`
}

func (s *codexStream) event(line []byte) ([]events.Item, bool) {
	var e codexEvent
	if decode(line, &e) != nil {
		var what struct {
			Type string `json:"type"`
		}
		// A member has another type than it had. The end of the run is still told.
		if decode(line, &what) == nil && (what.Type == "turn.completed" || what.Type == "turn.failed") {
			s.k.ended = true
			s.k.fail(events.StopError, events.CodeAgentFailed, events.ReasonExit, "its "+what.Type+" cannot be read")
		}
		return nil, false
	}
	k := &s.k
	switch e.Type {
	case "thread.started":
		k.result.SessionID, _ = head(e.ThreadID, events.MaxWord)
		return []events.Item{{Kind: events.ItemSession, SessionID: k.result.SessionID}}, true
	case "turn.started":
		k.ended, k.failure = false, nil
		k.result.Turns++
		return nil, true
	case "item.started", "item.updated", "item.completed":
		return s.item(e.Type, e.Item)
	case "turn.completed":
		k.ended, k.failure, k.settled = true, nil, true
		k.result.StopReason = events.StopEnd
		k.result.SessionUsage = events.Usage{
			InputTokens: max(e.Usage.Input-e.Usage.Cached-e.Usage.CacheWrite, 0), OutputTokens: e.Usage.Output,
			CacheReadTokens: e.Usage.Cached, CacheCreationTokens: e.Usage.CacheWrite,
		}
		k.result.Usage = k.result.SessionUsage.Less(s.before)
		usage := k.result.Usage
		return []events.Item{{
			Kind: events.ItemResult, SessionID: k.result.SessionID, StopReason: events.StopEnd, Usage: &usage,
		}}, true
	case "turn.failed":
		k.ended = true
		s.fail(e.Error.Message)
		i := textItem(events.ItemResult, e.Error.Message)
		i.IsError, i.SessionID, i.StopReason = true, k.result.SessionID, k.result.StopReason
		return []events.Item{i}, true
	case "error":
		// Also said of what is tried again; turn.failed follows if it was not.
		s.fail(e.Message)
		i := textItem(events.ItemEvent, e.Message)
		i.Tool, i.IsError = e.Type, true
		return []events.Item{i}, true
	}
	return nil, false
}

func (s *codexStream) fail(message string) {
	if budgetUsedUp(message) {
		s.k.fail(events.StopBudget, events.CodeLimit, events.ReasonLimit, message)
		return
	}
	code := events.CodeAgentFailed
	switch status := statusIn(message); {
	case status != 0:
		code = codeOfStatus(status)
	case notLoggedIn(message):
		code = events.CodeNoModelAccess
	case strings.Contains(message, "stream disconnected"), strings.Contains(message, "error sending request"), strings.Contains(message, "high demand"):
		code = events.CodeOverloaded
	}
	s.k.fail(events.StopError, code, events.ReasonExit, message)
}

// cut has nothing to add: a declined call was counted when it was told.
func (*codexStream) cut() {}

// statusIn finds an HTTP status in codex's words: "unexpected status 401
// Unauthorized", "last status: 429 Too Many Requests".
func statusIn(message string) int {
	_, rest, found := strings.Cut(message, "status")
	if !found {
		return 0
	}
	rest = strings.TrimLeft(rest, ": ")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	if n, err := strconv.Atoi(rest[:end]); err == nil && n >= 400 && n < 600 {
		return n
	}
	return 0
}

func (s *codexStream) item(event string, it codexItem) ([]events.Item, bool) {
	done := event == "item.completed"
	switch it.Type {
	case "agent_message":
		if !done {
			return nil, true
		}
		i := textItem(events.ItemMessage, it.Text)
		i.MessageID, s.k.text = it.ID, i.Text
		if strings.TrimSpace(it.Text) != "" {
			s.k.answer = it.Text
		}
		return []events.Item{i}, true
	case "reasoning":
		if !done {
			return nil, true
		}
		i := textItem(events.ItemThinking, it.Text)
		i.MessageID = it.ID
		return []events.Item{i}, true
	case "command_execution":
		return s.call(event, it, "shell", object("command", it.Command), it.Output)
	case "file_change":
		return s.call(event, it, "apply_patch", it.Changes, "")
	case "mcp_tool_call", "collab_tool_call":
		name := it.Tool
		if it.Server != "" {
			name = mcpPrefix + it.Server + "__" + it.Tool
		}
		return s.call(event, it, name, it.Arguments, cmp.Or(it.Error.Message, codexResult(it.Result)))
	case "web_search":
		return s.call(event, it, "web_search", object("query", it.Query), "")
	case "error":
		s.k.warn("%s", first(it.Message))
		i := textItem(events.ItemEvent, it.Message)
		i.Tool, i.IsError = "item/error", true
		return []events.Item{i}, true
	}
	return nil, false
}

// call makes the call of an item that is seen for the first time, and its result
// once it is done.
func (s *codexStream) call(event string, it codexItem, tool string, input jsontext.Value, output string) ([]events.Item, bool) {
	var items []events.Item
	if _, seen := s.k.calls.values[it.ID]; !seen {
		s.k.called(tool, it.ID)
		items = append(items, callItem(tool, it.ID, input))
	}
	if event != "item.completed" {
		return items, true
	}
	i := textItem(events.ItemToolResult, output)
	i.Tool, i.ToolID = tool, it.ID
	i.IsError = it.Status == "failed" || it.Status == "declined" || it.Error.Message != "" || it.ExitCode != nil && *it.ExitCode != 0
	if it.Status == "declined" {
		s.k.deny(events.Denial{Tool: tool, ToolID: it.ID, Origin: events.DenialRule, Input: string(input)})
	}
	return append(items, i), true
}

// codexResult is the text of an MCP tool's result.
func codexResult(result jsontext.Value) string {
	var r struct {
		Content jsontext.Value `json:"content"`
	}
	if result.Kind() != '{' || decode(result, &r) != nil {
		return ""
	}
	return claudeText(r.Content)
}

// object is a JSON object with one text.
func object(name, text string) jsontext.Value {
	v := append(jsontext.Value{'{', '"'}, name...)
	v = append(v, '"', ':')
	// It only fails for what is not UTF-8, which the text of a decoded line is.
	v, _ = jsontext.AppendQuote(v, strings.ToValidUTF8(text, "\uFFFD"))
	return append(v, '}')
}

// first is the beginning of a text for a warning.
func first(s string) string {
	s, _ = head(s, events.MaxLastLine)
	return s
}
