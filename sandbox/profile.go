package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// The canonical names of the built-in profiles.
const (
	Workspace = policy.Workspace
	Devbox    = policy.Devbox
	ReadOnly  = policy.ReadOnly
	Strict    = policy.Strict
	Off       = policy.Off
)

// Names lists the built-in profiles, the default first.
var Names = policy.Names

// Profile is a built-in profile or a custom one. The zero value is none.
type Profile = policy.Profile

// Profiles are the profiles that can be named. The zero value has the built-in
// ones.
type Profiles = policy.Set

// ProjectFile is where a workspace may define profiles, below its top.
const ProjectFile = ".hayward/sandbox.toml"

// ParseProfile finds a built-in profile without regard to case and to "-"
// against "_"; "readonly" and "none" are aliases. The empty name is the default,
// workspace. Nothing is trimmed.
func ParseProfile(name string) (Profile, *events.Error) { return FindProfile(Profiles{}, name) }

// FindProfile finds a profile of a set, see [ParseProfile].
func FindProfile(set Profiles, name string) (Profile, *events.Error) {
	if p, ok := set.Find(name); ok {
		return p, nil
	}
	return Profile{}, events.Errorf(events.CodeUnknownProfile, events.LayerGate, "no sandbox profile is called %q", name).
		WithDetail("known", strings.Join(set.Known(), ", ")).
		WithRemedy("name one of %s, or define it in sandbox.toml", strings.Join(set.Known(), ", "))
}

// LoadProfiles reads the global sandbox.toml and that of a workspace. Either may
// be missing; one that is there and cannot be read or understood is an error. An
// empty path or workspace has none.
func LoadProfiles(global, workspace string) (Profiles, *events.Error) {
	var set Profiles
	project := ""
	if workspace != "" {
		project = filepath.Join(workspace, ProjectFile)
	}
	for _, f := range []struct {
		path    string
		project bool
	}{{global, false}, {project, true}} {
		if f.path == "" {
			continue
		}
		text, err := readProfiles(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = set.Add(f.path, text, f.project)
		}
		if err != nil {
			return Profiles{}, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "%s%w", readingProfiles, err).
				WithRemedy("correct %s", f.path)
		}
	}
	return set, nil
}

// readProfiles reads a regular file. Nothing else is opened: it may come with a
// project that wants the coordinator to block.
func readProfiles(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return "", err
	} else if !st.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, policy.MaxFile+1))
	return string(text), err
}
