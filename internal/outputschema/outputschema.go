// Package outputschema checks results of agents against a JSON Schema.
//
// The coordinator compiles a schema in order to refuse one that cannot be used. It
// does not validate by it: how long that takes depends on schema and result
// together and cannot be told by looking at them. [Run] does it in a process of its
// own, with bounds.
//
// A schema may refer to parts of itself by "#/...", and to nothing else. One that
// comes back to itself without going deeper into the value would never end, so it
// is no schema here.
package outputschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/hayward-dev/hayward/events"
)

// maxValueDepth bounds the nesting of a result.
const maxValueDepth = 256

// Schema is a schema that can be used.
type Schema struct{ resolved *jsonschema.Resolved }

// Compile reads a schema.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) > events.MaxOutputSchema {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(raw), events.MaxOutputSchema)
	}
	if err := unique(raw); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %w", err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	if err := check(tree); err != nil {
		return nil, err
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("it is no JSON Schema that can be used: %w", err)
	}
	return &Schema{r}, nil
}

// unique refuses what is not one JSON value, and members of the same name: of these
// the library takes another one than whoever looks at the schema first.
func unique(raw []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := d.ReadValue(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// ErrNoJSON: a result is not one JSON value.
var ErrNoJSON = errors.New("it is not one JSON value")

// Validate checks a result and returns it without insignificant space.
func (s *Schema) Validate(result []byte) ([]byte, error) {
	value := jsontext.Value(bytes.TrimSpace(result))
	if !value.IsValid() {
		return nil, ErrNoJSON
	}
	if err := checkDepth(value); err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoJSON, err)
	}
	if err := s.resolved.Validate(v); err != nil {
		return nil, shorten(err)
	}
	compact := value.Clone()
	if err := compact.Compact(); err != nil {
		return nil, err
	}
	return compact, nil
}

// shorten keeps of an error what a reader needs: the validator names each schema on
// the way.
func shorten(err error) error {
	text := err.Error()
	const most = 1024
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return errors.New(text)
}

func checkDepth(value jsontext.Value) error {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		if _, err := d.ReadToken(); err != nil {
			return nil // the value is valid: it is its end
		}
		if d.StackDepth() > maxValueDepth {
			return fmt.Errorf("it is nested deeper than %d", maxValueDepth)
		}
	}
}
