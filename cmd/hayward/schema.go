package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// outputSchema reads --output-schema: JSON, or the file behind an @.
func outputSchema(flag string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(flag, "@")
	b := []byte(flag)
	if isFile {
		f, err := os.Open(name)
		if err != nil {
			return nil, usage("--output-schema: %w", err)
		}
		defer f.Close()
		if b, err = io.ReadAll(io.LimitReader(f, events.MaxOutputSchema+1)); err != nil {
			return nil, fmt.Errorf("read --output-schema: %w", err)
		}
	}
	if len(b) == 0 {
		return nil, nil
	}
	if !json.Valid(b) && len(b) <= events.MaxOutputSchema { // a longer one is refused for its length
		return nil, usage("--output-schema is not JSON")
	}
	return b, nil
}
