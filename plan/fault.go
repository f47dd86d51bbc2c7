package plan

import (
	"fmt"
	"sort"
	"strings"

	"github.com/hayward-dev/hayward/internal/tomlpos"
)

// Fault is one thing wrong with a plan file.
type Fault struct {
	File string `json:"file"`
	// Line is counted from 1; 0 when the fault has no place.
	Line int `json:"line,omitzero"`
	// Key is the path of the key, such as subagent[1].max_runtime; empty when the
	// fault is not about one.
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

// String returns file:line: key: message.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	b.WriteString(": ")
	if f.Key != "" {
		b.WriteString(f.Key)
		b.WriteString(": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Error is a bad plan: every fault that was found, in the order of the file.
type Error struct {
	Faults []Fault `json:"faults"`
}

// Error implements error with one line for each fault.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// faults collects what is wrong with one file.
type faults struct {
	file  string
	index tomlpos.Index
	list  []Fault
}

func (f *faults) add(p tomlpos.Path, format string, args ...any) {
	f.list = append(f.list, Fault{
		File: f.file, Line: f.index.Line(p), Key: string(p), Message: fmt.Sprintf(format, args...),
	})
}

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	sort.SliceStable(f.list, func(i, j int) bool { return f.list[i].Line < f.list[j].Line })
	return &Error{Faults: f.list}
}
