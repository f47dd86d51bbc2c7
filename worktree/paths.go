package worktree

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// shownPath is a path as JSON can hold it: as it is, or if it is not UTF-8 quoted
// as git quotes it, which a path that is has no need to look like.
func shownPath(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
