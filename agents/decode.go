package agents

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder fills a definition from the entries of one file.
type decoder struct {
	*faults
	def Definition
	// given holds the first entry of each key.
	given map[string]entry
}

// field is a key of a definition.
type field struct {
	// name is the canonical name; spellings are other names, folded.
	name      string
	spellings []string
	// read takes the value over, nil for keys that are known and not used.
	read func(*decoder, *yaml.Node) error
}

func text(to func(*Definition) *string) func(*decoder, *yaml.Node) error {
	return func(d *decoder, n *yaml.Node) (err error) {
		*to(&d.def), err = scalar(n)
		return err
	}
}

// parsed reads a scalar through a parser.
func parsed[T any](parse func(string) (T, error), to func(*Definition) *T) func(*decoder, *yaml.Node) error {
	return func(d *decoder, n *yaml.Node) error {
		s, err := scalar(n)
		if err != nil {
			return err
		}
		*to(&d.def), err = parse(s)
		return err
	}
}

func texts(to func(*Definition) *[]string) func(*decoder, *yaml.Node) error {
	return func(d *decoder, n *yaml.Node) (err error) {
		*to(&d.def), err = stringList(n)
		return err
	}
}

// fields are the keys of a definition. Other tools' keys that have no meaning
// here are known, so that they are told apart from mistakes.
var fields = []field{
	{"name", nil, (*decoder).name},
	{"description", nil, text(func(d *Definition) *string { return &d.Description })},
	{"prompt", []string{"developerinstructions", "systemprompt"}, text(func(d *Definition) *string { return &d.Prompt })},
	{"tools", []string{"allowedtools"}, texts(func(d *Definition) *[]string { return &d.Tools })},
	{"disallowed_tools", []string{"deniedtools"}, texts(func(d *Definition) *[]string { return &d.DisallowedTools })},
	{"capability_mode", nil, parsed(ParseCapabilityMode, func(d *Definition) *CapabilityMode { return &d.CapabilityMode })},
	{"permission_mode", nil, parsed(ParsePermissionMode, func(d *Definition) *PermissionMode { return &d.PermissionMode })},
	{"model", nil, parsed(parseModel, func(d *Definition) *string { return &d.Model })},
	{"effort", []string{"reasoningeffort", "modelreasoningeffort"}, parsed(parseEffort, func(d *Definition) *string { return &d.Effort })},
	{"max_turns", []string{"maxsteps", "steps"}, parsed(parseCount, func(d *Definition) *int { return &d.MaxTurns })},
	{"isolation", nil, parsed(ParseIsolation, func(d *Definition) *string { return &d.Isolation })},
	{"sandbox", []string{"sandboxmode"}, parsed(parseSandbox, func(d *Definition) *string { return &d.Sandbox })},
	{"background", nil, parsed(parseBool, func(d *Definition) *bool { return &d.Background })},
	{"disabled", nil, parsed(parseBool, func(d *Definition) *bool { return &d.Disabled })},
	{"mcp_inheritance", nil, (*decoder).mcpInheritance},
	{"mcp_servers", nil, (*decoder).mcpServers},
	{"skills", nil, texts(func(d *Definition) *[]string { return &d.Skills })},
	{"initial_prompt", nil, text(func(d *Definition) *string { return &d.InitialPrompt })},
	{"hooks", nil, (*decoder).hooks},
	{"output_schema", nil, (*decoder).outputSchema},
	{"require_no_denials", nil, parsed(parseBool, func(d *Definition) *bool { return &d.RequireNoDenials })},
	{"runner", nil, parsed(parseRunner, func(d *Definition) *string { return &d.Runner })},
	{"command", nil, (*decoder).command},
	{"env", []string{"environment"}, (*decoder).env},
	{"max_runtime", nil, parsed(parseDuration, func(d *Definition) *time.Duration { return &d.Limits.MaxRuntime })},
	{"idle_timeout", nil, parsed(parseDuration, func(d *Definition) *time.Duration { return &d.Limits.IdleTimeout })},
	{"max_memory", nil, parsed(parseSize, func(d *Definition) *int64 { return &d.Limits.MaxMemory })},
}

// ornaments are keys of other tools that change nothing about a run.
var ornaments = []string{"color", "displayname", "nicknamecandidates", "version", "license", "tags", "category", "author"}

// otherTools are keys of other tools that would change a run and are not used.
var otherTools = []string{"memory", "promptmode", "toolconfig", "discoverskills", "inheritskills", "agentsmd", "injectdefaulttools",
	"completionrequirement", "tooloverrides", "usermessagetemplate", "kind", "temperature", "timeoutmins", "mode", "permission",
	"permissions", "hidden", "agentcardurl", "approvalpolicy"}

var fieldOf = func() map[string]*field {
	m := make(map[string]*field)
	for i := range fields {
		for _, s := range append([]string{fold(fields[i].name)}, fields[i].spellings...) {
			m[s] = &fields[i]
		}
	}
	return m
}()

// knownKey reports whether a line that begins with the key can begin a value.
func knownKey(key string) bool {
	k := fold(key)
	return fieldOf[k] != nil || slices.Contains(ornaments, k) || slices.Contains(otherTools, k)
}

// decode reads all entries.
func (d *decoder) decode(entries []entry) {
	d.given = make(map[string]entry)
	d.def.Lines = make(map[string]int)
	for _, e := range entries {
		f := fieldOf[fold(e.key)]
		switch {
		case f == nil:
			d.other(e)
			continue
		case isNull(e.value):
			d.add(SeverityWarning, e.line, e.key, "%s", nullMeaning(f.name))
			continue
		}
		if before, twice := d.given[f.name]; twice {
			d.add(SeverityError, e.line, e.key, "is given twice, first in line %d as %s", before.line, before.key)
			continue
		}
		d.given[f.name] = e
		d.def.Lines[f.name] = e.line
		if err := f.read(d, e.value); err != nil {
			d.add(SeverityError, e.line, e.key, "%v", err)
		}
	}
}

// other keeps a key that has no meaning here.
func (d *decoder) other(e entry) {
	value, err := plain(e.value, 0)
	if err != nil {
		d.add(SeverityError, e.line, e.key, "%v", err)
		return
	}
	if d.def.Extra == nil {
		d.def.Extra = make(map[string]any)
	}
	d.def.Extra[e.key] = value
	switch k := fold(e.key); {
	case slices.Contains(ornaments, k):
	case slices.Contains(otherTools, k):
		d.add(SeverityWarning, e.line, e.key, "is not used here")
	default:
		d.add(SeverityWarning, e.line, e.key, "is not a key of a definition; it is kept and not used%s", didYouMean(e.key))
	}
}

func nullMeaning(name string) string {
	if name == "tools" {
		return "has no value and reads as absent, which means all tools; write [] for none"
	}
	return "has no value and reads as absent"
}

// didYouMean suggests the one key that is a letter or two away.
func didYouMean(key string) string {
	k := fold(key)
	for _, f := range fields {
		n := fold(f.name)
		if len(k) > 3 && (strings.HasPrefix(n, k) || strings.HasPrefix(k, n) || sameLetters(k, n)) {
			return fmt.Sprintf(" (did you mean %s?)", f.name)
		}
	}
	return ""
}

// sameLetters reports whether the words differ by one letter put in, left out or
// changed, or by two neighbors exchanged.
func sameLetters(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(a)-len(b) > 1 {
		return false
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	if len(a) != len(b) {
		return a[i+1:] == b[i:]
	}
	return i < len(a) && (a[i+1:] == b[i+1:] ||
		i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:])
}
