package plan

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// typeCommand is the type of a subagent that runs a command as it is.
const typeCommand = "command"

// placeholder is what for_each replaces by the item.
const placeholder = "{item}"

// expand returns the subagents that entry e stands for, resolved. They are
// checked only when the file is sound so far, so that nothing is told twice.
func (e *entry) expand(f *faults, dir string, defaults settings, sound bool) []*Subagent {
	s := e.settings.with(defaults)
	told := func(s settings) bool { return s.given["command"] || s.given["shell"] }
	// Other types than command may do without one; the coordinator knows them.
	if len(s.command) == 0 && s.shell == "" && (s.kind == "" || s.kind == typeCommand) && !told(e.settings) && !told(defaults) {
		f.add(e.path, "has no command and no shell")
	}
	if !e.each {
		sub := e.resolve(s, dir, "", func(text string) string { return text })
		sub.Name, sub.Line = e.name, f.index.Line(e.path)
		if sound {
			e.check(f, sub, make(map[string]bool))
		}
		return []*Subagent{sub}
	}
	names := e.instanceNames(f)
	subs := make([]*Subagent, 0, len(e.items))
	line := f.index.Line(e.path)
	said := make(map[string]bool)
	for i, item := range e.items {
		sub := e.resolve(s, dir, item, func(text string) string {
			return strings.ReplaceAll(text, placeholder, item)
		})
		sub.Name, sub.Line = names[i], line
		if sound {
			e.check(f, sub, said)
		}
		subs = append(subs, sub)
	}
	return subs
}

// resolve makes one subagent; item replaces the placeholder in a text.
func (e *entry) resolve(s settings, dir, item string, replace func(string) string) *Subagent {
	sub := &Subagent{
		Entry: e.name, Item: item, Type: s.kind, Description: replace(e.description), Prompt: replace(s.prompt),
		Isolation: s.isolation, OnDone: s.onDone.resolve(replace, item, e.each),
		Cwd: below(dir, replace(s.cwd)), Sandbox: s.sandbox, SandboxBestEffort: s.bestEffort,
		MaxRuntimeMS: s.maxRuntime.Milliseconds(), PassEnv: s.passEnv, Show: e.show, Deny: s.deny,
		Env: replaceAll(s.env, replace), Labels: replaceAll(s.labels, replace),
	}
	if s.promptFile != "" {
		sub.PromptFile = below(dir, replace(s.promptFile))
	}
	if s.workspace != "" {
		sub.Workspace = below(dir, replace(s.workspace))
	}
	for _, d := range s.addDirs {
		sub.AddDirs = append(sub.AddDirs, below(dir, replace(d)))
	}
	for _, a := range s.command {
		sub.Command = append(sub.Command, replace(a))
	}
	if s.shell != "" {
		sub.Command = shell(s.shell, item, e.each)
	}
	return sub
}

// shell returns the command for a line of shell, in which the item stands quoted.
func shell(line, item string, each bool) []string {
	if each {
		line = strings.ReplaceAll(line, placeholder, shellQuote(item))
	}
	return []string{"sh", "-c", line}
}

// check holds the spawn that sub will become against the contract, so that a
// refusal comes before anything has run. said holds what was told of this entry.
func (e *entry) check(f *faults, sub *Subagent, said map[string]bool) {
	spawn := sub.spawn()
	spawn.ParentSessionID = "run"
	spawn.Name = ""
	if err := spawn.Validate(); err != nil && !said[err.Message] {
		said[err.Message] = true
		f.add(e.path, "%s", trimOperation(err))
	}
}

// trimOperation returns the message of a refused spawn without its first word.
func trimOperation(err *events.Error) string {
	return strings.TrimPrefix(err.Message, string(events.KindSpawn)+": ")
}

func replaceAll(m map[string]string, replace func(string) string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = replace(v)
	}
	return out
}

// below returns the absolute form of path, relative ones below dir.
func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellQuote returns s as one word of sh.
func shellQuote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// nameable returns item with what a name cannot hold made "-".
func nameable(item string) string {
	return strings.Trim(notInName.ReplaceAllString(item, "-"), "-.")
}

// instanceNames names the subagents of a for_each entry, see the package
// documentation. Collisions with other entries are found later.
func (e *entry) instanceNames(f *faults) []string {
	names := make([]string, len(e.items))
	if strings.Contains(e.name, placeholder) {
		for i, item := range e.items {
			names[i] = strings.ReplaceAll(e.name, placeholder, nameable(item))
			if !events.ValidName(names[i]) {
				f.add(e.path.Key("for_each").Index(i), "makes the name %q, which is not 1 to 64 of A-Z a-z 0-9 _ . - beginning with a letter or digit", clip(names[i]))
			}
		}
		return names
	}
	seen := make(map[string]bool, len(names))
	good := true
	for i, item := range e.items {
		word := nameable(item)
		names[i] = e.name + "-" + word
		good = good && word != "" && events.ValidName(names[i]) && !seen[names[i]]
		seen[names[i]] = true
	}
	if !good {
		for i := range names {
			names[i] = e.name + "-" + strconv.Itoa(i+1)
		}
	}
	return names
}
