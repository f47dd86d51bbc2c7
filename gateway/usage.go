package gateway

import (
	"bytes"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// Call is one request to a model API, as it is appended to usage.jsonl.
type Call struct {
	Upstream string `json:"upstream"`
	Model    string `json:"model,omitempty"`
	// Status is what the agent was answered, 0 if it left before; Attempts how often
	// the model API was asked.
	Status     int          `json:"status"`
	Attempts   int          `json:"attempts"`
	DurationMS int64        `json:"duration_ms"`
	Usage      events.Usage `json:"usage"`
	// CostUSD is what it cost; absent where the model has no price.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// Cut: the answer broke off, or its agent left.
	Cut bool `json:"cut,omitzero"`
	// Unknown: the answer does not say all of what it used. Usage is then what it
	// says, or where there is a budget the most that it is assumed to be.
	Unknown bool `json:"unknown,omitzero"`
}

// usageReader finds the usage in the JSON texts of an answer: the whole body, or
// the data of each event of a stream.
type usageReader interface {
	text(b []byte)
	usage() (model string, u events.Usage)
	// complete reports whether the usage is that of the whole answer.
	complete() bool
}

// anthropicUsage reads answers of the messages API. In a stream the first event
// has what was read, and later ones what was written so far.
type anthropicUsage struct {
	model string
	sum   events.Usage
	whole bool
}

type anthropicCounts struct {
	Input         *int64 `json:"input_tokens"`
	Output        *int64 `json:"output_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
}

func (a *anthropicUsage) text(b []byte) {
	var m struct {
		Model   string           `json:"model"`
		Usage   *anthropicCounts `json:"usage"`
		Message struct {
			Model string           `json:"model"`
			Usage *anthropicCounts `json:"usage"`
		} `json:"message"`
	}
	if !bytes.Contains(b, []byte(`"usage"`)) || events.DecodeRecord(b, &m) != nil {
		return
	}
	a.model = latest(a.model, m.Model, m.Message.Model)
	// What is written stands at the end of a stream, and beside the message otherwise.
	a.whole = a.whole || m.Usage != nil && m.Usage.Output != nil
	for _, c := range []*anthropicCounts{m.Message.Usage, m.Usage} {
		if c == nil {
			continue
		}
		set(&a.sum.InputTokens, c.Input)
		set(&a.sum.OutputTokens, c.Output)
		set(&a.sum.CacheCreationTokens, c.CacheCreation)
		set(&a.sum.CacheReadTokens, c.CacheRead)
	}
}

func (a *anthropicUsage) usage() (string, events.Usage) { return a.model, a.sum }
func (a *anthropicUsage) complete() bool                { return a.whole }

// openaiUsage reads answers of the responses API and of chat completions. Their
// input counts hold what came from a cache and what was put into one.
type openaiUsage struct {
	model string
	sum   events.Usage
	whole bool
}

type openaiCounts struct {
	Input         *int64        `json:"input_tokens"`
	Output        *int64        `json:"output_tokens"`
	Prompt        *int64        `json:"prompt_tokens"`
	Completion    *int64        `json:"completion_tokens"`
	InputDetails  openaiDetails `json:"input_tokens_details"`
	PromptDetails openaiDetails `json:"prompt_tokens_details"`
}

type openaiDetails struct {
	Cached  int64 `json:"cached_tokens"`
	Written int64 `json:"cache_write_tokens"`
}

func (o *openaiUsage) text(b []byte) {
	var m struct {
		Model    string        `json:"model"`
		Usage    *openaiCounts `json:"usage"`
		Response struct {
			Model string        `json:"model"`
			Usage *openaiCounts `json:"usage"`
		} `json:"response"`
	}
	if !bytes.Contains(b, []byte(`"usage"`)) || events.DecodeRecord(b, &m) != nil {
		return
	}
	o.model = latest(o.model, m.Model, m.Response.Model)
	for _, c := range []*openaiCounts{m.Response.Usage, m.Usage} {
		if c == nil {
			continue
		}
		cached := max(c.InputDetails.Cached, c.PromptDetails.Cached)
		written := max(c.InputDetails.Written, c.PromptDetails.Written)
		set(&o.sum.InputTokens, c.Input)
		set(&o.sum.InputTokens, c.Prompt)
		set(&o.sum.OutputTokens, c.Output)
		set(&o.sum.OutputTokens, c.Completion)
		o.whole = o.whole || c.Output != nil || c.Completion != nil
		if c.Input != nil || c.Prompt != nil {
			o.sum.CacheReadTokens = min(max(cached, 0), o.sum.InputTokens)
			o.sum.InputTokens -= o.sum.CacheReadTokens
			o.sum.CacheCreationTokens = min(max(written, 0), o.sum.InputTokens)
			o.sum.InputTokens -= o.sum.CacheCreationTokens
		}
	}
}

func (o *openaiUsage) usage() (string, events.Usage) { return o.model, o.sum }
func (o *openaiUsage) complete() bool                { return o.whole }

// maxCount is above every count that there is.
const maxCount = 1 << 40

// set takes a count over; what a model API says is not trusted to be sensible.
func set(to *int64, from *int64) {
	if from != nil && *from >= 0 && *from < maxCount {
		*to = *from
	}
}

func latest(known string, names ...string) string {
	for _, n := range names {
		if n != "" && len(n) <= events.MaxWord {
			known = n
		}
	}
	return known
}

// Bounds of what is looked at: an event of a stream, a whole answer.
const (
	maxEvent  = 1 << 20
	maxAnswer = 16 << 20
)

// meter passes an answer by and reads the usage in it.
type meter struct {
	reader usageReader
	stream bool
	// line is the line of a stream under way, or the whole answer; nil once it is
	// over its bound.
	line []byte
	over bool
}

func newMeter(reader usageReader, contentType string) *meter {
	return &meter{reader: reader, stream: strings.HasPrefix(contentType, "text/event-stream")}
}

// Write implements [io.Writer] and never fails.
func (m *meter) Write(p []byte) (int, error) {
	n := len(p)
	if !m.stream {
		m.keep(p, maxAnswer)
		return n, nil
	}
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		m.keep(line, maxEvent)
		if !ended {
			return n, nil
		}
		m.endLine()
		p = rest
	}
}

func (m *meter) keep(p []byte, bound int) {
	if len(m.line)+len(p) > bound {
		m.over = true
	}
	if m.over {
		m.line = nil
		return
	}
	m.line = append(m.line, p...)
}

func (m *meter) endLine() {
	if data, ok := bytes.CutPrefix(m.line, []byte("data:")); ok {
		m.reader.text(bytes.TrimSpace(data))
	}
	m.line, m.over = m.line[:0], false
}

// complete reports whether the usage of the whole answer has passed.
func (m *meter) complete() bool { return m.reader.complete() }

// finish returns what was found.
func (m *meter) finish() (model string, u events.Usage) {
	if m.stream {
		m.endLine()
	} else {
		m.reader.text(m.line)
	}
	return m.reader.usage()
}
