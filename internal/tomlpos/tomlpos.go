// Package tomlpos finds the line of every key and array element of a TOML
// document, so that a fault found in decoded values can name its place.
//
// A TOML decoder checks the document and gives the values; this package only
// walks the text once more. It expects a document that a decoder accepted. For
// any other text it returns some index, in bounded time and without panic.
package tomlpos

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Path names a key or an array element the way people write it:
// subagent[1].env.PATH. The zero Path is the document.
type Path string

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Key returns the path of key name in the table at p.
func (p Path) Key(name string) Path {
	if !bareKey.MatchString(name) {
		name = strconv.Quote(name)
	}
	if p == "" {
		return Path(name)
	}
	return p + "." + Path(name)
}

// Index returns the path of element i of the array at p.
func (p Path) Index(i int) Path { return p + Path("["+strconv.Itoa(i)+"]") }

// Index holds the line, counted from 1, of each path. A table that several
// places add to has the line of the first.
type Index map[Path]int

// Line returns the line of p, or of the nearest path around it that is known,
// or 0.
func (x Index) Line(p Path) int {
	for p != "" {
		if line, ok := x[p]; ok {
			return line
		}
		p = p.parent()
	}
	return 0
}

// parent cuts the last key or index off. Quoted keys may hold dots and
// brackets, so it walks from the front.
func (p Path) parent() Path {
	last, quoted := 0, false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '.' || c == '['):
			last = i
		}
	}
	return p[:last]
}

// Locate returns the lines of all keys and elements of doc.
func Locate(doc string) Index {
	s := &scanner{text: doc, line: 1, index: make(Index), arrays: make(map[Path]int)}
	s.document()
	return s.index
}

// scanner walks one document. Every method leaves pos behind what it read and
// moves it forward in any loop.
type scanner struct {
	text string
	pos  int
	line int
	// index is the result.
	index Index
	// arrays counts the elements seen so far of each array of tables.
	arrays map[Path]int
}

// maxDepth bounds the keys and indexes of a path that is noted, and so the size
// of the index by that of the document. Whatever is deeper has the line of what
// it is in.
const maxDepth = 64

func (s *scanner) document() {
	var table Path
	for {
		s.space(true)
		switch {
		case s.pos >= len(s.text):
			return
		case strings.HasPrefix(s.text[s.pos:], "[["):
			s.pos += 2
			table = s.header(true)
		case s.text[s.pos] == '[':
			s.pos++
			table = s.header(false)
		default:
			s.pair(table, 0)
		}
		s.restOfLine()
	}
}

// header reads the key of a table header and returns the path of the table.
func (s *scanner) header(array bool) Path {
	var p Path
	keys := s.dotted()
	for i, k := range keys {
		if i >= maxDepth {
			break
		}
		p = p.Key(k)
		s.note(p)
		n, isArray := s.arrays[p]
		switch {
		case i == len(keys)-1 && array:
			s.arrays[p] = n + 1
			p = p.Index(n)
			s.note(p)
		case isArray:
			p = p.Index(n - 1)
		}
	}
	return p
}

// pair reads key = value in the table at p.
func (s *scanner) pair(p Path, depth int) {
	for _, k := range s.dotted() {
		if depth++; depth <= maxDepth {
			p = p.Key(k)
			s.note(p)
		}
	}
	s.space(false)
	if s.peek() == '=' {
		s.pos++
	}
	s.space(false)
	s.value(p, depth)
}

func (s *scanner) value(p Path, depth int) {
	if depth > maxDepth {
		s.skip()
		return
	}
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[':
		s.pos++
		s.list(']', func(i int) {
			e := p.Index(i)
			s.note(e)
			s.value(e, depth+1)
		})
	case '{':
		s.pos++
		s.list('}', func(int) { s.pair(p, depth+1) })
	default:
		for s.pos < len(s.text) && !strings.ContainsRune(",]}#\n", rune(s.text[s.pos])) {
			s.pos++
		}
	}
}

