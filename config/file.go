package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/hayward-dev/hayward/internal/tomlpos"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// FileState is what became of a file.
type FileState string

// The states of a file.
const (
	FileUsed      FileState = "used"
	FileAbsent    FileState = "absent"
	FileUntrusted FileState = "not trusted" // shown, and not used
	FileBad       FileState = "bad"         // see the faults
)

// File is one file that values may come from.
type File struct {
	Layer Layer     `json:"layer"`
	Path  string    `json:"path"`
	State FileState `json:"state"`
	// Ignored are the settings of a file that is not trusted, by key.
	Ignored map[string]Setting `json:"ignored,omitempty"`
}

// readFile returns the settings in a file. ok is false when there is none.
func readFile(layer Layer, path string) (settings map[*Key]Setting, faults []Fault, ok bool) {
	bad := func(line int, key, format string, args ...any) {
		faults = append(faults, Fault{File: path, Line: line, Key: key, Message: fmt.Sprintf(format, args...)})
	}
	text, err := readText(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, nil, false
	case err != nil:
		bad(0, "", "%v", err)
		return nil, faults, true
	}
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		line := 0
		message := err.Error()
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			line, message = syntax.Position.Line, syntax.Message
		}
		bad(line, "", "%s", message)
		return nil, faults, true
	}
	index := tomlpos.Locate(text)
	settings = make(map[*Key]Setting)
	take := func(name string, at tomlpos.Path, raw any) {
		line := index.Line(at)
		k := Find(name)
		switch {
		case k == nil:
			bad(line, string(at), "%s", unknown(name))
			return
		case layer == LayerProject && k.Scope == ScopeDaemon:
			bad(line, name, "belongs to the daemon, which serves all projects; set it in the user's config.toml")
			return
		}
		v, err := k.decode(raw)
		if err != nil {
			if wrong := (leafError{}); errors.As(err, &wrong) {
				line = max(index.Line(at.Key(wrong.leaf)), line)
			}
			bad(line, name, "%v", err)
			return
		}
		settings[k] = Setting{Text: format(v), data: v, Origin: Origin{Layer: layer, File: path, Line: line}}
	}
	for name, raw := range tree {
		at := tomlpos.Path("").Key(name)
		table, isTable := raw.(map[string]any)
		switch {
		case !slices.Contains(sections(), name):
			take(name, at, raw)
		case !isTable:
			bad(index.Line(at), string(at), "%v", wrongType(raw, "a table: ["+name+"]"))
		default:
			for leaf, value := range table {
				take(name+"."+leaf, at.Key(leaf), value)
			}
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Key, b.Key)
	})
	return settings, faults, true
}

func readText(path string) (string, error) {
	// Not blocking: a FIFO in the place of a file must not hold every verb.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", plain(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", plain(err)
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("is not a regular file")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", plain(err)
	case len(b) > maxFile:
		return "", fmt.Errorf("is over %d bytes", maxFile)
	case !utf8.Valid(b):
		return "", errors.New("is not UTF-8")
	}
	return string(b), nil
}

// plain leaves out the path, which a fault names already.
func plain(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return fmt.Errorf("%s: %w", pathError.Op, pathError.Err)
	}
	return err
}

// sections are the tables of the file.
func sections() []string {
	var names []string
	for _, k := range Keys {
		if s := k.Section(); s != "" && !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}

// unknown says that a key does not exist, and which do in its place.
func unknown(name string) string {
	section, _, nested := strings.Cut(name, ".")
	if !nested {
		section = ""
	}
	var known []string
	for _, k := range Keys {
		if k.Section() == section {
			known = append(known, k.Leaf())
		}
	}
	if section != "" {
		return fmt.Sprintf("unknown key; [%s] has %s", section, strings.Join(known, ", "))
	}
	for _, s := range sections() {
		known = append(known, "["+s+"]")
	}
	return "unknown key; there are " + strings.Join(known, ", ")
}
