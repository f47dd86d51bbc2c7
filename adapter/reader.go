package adapter

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

const (
	// MaxLine bounds a line that is interpreted. A longer one is named by its place.
	MaxLine = 16 << 20
	// maxText bounds the text, and the input, of one item. The line has all of it.
	maxText = 64 << 10
	// maxIdleLine bounds the buffer that is kept for the next line.
	maxIdleLine = 1 << 20
)

// Reader reads the stdout of an agent into items. Its memory is bounded by
// [MaxLine], not by what the agent says. It is not safe for concurrent use.
type Reader struct {
	spec   events.AdapterSpec
	stream stream

	offset int64  // of the line under way
	length int64  // of that line so far
	line   []byte // what is kept of it, at most MaxLine+1 bytes
}

// stream is the part of one agent.
type stream interface {
	// event takes one line that is a JSON object and returns what it says, and false
	// if it is not understood.
	event(line []byte) ([]events.Item, bool)
	// known is what has been learnt so far.
	known() *known
	// cut completes it where the terminal event is missing.
	cut()
}

// NewReader returns a reader for the agent of spec, or nil if its stream is not
// known.
func NewReader(spec events.AdapterSpec) *Reader {
	r := &Reader{spec: spec}
	switch spec.Agent {
	case events.AgentClaude:
		r.stream = newClaudeStream()
	case events.AgentCodex:
		r.stream = newCodexStream(spec.SessionUsage)
	default:
		return nil
	}
	return r
}

// Write takes the next bytes of stdout and returns the items of the lines that
// ended in them.
func (r *Reader) Write(p []byte) []events.Item {
	var items []events.Item
	for len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		r.line = append(r.line, part[:min(len(part), max(MaxLine+1-len(r.line), 0))]...)
		r.length += int64(len(part))
		if !ended {
			break
		}
		items = append(items, r.endLine()...)
		r.offset++ // the line end
		p = rest
	}
	return items
}

// Progress is how far the agent is, and the last that it said.
func (r *Reader) Progress() (events.AgentProgress, string) {
	k := r.stream.known()
	return events.AgentProgress{
		Turns: k.result.Turns, ToolCalls: k.result.ToolCalls, LastTool: k.lastTool, Usage: k.total(),
	}, k.text
}

// endLine reads the line under way and begins the next one.
func (r *Reader) endLine() []events.Item {
	line := bytes.TrimSpace(r.line)
	var items []events.Item
	switch {
	case len(r.line) > MaxLine:
		items = []events.Item{{Kind: events.ItemEvent, TextOmitted: true}}
	case len(line) == 0:
	default:
		items = r.read(line)
	}
	for i := range items {
		items[i].Stream, items[i].Offset, items[i].Bytes = "stdout", r.offset, r.length
	}
	r.offset += r.length
	r.length, r.line = 0, r.line[:0]
	if cap(r.line) > maxIdleLine {
		r.line = nil
	}
	return items
}

func (r *Reader) read(line []byte) []events.Item {
	if line[0] == '{' && jsontext.Value(line).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
		if items, understood := r.stream.event(line); understood {
			return items
		}
	}
	item := events.Item{Kind: events.ItemEvent, Tool: typeOf(line)}
	item.Text, item.TextOmitted = clip(string(line))
	return []events.Item{item}
}

// typeOf is the name of an event, for what is passed through.
func typeOf(line []byte) string {
	var e struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
	}
	if decode(line, &e) != nil {
		return ""
	}
	name := e.Type
	if e.Subtype != "" {
		name += "/" + e.Subtype
	}
	name, _ = head(name, events.MaxWord)
	return name
}

// decode reads a value as leniently as it can be: what agents write is theirs.
func decode(value []byte, v any) error {
	return json.Unmarshal(value, v, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// clip bounds a text and tells whether some is missing.
func clip(s string) (string, bool) { return head(s, maxText) }

// head returns the first runes of s, at most n bytes of them.
func head(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], true
}

// textItem is an item of kind with a text.
func textItem(kind events.ItemKind, text string) events.Item {
	i := events.Item{Kind: kind}
	i.Text, i.TextOmitted = clip(text)
	return i
}

// callItem is a call of a tool. An input that is too long is left out: half of it
// is no JSON.
func callItem(tool, id string, input jsontext.Value) events.Item {
	i := events.Item{Kind: events.ItemToolCall, Tool: tool, ToolID: id}
	if len(input) > maxText {
		i.Text, i.TextOmitted = clip(string(input))
		return i
	}
	i.Input = bytes.Clone(input)
	return i
}