// skip passes a value without looking for what is in it.
func (s *scanner) skip() {
	for open := 0; s.pos < len(s.text); {
		switch s.text[s.pos] {
		case '"', '\'':
			s.quoted()
			continue
		case '#':
			if open == 0 {
				return
			}
			s.comment()
			continue
		case '[', '{':
			open++
		case ']', '}':
			if open == 0 {
				return
			}
			open--
		case ',', '\n':
			if open == 0 {
				return
			}
			if s.text[s.pos] == '\n' {
				s.line++
			}
		}
		s.pos++
	}
}

// list reads elements separated by commas up to the closing byte.
func (s *scanner) list(closing byte, element func(i int)) {
	for i := 0; ; i++ {
		s.space(true)
		if s.pos >= len(s.text) {
			return
		}
		if s.text[s.pos] == closing {
			s.pos++
			return
		}
		before := s.pos
		element(i)
		s.space(true)
		if s.peek() == ',' {
			s.pos++
		}
		if s.pos == before {
			s.pos++
		}
	}
}

// dotted reads a key and returns its parts.
func (s *scanner) dotted() []string {
	var keys []string
	for {
		s.space(false)
		start := s.pos
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			s.quoted()
			keys = append(keys, unquote(s.text[start:s.pos]))
		default:
			for s.pos < len(s.text) && !strings.ContainsRune(" \t\r\n.=]}#,\"'", rune(s.text[s.pos])) {
				s.pos++
			}
			if s.pos == start {
				return keys
			}
			keys = append(keys, s.text[start:s.pos])
		}
		s.space(false)
		if s.peek() != '.' {
			return keys
		}
		s.pos++
	}
}

// quoted passes any of the four kinds of string.
func (s *scanner) quoted() {
	q := s.text[s.pos : s.pos+1]
	if triple := strings.Repeat(q, 3); strings.HasPrefix(s.text[s.pos:], triple) {
		s.pos += 3
		for s.pos < len(s.text) && !strings.HasPrefix(s.text[s.pos:], triple) {
			s.stringByte(q)
		}
		// Up to two quotation marks may stand before the closing three.
		for n := 0; n < 5 && s.peek() == q[0]; n++ {
			s.pos++
		}
		return
	}
	s.pos++
	for s.pos < len(s.text) && s.text[s.pos] != q[0] && s.text[s.pos] != '\n' {
		s.stringByte(q)
	}
	if s.peek() == q[0] {
		s.pos++
	}
}

// stringByte passes one byte of a string, or an escape and what it escapes.
func (s *scanner) stringByte(quote string) {
	if quote == `"` && s.text[s.pos] == '\\' && s.pos+1 < len(s.text) {
		s.pos++
	}
	if s.text[s.pos] == '\n' {
		s.line++
	}
	s.pos++
}

// space passes blanks and, with lines, line ends and comments.
func (s *scanner) space(lines bool) {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.pos++
		case c == '\n' && lines:
			s.line++
			s.pos++
		case c == '#' && lines:
			s.comment()
		case s.pos == 0 && strings.HasPrefix(s.text, "\ufeff"):
			s.pos += len("\ufeff")
		default:
			return
		}
	}
}

func (s *scanner) comment() {
	for s.pos < len(s.text) && s.text[s.pos] != '\n' {
		s.pos++
	}
}

func (s *scanner) restOfLine() {
	s.comment()
	if s.pos < len(s.text) {
		s.line++
		s.pos++
	}
}

func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) note(p Path) {
	if _, ok := s.index[p]; !ok {
		s.index[p] = s.line
	}
}

// unquote returns the text of a quoted key; a malformed one stays as it is.
func unquote(literal string) string {
	var v struct{ K string }
	if _, err := toml.Decode("K = "+literal, &v); err != nil {
		return literal
	}
	return v.K
}
