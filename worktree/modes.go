package worktree

import (
	"bufio"
	"fmt"
	"io/fs"
	"sort"
	"strconv"
	"strings"
)

// Modes are the permissions, by path, of files that git would give others: it
// keeps only whether a file may be executed.
type Modes map[string]fs.FileMode

// The mark of a line in a commit's message that says what git cannot keep:
//
//	Hayward-Mode: 0600 "secret.txt"
const modeMark = "Hayward-Mode: "

// ordinary is the mode of a file that needs no line: what git writes under the
// usual umask.
func ordinary(executable bool) fs.FileMode {
	if executable {
		return 0o755
	}
	return 0o644
}

// note adds a file's mode if git would not keep it.
func (m Modes) note(path string, mode fs.FileMode) {
	if mode = mode.Perm(); mode != ordinary(mode&0o100 != 0) {
		m[path] = mode
	}
}

// Message is the message of a commit whose files have these modes.
func (m Modes) Message(subject string) string {
	paths := make([]string, 0, len(m))
	for path := range m {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	var b strings.Builder
	b.WriteString(subject + "\n")
	for i, path := range paths {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s%04o %s\n", modeMark, m[path], strconv.QuoteToASCII(path))
	}
	return b.String()
}

// ParseModes reads what Message wrote. A line that is none of ours means nothing.
func ParseModes(message string) Modes {
	m := make(Modes)
	lines := bufio.NewScanner(strings.NewReader(message))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), modeMark)
		if !ok {
			continue
		}
		octal, quoted, _ := strings.Cut(rest, " ")
		mode, err := strconv.ParseUint(octal, 8, 9)
		path, err2 := strconv.Unquote(quoted)
		if err == nil && err2 == nil {
			m[path] = fs.FileMode(mode)
		}
	}
	return m
}

// Mode is the permissions of a file of which git keeps whether it may be executed.
func (m Modes) Mode(path string, executable bool) fs.FileMode {
	if mode, ok := m[path]; ok {
		return mode
	}
	return ordinary(executable)
}
