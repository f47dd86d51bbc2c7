package agents

import (
	"errors"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"

	"github.com/hayward-dev/hayward/internal/tomlpos"
)

// MaxFile is the largest definition that is read, in bytes.
const MaxFile = 1 << 20

// Parsed is what came out of one file.
type Parsed struct {
	// Definition is nil when the file is none or has an error.
	Definition *Definition
	// Name is the type that the file defines or would define; empty for a file
	// that is no definition.
	Name   string
	Faults []Fault
}

// Parse reads one definition. label is how the faults name the file; its ending
// says whether it is TOML.
func Parse(content []byte, source Source, label string) Parsed {
	d := &decoder{faults: &faults{file: label}, def: Definition{Source: source}}
	switch {
	case len(content) > MaxFile:
		d.add(SeverityError, 0, "", "has %d bytes, the limit is %d", len(content), MaxFile)
	case !utf8.Valid(content):
		d.add(SeverityError, 0, "", "is not UTF-8")
	case strings.HasSuffix(label, ".toml"):
		d.readTOML(string(content))
	default:
		d.readMarkdown(string(content))
	}
	return d.finish(strings.TrimSuffix(path.Base(label), path.Ext(label)))
}

func (d *decoder) readMarkdown(text string) {
	h, err := readHeader(text)
	switch {
	case errors.Is(err, errNoHeader):
		d.add(SeverityNote, 0, "", "%v", err)
		return
	case err != nil:
		d.add(SeverityError, 1, "", "%v", err)
		return
	}
	if h.byLines != "" {
		d.add(SeverityWarning, h.byLinesLine, "", "the header is not YAML (%s); it was read by lines", h.byLines)
	}
	d.decode(h.entries)
	if prompt, given := d.given["prompt"]; given {
		if h.body != "" {
			d.add(SeverityError, prompt.line, prompt.key, "there is a text below the header too; only one of them can be the prompt")
		}
		return
	}
	d.def.Prompt = h.body
}

// readTOML reads codex's form.
func (d *decoder) readTOML(text string) {
	var table map[string]any
	if _, err := toml.Decode(text, &table); err != nil {
		line := 0
		var parse toml.ParseError
		if errors.As(err, &parse) {
			line = parse.Position.Line
			err = errors.New(parse.Message)
		}
		d.add(SeverityError, line, "", "%v", err)
		return
	}
	lines := tomlpos.Locate(text)
	var entries []entry
	for key, value := range table {
		n := &yaml.Node{}
		if err := n.Encode(value); err != nil {
			d.add(SeverityError, lines.Line(tomlpos.Path("").Key(key)), key, "%v", err)
			continue
		}
		entries = append(entries, entry{key, lines.Line(tomlpos.Path("").Key(key)), n})
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.line - b.line })
	d.decode(entries)
}

// finish checks the definition as a whole. stem is the file's name.
func (d *decoder) finish(stem string) Parsed {
	named, described := d.has("name"), d.has("description")
	if d.given != nil && !named && !described {
		d.list = nil // what its keys mean elsewhere is nobody's fault
		d.add(SeverityNote, 1, "", "the header has neither name nor description: it is not a definition")
	}
	if len(d.list) == 1 && d.list[0].Severity == SeverityNote {
		return Parsed{Faults: d.list}
	}
	fallback, err := validName(stem)
	switch {
	case named && d.def.Name != "":
		if d.def.Name != strings.ToLower(stem) {
			d.add(SeverityWarning, d.def.Lines["name"], "name", "the type is %s, although the file's name is %s", d.def.Name, stem)
		}
	case named: // and faulty
		d.def.Name = fallback
	case err != nil:
		d.add(SeverityError, 1, "name", "is missing, and the file's name is none: %v", err)
	case described:
		d.def.Name = fallback
		d.add(SeverityWarning, 1, "name", "is missing; the type is %s, after the file", fallback)
	default: // it could not be read
		d.def.Name = fallback
	}
	if d.given != nil && !described {
		d.add(SeverityWarning, 1, "description", "is missing: no agent will choose this type by itself")
	}
	d.checkRunner()
	p := Parsed{Name: d.def.Name, Faults: d.list}
	if !d.failed() {
		p.Definition = &d.def
	}
	return p
}

func (d *decoder) has(name string) bool {
	_, given := d.given[name]
	return given
}

func (d *decoder) checkRunner() {
	switch runs := d.def.Runner == "command"; {
	case runs && d.def.Command == nil:
		d.add(SeverityError, d.def.Lines["runner"], "runner", "command needs the key command, a list of arguments")
	case !runs && d.def.Command != nil:
		d.add(SeverityError, d.def.Lines["command"], "command", "goes with runner: command")
	}
}
