package agents

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/hayward-dev/hayward/internal/tomlpos"
)

// Persona is how a subagent should work, whatever its type.
type Persona struct {
	// Name is the file's name.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Instructions are put in front of the subagent's task: those of the key, an
	// empty line, those of the file.
	Instructions string `json:"instructions"`
	// Inputs and Outputs are what it needs and what it has to deliver.
	Inputs  []Parameter `json:"inputs,omitempty"`
	Outputs []Parameter `json:"outputs,omitempty"`
	Defaults
	Source Source `json:"source"`
}

// Parameter is one input or output of a persona.
type Parameter struct {
	Name        string `json:"name" toml:"name"`
	Type        string `json:"io_type,omitempty" toml:"io_type"`
	Required    bool   `json:"required,omitzero" toml:"required"`
	Description string `json:"description,omitempty" toml:"description"`
}

// Role is a set of defaults that goes with a type or a persona of the same name.
type Role struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Prompt is added to the type's prompt.
	Prompt string `json:"prompt,omitempty"`
	Defaults
	Source Source `json:"source"`
}

// Defaults are run-time settings that count where the request leaves them open.
type Defaults struct {
	Model          string         `json:"model,omitempty"`
	Effort         string         `json:"effort,omitempty"`
	CapabilityMode CapabilityMode `json:"capability_mode,omitempty"`
	Isolation      string         `json:"isolation,omitempty"`
}

// profileFile is the TOML form of both.
type profileFile struct {
	Description      string      `toml:"description"`
	Instructions     string      `toml:"instructions"`
	InstructionsFile string      `toml:"instructions_file"`
	Prompt           string      `toml:"prompt"`
	PromptFile       string      `toml:"prompt_file"`
	Model            string      `toml:"model"`
	Effort           string      `toml:"reasoning_effort"`
	CapabilityMode   string      `toml:"capability_mode"`
	Isolation        string      `toml:"isolation"`
	DefaultIsolation string      `toml:"default_isolation"`
	Inputs           []Parameter `toml:"inputs"`
	Outputs          []Parameter `toml:"outputs"`
}

// FindPersona reads the persona of a name from the first place that has it. A
// persona that was asked for and cannot be had is an error: the subagent would
// work by other rules than its caller thinks.
func FindPersona(p Places, name string) (*Persona, []Fault) {
	text, source, faults := findProfile(p, "personas", name)
	if text == nil {
		if firstError(faults) == nil {
			faults = append(faults, Fault{Severity: SeverityError, Message: "there is no persona " + name})
		}
		return nil, faults
	}
	f, file := readProfile(source, text.content)
	file.list = append(faults, file.list...)
	persona := &Persona{Name: name, Description: f.Description, Inputs: f.Inputs, Outputs: f.Outputs, Defaults: file.defaults(f), Source: source}
	persona.Instructions = file.join("instructions_file", f.Instructions, f.InstructionsFile, text)
	if persona.Instructions == "" {
		file.add(SeverityError, 0, "instructions", "are missing")
	}
	if f.Prompt != "" || f.PromptFile != "" {
		file.add(SeverityWarning, 0, "prompt", "is a key of roles and not used")
	}
	if file.failed() {
		return nil, file.list
	}
	return persona, file.list
}

// FindRole reads the role of a name. There need not be one: then it is nil and no
// fault is an error.
func FindRole(p Places, name string) (*Role, []Fault) {
	text, source, faults := findProfile(p, "roles", name)
	if text == nil {
		return nil, faults
	}
	f, file := readProfile(source, text.content)
	file.list = append(faults, file.list...)
	role := &Role{Name: name, Description: f.Description, Defaults: file.defaults(f), Source: source}
	role.Prompt = file.join("prompt_file", f.Prompt, f.PromptFile, text)
	if f.Instructions != "" || f.InstructionsFile != "" || f.Inputs != nil || f.Outputs != nil {
		file.add(SeverityWarning, 0, "", "instructions, inputs and outputs are keys of personas and not used")
	}
	if file.failed() {
		return nil, file.list
	}
	return role, file.list
}

// profileText is a file that was found, with the root that files it names are
// opened below.
type profileText struct {
	content []byte
	// beside reads a file that is named relative to this one.
	beside func(name string) ([]byte, error)
}

