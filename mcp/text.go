package mcp

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// clean is text from elsewhere without what is no text: escape sequences, control
// characters but tab and newline, and bytes that are not UTF-8.
func clean(s string) string {
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// head is the longest beginning of s with at most n bytes, of whole characters.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail is the longest end of s with at most n bytes, of whole characters.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// middle leaves out the middle of a text over n bytes.
func middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return head(s, n/4) + " [...] " + tail(s, n*3/4)
}
