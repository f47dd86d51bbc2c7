package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/hayward-dev/hayward/internal/tomlpos"
)

// Set is the profiles there are: the built-in ones and those of sandbox.toml
// files. The zero value has the built-in ones.
type Set struct {
	custom map[string]*Custom // by folded name
	// Conflicts are the global profiles that a project defines differently. The
	// global definition holds.
	Conflicts []Conflict
}

// Conflict is a profile that two files define differently.
type Conflict struct{ Name, Global, Project string }

// String says what holds.
func (c Conflict) String() string {
	return fmt.Sprintf("profile %s: %s differs from %s and is not used", c.Name, c.Project, c.Global)
}

// Find returns the profile of that name; see [BuiltIn] for how names match.
func (s Set) Find(name string) (Profile, bool) {
	if p, ok := BuiltIn(name); ok {
		return p, true
	}
	if c, ok := s.custom[fold(name)]; ok && c.Name == name {
		return Profile{name: c.Name, custom: c}, true
	}
	return Profile{}, false
}

// Customs lists the custom profiles by name.
func (s Set) Customs() []*Custom {
	out := slices.Collect(maps.Values(s.custom))
	slices.SortFunc(out, func(a, b *Custom) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Known lists the names of all profiles, the built-in ones first.
func (s Set) Known() []string {
	out := slices.Clone(Names)
	for _, c := range s.Customs() {
		out = append(out, c.Name)
	}
	return out
}

// Fault is what is wrong at one place of a file.
type Fault struct {
	File    string
	Line    int
	Message string
}

// Error names the place first.
func (f Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// MaxFile bounds a sandbox.toml, in bytes.
const MaxFile = 1 << 20

// Add reads the text of a sandbox.toml into the set. Of a project's file only
// names that are new are taken. The error joins every [Fault] of the file; the
// set is then unchanged.
func (s *Set) Add(file, text string, project bool) error {
	r := &reader{file: file, project: project}
	profiles := r.read(text)
	for _, p := range profiles {
		for _, q := range profiles {
			if p.Line < q.Line && fold(p.Name) == fold(q.Name) {
				r.fault(q.Line, "profile %q differs from %q in nothing but its spelling", q.Name, p.Name)
			}
		}
		if known, ok := s.custom[fold(p.Name)]; ok && known.Name != p.Name {
			r.fault(p.Line, "profile %q differs from %q of %s in nothing but its spelling", p.Name, known.Name, known.File)
		}
	}
	if len(r.faults) > 0 {
		return errors.Join(r.faults...)
	}
	if s.custom == nil {
		s.custom = make(map[string]*Custom)
	}
	for _, p := range profiles {
		known, ok := s.custom[fold(p.Name)]
		if !ok {
			s.custom[fold(p.Name)] = p
		} else if !known.equal(p) {
			s.Conflicts = append(s.Conflicts, Conflict{p.Name, known.File, p.File})
		}
	}
	return nil
}

// reader turns the values of one file into profiles and notes every fault.
type reader struct {
	file    string
	project bool
	index   tomlpos.Index
	faults  []error
}

func (r *reader) fault(line int, format string, args ...any) {
	r.faults = append(r.faults, Fault{r.file, max(line, 1), fmt.Sprintf(format, args...)})
}

func (r *reader) read(text string) []*Custom {
	if len(text) > MaxFile {
		r.fault(1, "the file is over %d bytes", MaxFile)
		return nil
	}
	if !utf8.ValidString(text) {
		r.fault(1, "the file is not UTF-8")
		return nil
	}
	var values map[string]any
	if _, err := toml.Decode(text, &values); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			r.fault(syntax.Position.Line, "%s", syntax.Message)
		} else {
			r.fault(1, "%v", err)
		}
		return nil
	}
	r.index = tomlpos.Locate(text)
	var out []*Custom
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := tomlpos.Path("").Key(key)
		table, ok := values[key].(map[string]any)
		switch {
		case key != "profiles" && key != "profile":
			r.fault(r.index.Line(at), "unknown key %q; profiles stand in [profiles.NAME]", key)
		case !ok:
			r.fault(r.index.Line(at), "%s is not a table", key)
		default:
			for _, name := range slices.Sorted(maps.Keys(table)) {
				if p := r.profile(at.Key(name), name, table[name]); p != nil {
					out = append(out, p)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *Custom) int { return a.Line - b.Line })
	return out
}

func (r *reader) profile(at tomlpos.Path, name string, value any) *Custom {
	line := r.index.Line(at)
	before := len(r.faults)
	table, ok := value.(map[string]any)
	if !ok {
		r.fault(line, "profile %q is not a table", name)
		return nil
	}
	if why := badName(name); why != "" {
		r.fault(line, "the profile name %q %s", name, why)
	}
	p := &Custom{Name: name, Extends: Workspace, File: r.file, Line: line, Project: r.project}
	lists := map[string]*[]Item{
		"read_only": &p.ReadOnly, "read_write": &p.ReadWrite, "deny": &p.Deny,
		"allow_credentials": &p.AllowCredentials, "allow_write": &p.AllowWrite, "sockets": &p.Sockets,
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		here := at.Key(key)
		line := r.index.Line(here)
		switch list, isList := lists[key]; {
		case key == "extends":
			p.Extends = r.extends(line, table[key])
		case key == "restrict_network":
			on, ok := table[key].(bool)
			if !ok {
				r.fault(line, "restrict_network is neither true nor false")
			}
			p.RestrictNetwork, p.NetworkLine = &on, line
		case !isList:
			r.fault(line, "unknown key %q in profile %q", key, name)
		case r.project && (key == "sockets" || key == "allow_credentials"):
			r.fault(line, "%s can be given in the global sandbox.toml only", key)
		default:
			*list = r.items(here, key, table[key])
		}
	}
	if len(r.faults) > before {
		return nil
	}
	return p
}

func badName(name string) string {
	switch _, builtIn := BuiltIn(name); {
	case name == "" || strings.TrimSpace(name) != name || len(name) > 64:
		return "is empty, has outer blanks or is over 64 bytes"
	case builtIn:
		return "is that of a built-in profile"
	}
	for _, c := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", c) {
			return "holds more than letters, digits, '-', '_' and '.'"
		}
	}
	return ""
}

