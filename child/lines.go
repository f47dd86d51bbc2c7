package child

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hayward-dev/hayward/events"
)

// lineTracker remembers the last line of a stream in bounded memory, however
// long its lines are. A carriage return ends a line too, so a progress bar
// shows as its latest state.
type lineTracker struct {
	last    []byte // the last line that was complete and not blank
	partial []byte // the beginning of the line under way
}

// maxLineKept bounds what is kept of a line before it is cleaned; escape
// sequences make the raw form longer than the shown one.
const maxLineKept = 4 * events.MaxLastLine

// write takes the next bytes of the stream.
func (l *lineTracker) write(p []byte) {
	end := bytes.LastIndexAny(p, "\r\n")
	if end < 0 {
		l.extend(p)
		return
	}
	rest := p[end+1:]
	// Only the last line that is not blank matters: look for it from the end.
	p = bytes.TrimRight(p[:end], " \t\r\n")
	if begin := bytes.LastIndexAny(p, "\r\n"); begin >= 0 {
		l.partial = append(l.partial[:0], clipBytes(p[begin+1:], maxLineKept)...)
	} else {
		l.extend(p)
	}
	if len(bytes.TrimSpace(l.partial)) > 0 {
		l.last, l.partial = l.partial, l.last
	}
	l.partial = l.partial[:0]
	l.extend(rest)
}

func (l *lineTracker) extend(p []byte) {
	l.partial = append(l.partial, clipBytes(p, maxLineKept-len(l.partial))...)
}

// line returns the line under way if it is not blank, else the last one, fit to
// be shown: valid UTF-8 of at most [events.MaxLastLine] bytes, without control
// characters.
func (l *lineTracker) line() string {
	if s := cleanLine(l.partial); s != "" {
		return s
	}
	return cleanLine(l.last)
}

func clipBytes(p []byte, n int) []byte { return p[:min(len(p), max(n, 0))] }

// cleanLine makes raw output fit to be shown in one line.
func cleanLine(raw []byte) string {
	s := strings.ToValidUTF8(string(dropEscapes(raw)), string(utf8.RuneError))
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
	return headUTF8(strings.TrimSpace(s), events.MaxLastLine)
}

// dropEscapes removes ANSI control sequences (ESC [ ... final byte), colors for
// the most part, and the two-byte escapes.
func dropEscapes(raw []byte) []byte {
	const esc = 0x1b
	if bytes.IndexByte(raw, esc) < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != esc {
			out = append(out, raw[i])
			continue
		}
		i++
		if i >= len(raw) || raw[i] != '[' {
			continue
		}
		for i++; i < len(raw) && (raw[i] < 0x40 || raw[i] > 0x7e); i++ {
		}
	}
	return out
}

// headUTF8 returns the first runes of s, at most n bytes of them.
func headUTF8(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tailUTF8 returns the last runes of s, at most n bytes of them.
func tailUTF8(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// tail keeps the last bytes of a stream.
type tail struct {
	kept []byte
	cut  bool // something was before kept
}

// maxTailKept leaves room for looking for the beginning of a line.
const maxTailKept = events.MaxStderrTail

func (t *tail) write(p []byte) {
	if over := len(t.kept) + len(p) - maxTailKept; over > 0 {
		t.cut = true
		if over >= len(t.kept) {
			t.kept, p = t.kept[:0], p[len(p)-maxTailKept:]
		} else {
			t.kept = t.kept[:copy(t.kept, t.kept[over:])]
		}
	}
	t.kept = append(t.kept, p...)
}

// text returns the tail as valid UTF-8 of at most [events.MaxStderrTail] bytes.
// It begins at the beginning of a line where there is one.
func (t *tail) text() string {
	kept := t.kept
	if t.cut {
		if i := bytes.IndexByte(kept, '\n'); i >= 0 && i+1 < len(kept) {
			kept = kept[i+1:]
		} else {
			for len(kept) > 0 && !utf8.RuneStart(kept[0]) {
				kept = kept[1:]
			}
		}
	}
	// A replacement is longer than the byte it stands for.
	return tailUTF8(strings.ToValidUTF8(string(kept), string(utf8.RuneError)), events.MaxStderrTail)
}
