package resume

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Move is a directory that is another one now.
type Move struct{ From, To string }

// Paths rewrites the paths of a conversation. It has no moves that change nothing,
// the longest first.
type Paths []Move

// NewPaths returns what rewrites the moves.
func NewPaths(moves ...Move) Paths {
	var p Paths
	for _, m := range moves {
		if m.From != "" && m.From != "/" && m.To != "" && m.From != m.To {
			p = append(p, m)
		}
	}
	slices.SortStableFunc(p, func(a, b Move) int { return len(b.From) - len(a.From) })
	return p
}

// Text rewrites every path in a text that is the moved directory or below it. One
// that only begins like it, such as /work2 for /work, is another.
func (p Paths) Text(s string) string {
	if !p.in(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if m, ok := p.at(s, i); ok {
			b.WriteString(m.To)
			i += len(m.From)
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

func (p Paths) in(s string) bool {
	return slices.ContainsFunc(p, func(m Move) bool { return strings.Contains(s, m.From) })
}

// at returns the move whose directory stands at s[i:] as a path of its own.
func (p Paths) at(s string, i int) (Move, bool) {
	if s[i] != '/' || i > 0 && inName(s[i-1]) || i > 0 && s[i-1] == '/' && !strings.HasSuffix(s[:i], "://") {
		return Move{}, false
	}
	for _, m := range p {
		if rest, ok := strings.CutPrefix(s[i:], m.From); ok && ends(rest) {
			return m, true
		}
	}
	return Move{}, false
}

// inName reports whether a byte is usual in the names of files.
func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c >= 0x80
}

// ends reports whether a name has ended before rest. A dot ends it where it ends a
// sentence.
func ends(rest string) bool {
	dots := strings.TrimLeft(rest, ".")
	return dots == "" || !inName(dots[0]) && (rest == dots || dots[0] != '/')
}

// lenient takes what agents write as it is.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true)}

// JSON rewrites the paths in every string of a JSON value. Everything else stays as
// it is written.
func (p Paths) JSON(value []byte) ([]byte, error) {
	if len(p) == 0 || !p.in(string(value)) && !bytes.Contains(value, []byte(`\/`)) && !bytes.Contains(value, []byte(`\u`)) {
		return value, nil
	}
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(value), lenient...)
	enc := jsontext.NewEncoder(&out, lenient...)
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
		}
		if err == nil && token.Kind() == '"' {
			if s := token.String(); p.Text(s) != s {
				token = jsontext.String(p.Text(s))
			}
		}
		if err == nil {
			err = enc.WriteToken(token)
		}
		if err != nil {
			return nil, err
		}
	}
}

// Lines copies the session of an agent, JSON lines, with its paths rewritten. A torn
// last line is left out: it would keep the agent from reading the rest.
func (p Paths) Lines(w io.Writer, r io.Reader) error {
	in := newLines(r)
	var held []byte // an invalid line, which is torn if it is the last
	for {
		line, _, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if held != nil {
			if _, err := w.Write(append(held, '\n')); err != nil {
				return err
			}
			held = nil
		}
		if !jsontext.Value(line).IsValid(lenient...) {
			held = append([]byte{}, line...)
			continue
		}
		written, err := p.JSON(line)
		if err != nil {
			return err
		}
		if _, err := w.Write(written); err != nil {
			return err
		}
		if _, err := w.Write([]byte{'\n'}); err != nil {
			return err
		}
	}
}
