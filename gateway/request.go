package gateway

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hayward-dev/hayward/events"
)

// ask is what a request says that decides what its answer costs and whether that
// can be counted.
type ask struct {
	Model      string `json:"model"`
	Stream     bool   `json:"stream"`
	Background bool   `json:"background"`
	// The bounds of what is written, each API's own.
	MaxTokens           int64 `json:"max_tokens"`
	MaxOutputTokens     int64 `json:"max_output_tokens"`
	MaxCompletionTokens int64 `json:"max_completion_tokens"`
	// Choices are how many answers a chat completion has.
	Choices int64 `json:"n"`
	// StreamOptions is kept as it came.
	StreamOptions jsontext.Value `json:"stream_options"`
}

// What a call is assumed to have used where its answer does not say it.
const (
	// assumedOutput is written by a call that names no bound.
	assumedOutput = 32_000
	// bytesPerToken is what of a request's body makes one token that is read.
	bytesPerToken = 4
)

// most is the most that a request lets be written, or assumedOutput. Only the bound
// that its API knows counts: another one might be ignored there.
func (a ask) most(p string) int64 {
	bound, choices := a.MaxTokens, int64(1)
	switch p {
	case pathResponses, pathCompact:
		bound = a.MaxOutputTokens
	case pathChat:
		bound, choices = max(a.MaxTokens, a.MaxCompletionTokens), min(max(a.Choices, 1), 1<<10)
	}
	if bound <= 0 {
		bound = assumedOutput
	}
	return min(bound, maxCount-1) * choices
}

// budgeted reports whether there is any budget, which needs every call counted.
func (g *Gateway) budgeted() bool {
	o := g.opts
	return o.MaxTokens > 0 || o.MaxTreeTokens > 0 || o.MaxPromptTokens > 0 || o.MaxCostUSD > 0
}

// prepare decides on a request by its body, and returns what is sent in its place.
func (x *exchange) prepare(method string, body []byte) ([]byte, *events.Error) {
	post := method == http.MethodPost
	if post {
		// Counting tokens is free.
		x.billed, x.size = x.path != pathCountTokens, int64(len(body))
		err := events.DecodeRecord(body, &x.ask)
		switch {
		case err == nil:
		case x.g.budgeted():
			// What its members mean depends on who reads it, such as with two of a name.
			return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "the body cannot be read, so no budget can hold for it: %w", err).
				WithRemedy("send one JSON object with each member once, uncompressed")
		default:
			x.ask = ask{}
		}
		if x.dialect.countable != nil && err == nil {
			var refused *events.Error
			if body, refused = x.dialect.countable(x.path, x.ask, body); refused != nil {
				return nil, refused
			}
		}
	}
	if x.g.opts.MaxCostUSD > 0 {
		if over := x.g.overCost(x.child, x.ask.Model, post); over != "" {
			return nil, events.Errorf(events.CodeLimit, events.LayerGate, "%s", over)
		}
	}
	return body, nil
}

// openaiCountable sees to it that an answer says what it used: a chat completion
// that streams does so only if it is asked to, and a response in the background is
// answered before anything is known. The chunk with the usage that a client did not
// ask for has no choices, and clients pass over it.
func openaiCountable(p string, a ask, body []byte) ([]byte, *events.Error) {
	switch {
	case a.Background && p != pathChat:
		return nil, events.Errorf(events.CodeUnsupported, events.LayerGate, "responses in the background are not forwarded: what they use cannot be counted").
			WithRemedy("leave background out, and let the response stream")
	case !a.Stream || p != pathChat:
		return body, nil
	}
	options := []byte(a.StreamOptions)
	if a.StreamOptions == nil || a.StreamOptions.Kind() == 'n' {
		options = []byte("{}")
	}
	options, err := setMember(options, "include_usage", []byte("true"))
	if err == nil {
		body, err = setMember(body, "stream_options", options)
	}
	if err != nil {
		return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "stream_options: %w", err).
			WithRemedy("make it an object, or leave it out")
	}
	return body, nil
}

// setMember returns a JSON object with a member set. All other bytes stay as they
// are.
func setMember(object []byte, name string, value []byte) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowInvalidUTF8(true))
	if open, err := d.ReadToken(); err != nil {
		return nil, err
	} else if open.Kind() != '{' {
		return nil, errors.New("it is not an object")
	}
	begin := d.InputOffset()
	for d.PeekKind() != '}' {
		member, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		here := member.String() == name
		old, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if here {
			end := d.InputOffset()
			return splice(object, end-int64(len(old)), end, value), nil
		}
	}
	member := append([]byte(`"`+name+`":`), value...)
	if _, tokens := d.StackIndex(d.StackDepth()); tokens > 0 { // it is not the only one
		member = append(member, ',')
	}
	return splice(object, begin, begin, member), nil
}

// splice returns b with the bytes from begin to end replaced.
func splice(b []byte, begin, end int64, by []byte) []byte {
	out := make([]byte, 0, int64(len(b))-(end-begin)+int64(len(by)))
	out = append(out, b[:begin]...)
	out = append(out, by...)
	return append(out, b[end:]...)
}
