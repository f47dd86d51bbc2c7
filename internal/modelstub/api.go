package modelstub

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// api is one of the model APIs.
type api interface {
	// parse reads a request.
	parse(body []byte) (call, error)
	// parts writes an answer.
	parts(c call, t Turn) parts
}

// call is what a request asks.
type call struct {
	model  string
	stream bool
	// turn counts the answers of the model that the request carries.
	turn int
}

// parts is an answer, whole and as the parts of a stream.
type parts struct {
	whole  any
	stream []string
}

// apiOf returns the API that a path belongs to, or nil.
func apiOf(path string) api {
	switch {
	case strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, "/messages/count_tokens"):
		return anthropic{}
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	}
	return nil
}

// event adds one server-sent event. The name is left out where the API has none.
func (p *parts) event(name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("modelstub: encode %s: %v", name, err)) // maps of ours: it cannot fail
	}
	s := "data: " + string(b) + "\n\n"
	if name != "" {
		s = "event: " + name + "\n" + s
	}
	p.stream = append(p.stream, s)
}

// pieces cuts a text into the deltas of a stream, so that clients put it together.
func pieces(text string) []string {
	const size = 24
	var out []string
	for len(text) > size {
		n := size
		for !utf8.RuneStart(text[n]) {
			n--
		}
		out, text = append(out, text[:n]), text[n:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}
