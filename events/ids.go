package events

import (
	"regexp"

	"github.com/google/uuid"
)

// NewID mints a subagent id: a UUID version 7 in lower case, so ids sort by
// the time they were made.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// idPattern is a UUID in canonical lower case form. Nothing else becomes a
// token of a subject, a path or a git ref.
var idPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// ValidID reports whether s is a subagent id.
func ValidID(s string) bool { return len(s) == 36 && idPattern.MatchString(s) }

var (
	scopePattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	envPattern   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,255}$`)
	labelPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$`)
)

// ValidScope reports whether s is a session or prompt id. These are the
// caller's own strings and are never used in a subject, a path or a ref.
func ValidScope(s string) bool { return scopePattern.MatchString(s) }

// ValidName reports whether s is a subagent name.
func ValidName(s string) bool { return namePattern.MatchString(s) }

// ValidRef reports whether s may refer to a subagent: an id, a name, or an
// id's ending of four or more characters.
func ValidRef(s string) bool { return ValidID(s) || ValidName(s) }
