package events

import (
	"strings"

	"github.com/google/uuid"
)

// NewID mints a subagent id: a UUID version 7 in lower case, so ids sort by
// the time they were made.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// ValidID reports whether s is a subagent id: a UUID in canonical lower case
// form. Nothing else becomes a token of a subject, a path or a git ref.
func ValidID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if strings.IndexByte("0123456789abcdef", s[i]) < 0 {
				return false
			}
		}
	}
	return true
}

// pattern is 1 to most characters: one of first, then any of rest. It is data
// because compiled expressions with counted repetition cost a millisecond of
// every child's start.
type pattern struct {
	first, rest string
	most        int
}

const (
	letters  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	alphanum = letters + "0123456789"
)

var (
	scopePattern = pattern{alphanum + "_.:-", alphanum + "_.:-", 128}
	namePattern  = pattern{alphanum, alphanum + "_.-", 64}
	envPattern   = pattern{letters + "_", alphanum + "_", 256}
	labelPattern = pattern{alphanum, alphanum + "_./-", 63}
)

// MatchString reports whether the whole of s has the pattern.
func (p pattern) MatchString(s string) bool {
	if s == "" || len(s) > p.most || strings.IndexByte(p.first, s[0]) < 0 {
		return false
	}
	for i := 1; i < len(s); i++ {
		if strings.IndexByte(p.rest, s[i]) < 0 {
			return false
		}
	}
	return true
}

// ValidScope reports whether s is a session or prompt id. These are the
// caller's own strings and are never used in a subject, a path or a ref.
func ValidScope(s string) bool { return scopePattern.MatchString(s) }

// ValidName reports whether s is a subagent name.
func ValidName(s string) bool { return namePattern.MatchString(s) }

// ValidRef reports whether s may refer to a subagent: an id, a name, or an
// id's ending of four or more characters.
func ValidRef(s string) bool { return ValidID(s) || ValidName(s) }
