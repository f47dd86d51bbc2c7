package agents

import (
	"fmt"
	"strings"
)

// Severity says what a [Fault] does to what it was found in.
type Severity string

// The severities.
const (
	// SeverityError: the definition is not used, and its name is refused.
	SeverityError Severity = "error"
	// SeverityWarning: the definition is used, but not as somebody may think.
	SeverityWarning Severity = "warning"
	// SeverityNote: a file that is not a definition.
	SeverityNote Severity = "note"
)

// Fault is something about a file that its author should know.
type Fault struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	// Line counts from 1; 0 is the file as a whole.
	Line int `json:"line,omitzero"`
	// Key is the key as it is written, if it is about one.
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

// String is FILE:LINE: KEY: MESSAGE.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	b.WriteString(": ")
	if f.Key != "" {
		b.WriteString(f.Key + ": ")
	}
	return b.String() + f.Message
}

// faults collects the faults of one file.
type faults struct {
	file string
	list []Fault
}

func (f *faults) add(s Severity, line int, key, format string, args ...any) {
	f.list = append(f.list, Fault{Severity: s, File: f.file, Line: line, Key: key, Message: fmt.Sprintf(format, args...)})
}

func (f *faults) failed() bool { return firstError(f.list) != nil }

func firstError(list []Fault) *Fault {
	for i := range list {
		if list[i].Severity == SeverityError {
			return &list[i]
		}
	}
	return nil
}
