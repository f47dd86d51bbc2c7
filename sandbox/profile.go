package sandbox

import (
	"strings"

	"github.com/hayward-dev/hayward/events"
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

// Profile is a built-in profile. The zero value is none.
type Profile struct{ name string }

// Name returns the canonical name.
func (p Profile) Name() string { return p.name }

// Enforced reports whether the profile confines at all.
func (p Profile) Enforced() bool { return p.name != Off && p.name != "" }

// ParseProfile finds a built-in profile without regard to case and to "-"
// against "_"; "readonly" and "none" are aliases. The empty name is the default,
// workspace. Nothing is trimmed.
func ParseProfile(name string) (Profile, *events.Error) {
	switch folded := strings.ReplaceAll(strings.ToLower(name), "_", "-"); folded {
	case "":
		return Profile{Workspace}, nil
	case "readonly":
		return Profile{ReadOnly}, nil
	case "none":
		return Profile{Off}, nil
	case Workspace, Devbox, ReadOnly, Strict, Off:
		return Profile{folded}, nil
	}
	return Profile{}, events.Errorf(events.CodeUnknownProfile, events.LayerGate, "no sandbox profile is called %q", name).
		WithDetail("known", strings.Join(Names, ", "))
}
