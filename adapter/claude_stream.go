package adapter

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// claudeStream reads claude -p --output-format stream-json.
type claudeStream struct {
	k known
	// tasks are the background tasks that have not ended.
	tasks recent[bool]
	// refused are the results of calls that a permission denied, as their words say.
	refused recent[refusal]
}

// refusal is what a tool's result says of who denied the call. It is sure where the
// words are claude's own and cannot be those of a command.
type refusal struct {
	origin events.DenialOrigin
	sure   bool
}

func newClaudeStream() *claudeStream { return &claudeStream{} }

func (s *claudeStream) known() *known { return &s.k }

// claudeEvent has what is used of any line.
type claudeEvent struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`
	Version   string `json:"claude_code_version"`
	// Parent is the call that an agent inside the agent was made by.
	Parent  string         `json:"parent_tool_use_id"`
	Message *claudeMessage `json:"message"`
	Error   string         `json:"error"`

	TaskID      string `json:"task_id"`
	Description string `json:"description"`
	Status      string `json:"status"`
	Summary     string `json:"summary"`
	ToolUseID   string `json:"tool_use_id"`
	Patch       struct {
		Status string `json:"status"`
	} `json:"patch"`
}

type claudeMessage struct {
	ID      string         `json:"id"`
	Model   string         `json:"model"`
	Content jsontext.Value `json:"content"`
	Usage   *claudeUsage   `json:"usage"`
}

type claudeUsage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
}

func (u claudeUsage) usage() events.Usage {
	return events.Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheCreationTokens: u.CacheCreation}
}

// claudeBlock is a part of a message's content.
type claudeBlock struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	Thinking  string         `json:"thinking"`
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Input     jsontext.Value `json:"input"`
	ToolUseID string         `json:"tool_use_id"`
	Content   jsontext.Value `json:"content"`
	IsError   bool           `json:"is_error"`
}

func (s *claudeStream) event(line []byte) ([]events.Item, bool) {
	var e claudeEvent
	if decode(line, &e) != nil {
		// A member has another type than it had. The end of the run is still told.
		var what struct {
			Type string `json:"type"`
		}
		if decode(line, &what) == nil && what.Type == "result" {
			return s.end(line)
		}
		return nil, false
	}
	if e.SessionID != "" && e.Parent == "" {
		s.k.result.SessionID, _ = head(e.SessionID, events.MaxWord)
	}
	switch e.Type {
	case "system":
		return s.system(e)
	case "assistant":
		return s.assistant(e)
	case "user":
		return s.user(e)
	case "result":
		return s.end(line)
	}
	return nil, false
}

func (s *claudeStream) system(e claudeEvent) ([]events.Item, bool) {
	note := func(id, text string) ([]events.Item, bool) {
		i := textItem(events.ItemEvent, text)
		i.Tool, i.ToolID = e.Type+"/"+e.Subtype, id
		return []events.Item{i}, true
	}
	switch e.Subtype {
	case "init":
		s.k.result.Model, _ = head(e.Model, events.MaxWord)
		s.k.result.Version, _ = head(e.Version, events.MaxWord)
		return []events.Item{{Kind: events.ItemSession, SessionID: s.k.result.SessionID, Model: s.k.result.Model}}, true
	case "thinking_tokens": // a counter, many times in one thought
		return nil, true
	case "task_started":
		s.tasks.set(e.TaskID, true, nil)
		return note(e.ToolUseID, e.Description)
	case "task_updated", "task_notification":
		// The end of a task may come in either alone.
		status := cmp.Or(e.Status, e.Patch.Status)
		if slices.Contains([]string{"completed", "failed", "stopped", "killed"}, status) {
			s.tasks.set(e.TaskID, false, nil)
		}
		return note(e.ToolUseID, strings.TrimSpace(status+" "+e.Summary))
	}
	return nil, false
}

// syntheticModel is the model of what claude says of itself, such as errors.
const syntheticModel = "<synthetic>"

func (s *claudeStream) assistant(e claudeEvent) ([]events.Item, bool) {
	if e.Message == nil {
		return nil, false
	}
	blocks, text, ok := claudeBlocks(e.Message.Content)
	if !ok {
		return nil, false
	}
	if text != "" {
		blocks = []claudeBlock{{Type: "text", Text: text}}
	}
	m := e.Message
	// What claude says in the place of the model is no answer of it.
	synthetic := e.Error != "" || m.Model == syntheticModel
	var items []events.Item
	if m.Usage != nil && !synthetic {
		_, seen := s.k.usages.values[m.ID]
		s.k.count(m.ID, m.Usage.usage())
		if !seen && e.Parent == "" {
			s.k.result.Turns++
		}
	}
	for _, b := range blocks {
		var i events.Item
		switch b.Type {
		case "text":
			i = textItem(events.ItemMessage, b.Text)
			s.k.text = i.Text
			i.IsError = synthetic
			if e.Parent == "" && !synthetic && strings.TrimSpace(b.Text) != "" {
				s.k.answer = b.Text
			}
		case "thinking":
			i = textItem(events.ItemThinking, b.Thinking)
		case "tool_use", "server_tool_use", "mcp_tool_use":
			i = callItem(b.Name, b.ID, b.Input)
			s.k.called(b.Name, b.ID)
		default:
			i = textItem(events.ItemEvent, "")
			i.Tool, _ = head(e.Type+"/"+b.Type, events.MaxWord)
		}
		i.MessageID, i.Model, i.ParentToolID = m.ID, m.Model, e.Parent
		items = append(items, i)
	}
	return items, true
}

func (s *claudeStream) user(e claudeEvent) ([]events.Item, bool) {
	if e.Message == nil {
		return nil, false
	}
	blocks, text, ok := claudeBlocks(e.Message.Content)
	if !ok {
		return nil, false
	}
	var items []events.Item
	if text != "" {
		i := textItem(events.ItemPrompt, text)
		i.ParentToolID = e.Parent
		items = append(items, i)
	}
	for _, b := range blocks {
		var i events.Item
		switch b.Type {
		case "tool_result":
			text := claudeText(b.Content)
			i = textItem(events.ItemToolResult, text)
			i.ToolID, i.Tool, i.IsError = b.ToolUseID, s.k.calls.values[b.ToolUseID], b.IsError
			if origin := claudeDenial(text); b.IsError && origin != "" {
				s.refused.set(b.ToolUseID, refusal{origin, saysDenied(text)}, nil)
			}
		case "text":
			i = textItem(events.ItemPrompt, b.Text)
		default:
			i = textItem(events.ItemEvent, "")
			i.Tool, _ = head(e.Type+"/"+b.Type, events.MaxWord)
		}
		i.ParentToolID = e.Parent
		items = append(items, i)
	}
	return items, true
}

// claudeBlocks are the blocks of a content, which may be a text instead.
func claudeBlocks(content jsontext.Value) (blocks []claudeBlock, text string, ok bool) {
	switch content.Kind() {
	case '"':
		return nil, text, decode(content, &text) == nil && text != ""
	case '[':
		return blocks, "", decode(content, &blocks) == nil
	}
	return nil, "", false
}

// claudeText is the text of a tool's result: a string, or blocks.
func claudeText(content jsontext.Value) string {
	var text string
	if content.Kind() == '"' {
		_ = decode(content, &text) // the line is valid JSON: it is a string
		return text
	}
	var blocks []claudeBlock
	if content.Kind() != '[' || decode(content, &blocks) != nil {
		return string(content)
	}
	parts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		} else {
			parts = append(parts, "["+b.Type+"]")
		}
	}
	return strings.Join(parts, "\n")
}
