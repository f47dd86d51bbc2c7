package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// IsPattern reports whether an entry is a pattern and not a path. There is no
// escape: a name that holds one of these characters is covered by naming the
// directory it is in.
func IsPattern(entry string) bool { return strings.ContainsAny(entry, "*?[") }

// anySegments is the segment that stands for any number of segments.
const anySegments = "**"

// CheckPattern says what is wrong with a pattern of this dialect:
//
//   - any run of characters within a segment
//     ?       one character within a segment
//     **      a whole segment: any number of segments; a/** is what is below a
//     [ab-z]  one of a class, [!a] and [^a] one not of it
func CheckPattern(pattern string) error {
	if err := checkCharacters(pattern); err != nil {
		return err
	}
	segments := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for _, s := range segments {
		switch {
		case s == "":
			return errors.New("has an empty segment: a doubled or trailing slash")
		case s == "." || s == "..":
			return fmt.Errorf("has the segment %q", s)
		case s != anySegments && strings.Contains(s, anySegments):
			return fmt.Errorf("has ** within the segment %q; it must stand alone", s)
		}
		if err := checkClasses(s); err != nil {
			return fmt.Errorf("has the segment %q: %w", s, err)
		}
		if _, err := path.Match(translate(s), ""); err != nil {
			return fmt.Errorf("has the segment %q: %w", s, err)
		}
	}
	return nil
}

// checkCharacters refuses what has a meaning in other dialects.
func checkCharacters(pattern string) error {
	if i := strings.IndexAny(pattern, `{}\`); i >= 0 {
		return fmt.Errorf("holds %q, which patterns do not have", pattern[i:i+1])
	}
	return nil
}

// checkClasses refuses what reads differently from one matcher to the next.
func checkClasses(segment string) error {
	for rest := segment; ; {
		open := strings.IndexByte(rest, '[')
		if open < 0 {
			return nil
		}
		body := rest[open+1:]
		if body != "" && (body[0] == '!' || body[0] == '^') {
			body = body[1:]
		}
		if strings.HasPrefix(body, "]") {
			return errors.New("a class cannot begin with ]")
		}
		end := strings.IndexByte(body, ']')
		if end < 0 {
			return errors.New("a class has no end")
		}
		if strings.IndexByte(body[:end], '[') >= 0 {
			return errors.New("a class holds [")
		}
		rest = body[end+1:]
	}
}

// translate gives a segment in the dialect of [path.Match].
func translate(segment string) string { return strings.ReplaceAll(segment, "[!", "[^") }

// Pattern is a compiled absolute pattern.
type Pattern struct {
	// Root is the longest prefix without wildcards: everything that matches is
	// below it.
	Root string
	// segments are those below the root.
	segments []string
}

// Compile compiles a pattern that [CheckPattern] accepts. A relative one is
// below the directory below.
func Compile(pattern, below string) (Pattern, error) {
	if err := CheckPattern(pattern); err != nil {
		return Pattern{}, err
	}
	rest, absolute := strings.CutPrefix(pattern, "/")
	if absolute {
		below = ""
	} else if !strings.HasPrefix(below, "/") {
		return Pattern{}, errors.New("is relative to nothing")
	}
	segments := strings.Split(rest, "/")
	literal := 0
	for literal < len(segments) && !IsPattern(segments[literal]) {
		literal++
	}
	p := Pattern{Root: path.Clean(below + "/" + strings.Join(segments[:literal], "/"))}
	for _, s := range segments[literal:] {
		p.segments = append(p.segments, translate(s))
	}
	return p, nil
}

// State is how far the segments of a path have come in a pattern: the positions
// that the next segment may have. The zero State is that of no match.
type State []int

// Start is the state at the pattern's root.
func (p Pattern) Start() State { return p.closure(State{0}) }

// closure adds the positions behind each "**", which may stand for nothing. At
// the end it must stand for something.
func (p Pattern) closure(s State) State {
	for i := 0; i < len(s); i++ {
		at := s[i]
		if at+1 < len(p.segments) && p.segments[at] == anySegments && !contains(s, at+1) {
			s = append(s, at+1)
		}
	}
	return s
}

func contains(s State, at int) bool {
	for _, x := range s {
		if x == at {
			return true
		}
	}
	return false
}

// Step takes one segment and reports whether the path up to it matches.
func (p Pattern) Step(s State, segment string) (next State, matched bool) {
	for _, at := range s {
		if at >= len(p.segments) {
			continue
		}
		if p.segments[at] == anySegments {
			if !contains(next, at) {
				next = append(next, at)
			}
			matched = matched || at+1 == len(p.segments)
			continue
		}
		// The pattern was checked, so Match has no error to give.
		if ok, _ := path.Match(p.segments[at], segment); ok {
			if at+1 == len(p.segments) {
				matched = true
			} else if !contains(next, at+1) {
				next = append(next, at+1)
			}
		}
	}
	return p.closure(next), matched
}

// Match reports whether an absolute, clean path matches.
func (p Pattern) Match(name string) bool {
	if len(p.segments) == 0 {
		return name == p.Root // it has no wildcard
	}
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(p.Root, "/")+"/")
	if !ok {
		return false
	}
	state, matched := p.Start(), false
	for segment := range strings.SplitSeq(rest, "/") {
		state, matched = p.Step(state, segment)
	}
	return matched
}
