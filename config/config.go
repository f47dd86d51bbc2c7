package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/internal/pricing"
)

// The names of the files.
const (
	fileName = "config.toml"
	pinName  = "requirements.toml"
	// ProjectFile is a project's file, below its directory.
	ProjectFile = ".hayward/config.toml"
	// SystemDir holds the system's files.
	SystemDir = "/etc/hayward"
)

// Sources say where to look. Empty directories are not looked into.
type Sources struct {
	SystemDir string
	UserDir   string
	// ProjectDir is the project's directory, see [FindProject].
	ProjectDir string
	// Trusted reports whether a project's file is used. Nil: none is.
	Trusted func(dir string) bool
	// Getenv reads the client's environment. Nil: there is none.
	Getenv func(string) string
}

// Config holds the values in force. It is not safe for concurrent changes.
type Config struct {
	settings map[*Key]*[layers]*Setting
	files    []File
}

// Load reads everything. With an [*Error] the Config holds what is sound, to be
// shown and not to be used.
func Load(s Sources) (*Config, error) {
	c := &Config{settings: make(map[*Key]*[layers]*Setting)}
	var faults []Fault
	for _, k := range Keys {
		c.settings[k] = new([layers]*Setting)
		var data any
		if k.Default != "" {
			var err error
			if data, err = k.parse(k.Default); err != nil {
				panic(fmt.Sprintf("config: default of %s: %v", k.Name, err)) // a table of constants, checked by a test
			}
		}
		c.put(k, Setting{Text: format(data), data: data, Origin: Origin{Layer: LayerDefault}})
	}
	for _, f := range s.files() {
		faults = append(faults, c.readFile(f, s.Trusted)...)
	}
	if s.Getenv != nil {
		for _, k := range Keys {
			text := ""
			if k.Env != "" {
				text = s.Getenv(k.Env)
			}
			if text == "" {
				continue
			}
			data, err := k.parse(text)
			if err != nil {
				faults = append(faults, Fault{File: "$" + k.Env, Key: k.Name, Message: err.Error()})
				continue
			}
			c.put(k, Setting{Text: format(data), data: data, Origin: Origin{Layer: LayerEnvironment, Name: "$" + k.Env}})
		}
	}
	if len(faults) > 0 {
		return c, &Error{faults}
	}
	return c, nil
}

// files lists the files, the weakest of each layer first.
func (s Sources) files() []File {
	var files []File
	add := func(layer Layer, dir, name string) {
		if dir != "" {
			files = append(files, File{Layer: layer, Path: filepath.Join(dir, name)})
		}
	}
	user := s.UserDir
	if user == s.SystemDir {
		user = "" // a service's own configuration directory
	}
	add(LayerPin, user, pinName)
	add(LayerPin, s.SystemDir, pinName)
	add(LayerProject, s.ProjectDir, ProjectFile)
	add(LayerUser, user, fileName)
	add(LayerSystem, s.SystemDir, fileName)
	return files
}

func (c *Config) readFile(f File, trusted func(string) bool) []Fault {
	settings, faults, present := readFile(f.Layer, f.Path)
	switch {
	case !present:
		f.State = FileAbsent
	case f.Layer == LayerProject && (trusted == nil || !trusted(projectOf(f.Path))):
		f.State = FileUntrusted
		f.Ignored = make(map[string]Setting)
		for k, s := range settings {
			f.Ignored[k.Name] = s
		}
		faults = nil // what is not used need not be right
	case len(faults) > 0:
		f.State = FileBad
	default:
		f.State = FileUsed
	}
	c.files = append(c.files, f)
	if f.State == FileUntrusted {
		return nil
	}
	for k, s := range settings {
		c.put(k, s)
	}
	return faults
}

func projectOf(file string) string { return filepath.Dir(filepath.Dir(file)) }

func (c *Config) put(k *Key, s Setting) { c.settings[k][s.Origin.Layer] = &s }

// SetFlag takes the value of a flag.
func (c *Config) SetFlag(k *Key, flag, text string) error {
	data, err := k.parse(text)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	c.put(k, Setting{Text: format(data), data: data, Origin: Origin{Layer: LayerFlag, Name: "--" + flag}})
	return nil
}

// Value returns the value in force of k.
func (c *Config) Value(k *Key) Value {
	v := Value{Key: k}
	found := false
	for layer, s := range c.settings[k] {
		switch {
		case s == nil:
		case !found:
			v.Setting, found = *s, true
		case Layer(layer) != LayerDefault:
			v.Overridden = append(v.Overridden, *s)
		}
	}
	return v
}

// Values returns all values in the order of [Keys].
func (c *Config) Values() []Value {
	all := make([]Value, len(Keys))
	for i, k := range Keys {
		all[i] = c.Value(k)
	}
	return all
}

// Files lists the files that were looked for.
func (c *Config) Files() []File { return c.files }

// String is the value of a string key.
func (c *Config) String(k *Key) string { return typed[string](c, k) }

// Bool is the value of a boolean key.
func (c *Config) Bool(k *Key) bool { return typed[bool](c, k) }

// Int is the value of an integer key.
func (c *Config) Int(k *Key) int { return int(typed[int64](c, k)) }

// Duration is the value of a duration key, 0 when it has none.
func (c *Config) Duration(k *Key) time.Duration { return typed[time.Duration](c, k) }

// Bytes is the value of a size key, 0 when it has none.
func (c *Config) Bytes(k *Key) int64 { return int64(typed[size](c, k)) }

// Counts is the value of a table key, nil when it has none.
func (c *Config) Counts(k *Key) map[string]int { return typed[counts](c, k) }

// Number is the value of a number key, 0 when it has none.
func (c *Config) Number(k *Key) float64 { return float64(typed[number](c, k)) }

// Prices is the value of a key of prices, nil when it has none.
func (c *Config) Prices(k *Key) pricing.Table { return pricing.Table(typed[prices](c, k)) }

// typed returns the zero value for a key without one.
func typed[T any](c *Config, k *Key) T {
	v, _ := c.Value(k).data.(T)
	return v
}

// Warnings tells, for people, what was asked for and does not count: files that
// are not trusted, and flags that a pin overrides.
func (c *Config) Warnings() []string {
	var out []string
	for _, f := range c.files {
		if f.State == FileUntrusted {
			out = append(out, f.Path+" is not used: this project is not trusted (hayward trust)")
		}
	}
	for _, v := range c.Values() {
		if v.Origin.Layer != LayerPin {
			continue
		}
		for _, lost := range v.Overridden {
			if lost.Origin.Layer == LayerFlag && lost.Text != v.Text {
				out = append(out, fmt.Sprintf("%s %s is not used: %s is %s, %s", lost.Origin.Name, lost.Text, v.Key.Name, v.Text, v.Origin))
			}
		}
	}
	return out
}

// FindProject returns the directory of the project around dir: the nearest one
// upwards with a [ProjectFile], not beyond the top of a git repository and not
// at or above home. Empty: there is none.
func FindProject(dir, home string) string {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if dir == home || dir == string(filepath.Separator) || !strings.HasPrefix(dir, string(filepath.Separator)) {
			return ""
		}
		if _, err := os.Lstat(filepath.Join(dir, ProjectFile)); err == nil {
			return dir
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return ""
		}
	}
}