func (r *reader) extends(line int, value any) string {
	name, ok := value.(string)
	base, builtIn := BuiltIn(name)
	switch {
	case !ok:
		r.fault(line, "extends is not a string")
	case name == "" || !builtIn:
		r.fault(line, "extends names %q: only %s can be extended", name, strings.Join(Names[:4], ", "))
	case !base.Enforced():
		r.fault(line, "profile off cannot be extended")
	}
	return base.Name()
}

func (r *reader) items(at tomlpos.Path, key string, value any) []Item {
	list, ok := value.([]any)
	if !ok {
		r.fault(r.index.Line(at), "%s is not a list of strings", key)
		return nil
	}
	var out []Item
	for i, v := range list {
		line := r.index.Line(at.Index(i))
		text, ok := v.(string)
		if !ok {
			r.fault(line, "%s holds something that is not a string", key)
			continue
		}
		if err := checkItem(text, key != "deny"); err != nil {
			r.fault(line, "an entry of %s %v", key, err)
			continue
		}
		switch {
		case key == "allow_credentials" && !slices.Contains(CredentialKinds(), text):
			r.fault(line, "allow_credentials holds %q, which is none of %s", text, strings.Join(CredentialKinds(), ", "))
			continue
		case (key == "sockets" || key == "allow_write") && IsPattern(text):
			r.fault(line, "%s holds the pattern %q; it takes paths only", key, text)
			continue
		}
		out = append(out, Item{text, line})
	}
	return out
}
