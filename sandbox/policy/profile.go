package policy

import (
	"slices"
	"strings"
)

// The canonical names of the built-in profiles.
const (
	Workspace = "workspace"
	Devbox    = "devbox"
	ReadOnly  = "read-only"
	Strict    = "strict"
	Off       = "off"
)

// Names lists the built-in profiles, the default first.
var Names = []string{Workspace, Devbox, ReadOnly, Strict, Off}

// Profile is a built-in profile or a custom one. The zero value is none.
type Profile struct {
	name   string
	custom *Custom
}

// Name returns the canonical name.
func (p Profile) Name() string { return p.name }

// Base returns the built-in profile that p is or extends.
func (p Profile) Base() string {
	if p.custom != nil {
		return p.custom.Extends
	}
	return p.name
}

// Custom returns the definition of a custom profile, nil for a built-in one.
func (p Profile) Custom() *Custom { return p.custom }

// Enforced reports whether the profile confines at all.
func (p Profile) Enforced() bool { return p.name != Off && p.name != "" }

// fold is how names are compared: without case, "_" as "-".
func fold(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// BuiltIn finds a built-in profile without regard to case and to "-" against
// "_"; "readonly" and "none" are aliases. The empty name is the default,
// workspace. Nothing is trimmed.
func BuiltIn(name string) (Profile, bool) {
	switch folded := fold(name); folded {
	case "":
		return Profile{name: Workspace}, true
	case "readonly":
		return Profile{name: ReadOnly}, true
	case "none":
		return Profile{name: Off}, true
	default:
		return Profile{name: folded}, slices.Contains(Names, folded)
	}
}
