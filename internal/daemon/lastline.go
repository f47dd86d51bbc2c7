package daemon

import (
	"strings"
	"unicode"

	"github.com/hayward-dev/hayward/events"
)

// lastLine is the last line of text that holds anything, fit to be shown.
func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	if i := strings.LastIndexAny(text, "\r\n"); i >= 0 {
		text = text[i+1:]
	}
	return clipLine(text)
}

// clipLine makes hostile output harmless on a terminal: valid UTF-8, no control
// characters, at most [events.MaxLastLine] bytes.
func clipLine(line string) string {
	line = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	if len(line) > events.MaxLastLine {
		line = strings.ToValidUTF8(line[:events.MaxLastLine], "")
	}
	return strings.TrimSpace(line)
}