// findProfile looks for NAME.toml in the directories of a kind, the strongest
// first. Those of a project count only if it is trusted. Without a text and
// without an error there is none.
func findProfile(p Places, kind, name string) (*profileText, Source, []Fault) {
	if _, err := validName(name); err != nil {
		return nil, Source{}, []Fault{{Severity: SeverityError, Key: strings.TrimSuffix(kind, "s"), Message: err.Error()}}
	}
	var faults []Fault
	for _, place := range profilePlaces(p) {
		source := Source{Scope: place.scope, Format: place.format, Path: filepath.Join(place.base, place.dir, kind, name+".toml")}
		text, err := openProfile(place.base, filepath.Join(place.dir, kind), name+".toml", place.scope == ScopeUser)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case place.scope == ScopeProject && !p.trusts(place.base):
			faults = append(faults, Fault{Severity: SeverityWarning, File: source.Path, Message: "is not used: this project is not trusted (hayward trust)"})
		case err != nil:
			return nil, source, append(faults, Fault{Severity: SeverityError, File: source.Path, Message: cause(err)})
		default:
			return text, source, faults
		}
	}
	return nil, Source{}, faults
}

// profilePlace is a directory that has personas and roles.
type profilePlace struct {
	base, dir, format string
	scope             Scope
}

func profilePlaces(p Places) []profilePlace {
	var all []profilePlace
	if p.Project != "" {
		for _, dir := range upwards(p.Dir, p.Project) {
			all = append(all, profilePlace{dir, ".hayward", FormatHayward, ScopeProject}, profilePlace{dir, ".grok", FormatGrok, ScopeProject})
		}
	}
	if p.Config != "" {
		all = append(all, profilePlace{p.Config, "", FormatHayward, ScopeUser})
	}
	if p.Home != "" {
		all = append(all, profilePlace{p.Home, ".grok", FormatGrok, ScopeUser})
	}
	return all
}

// openProfile reads base/dir/name, in a project never through a link that leaves
// base.
func openProfile(base, dir, name string, links bool) (*profileText, error) {
	source := Source{Scope: ScopeProject, Path: filepath.Join(base, dir, name)}
	if links {
		source.Scope = ScopeUser
	}
	readBelow := func(name string) ([]byte, error) {
		if links {
			source.Path = filepath.Join(base, dir, name)
			if filepath.IsAbs(name) {
				source.Path = name
			}
			return read(nil, "", source)
		}
		root, err := os.OpenRoot(base)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return read(root, filepath.Join(dir, name), source)
	}
	content, err := readBelow(name)
	if err != nil {
		return nil, err
	}
	return &profileText{content: content, beside: readBelow}, nil
}

// readProfile decodes a file; a key that is not known is a warning.
func readProfile(source Source, content []byte) (profileFile, *profileFaults) {
	faults := &profileFaults{faults: faults{file: source.Path}, lines: tomlpos.Locate(string(content))}
	var f profileFile
	meta, err := toml.Decode(string(content), &f)
	if err != nil {
		line, parse := 0, toml.ParseError{}
		if errors.As(err, &parse) {
			line, err = parse.Position.Line, errors.New(parse.Message)
		}
		faults.add(SeverityError, line, "", "%v", err)
		return profileFile{}, faults
	}
	for _, key := range meta.Undecoded() {
		path := tomlpos.Path("")
		for _, part := range key {
			path = path.Key(part)
		}
		faults.add(SeverityWarning, faults.lines.Line(path), key.String(), "is not known and not used")
	}
	return f, faults
}

// profileFaults knows the lines of the keys.
type profileFaults struct {
	faults
	lines tomlpos.Index
}

func (f *profileFaults) line(key string) int { return f.lines.Line(tomlpos.Path("").Key(key)) }

func (f *profileFaults) defaults(file profileFile) Defaults {
	d := Defaults{}
	check := func(key, value string, set func(string) error) {
		if value == "" {
			return
		}
		if err := set(value); err != nil {
			f.add(SeverityError, f.line(key), key, "%v", err)
		}
	}
	check("model", file.Model, func(s string) (err error) { d.Model, err = parseModel(s); return })
	check("reasoning_effort", file.Effort, func(s string) (err error) { d.Effort, err = parseEffort(s); return })
	check("capability_mode", file.CapabilityMode, func(s string) (err error) { d.CapabilityMode, err = ParseCapabilityMode(s); return })
	check("isolation", file.Isolation, func(s string) (err error) { d.Isolation, err = ParseIsolation(s); return })
	check("default_isolation", file.DefaultIsolation, func(s string) (err error) { d.Isolation, err = ParseIsolation(s); return })
	if file.Isolation != "" && file.DefaultIsolation != "" {
		f.add(SeverityError, f.line("default_isolation"), "default_isolation", "is the same as isolation; give one")
	}
	return d
}

// join puts a text and the text of a file together.
func (f *profileFaults) join(key, text, name string, at *profileText) string {
	parts := []string{strings.TrimSpace(text)}
	if name != "" {
		content, err := at.beside(name)
		switch {
		case err != nil:
			f.add(SeverityError, f.line(key), key, "%s: %s", name, cause(err))
		case len(content) > MaxFile:
			f.add(SeverityError, f.line(key), key, "%s has more than %d bytes", name, MaxFile)
		}
		parts = append(parts, strings.TrimSpace(string(content)))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n")
}
