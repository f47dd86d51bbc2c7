package plan

import (
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/tomlpos"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// maxRuntime is the longest max_runtime accepted: a year.
const maxRuntime = 366 * 24 * time.Hour

// settings are the keys that [defaults] and an entry share.
type settings struct {
	command []string
	// shell is set when the command is a line for sh -c.
	shell       string
	kind        string
	prompt      string
	promptFile  string
	isolation   string
	cwd         string
	workspace   string
	addDirs     []string
	deny        []string
	sandbox     string
	bestEffort  bool
	maxRuntime  time.Duration
	env, labels map[string]string
	passEnv     []string
	onDone      hookCommand

	// given tells which keys the table held.
	given map[string]bool
}

// entry is one [[subagent]] as written.
type entry struct {
	settings
	path        tomlpos.Path
	name        string
	description string
	needs       []string
	// items is for_each; each tells an empty one from none.
	items []string
	each  bool
	show  bool
}

func readSettings(t *table) settings {
	s := settings{given: make(map[string]bool, len(t.values))}
	for k := range t.values {
		s.given[k] = true
	}
	s.command = readCommand(t)
	s.shell = t.text("shell")
	if t.has("shell") {
		if s.shell == "" {
			t.faults.add(t.key("shell"), "is empty")
		}
		if t.has("command") {
			t.faults.add(t.key("shell"), "command and shell exclude each other")
		}
	}
	s.kind = t.word("type")
	s.prompt, s.promptFile = t.text("prompt"), t.word("prompt_file")
	if t.has("prompt") && t.has("prompt_file") {
		t.faults.add(t.key("prompt_file"), "prompt and prompt_file exclude each other")
	}
	s.isolation = readIsolation(t)
	s.cwd, s.workspace = t.text("cwd"), t.text("workspace")
	s.addDirs, _ = t.list("add_dirs")
	for i, d := range s.addDirs {
		if d == "" {
			t.faults.add(t.key("add_dirs").Index(i), "is empty")
		}
	}
	s.deny, _ = t.list("deny")
	for i, d := range s.deny {
		if err := policy.CheckDeny(d); err != nil {
			t.faults.add(t.key("deny").Index(i), "%v", err)
		}
	}
	s.sandbox = t.text("sandbox")
	s.bestEffort = t.boolean("sandbox_best_effort")
	s.maxRuntime = t.duration("max_runtime", maxRuntime)
	s.env, s.labels = t.texts("env"), t.texts("labels")
	for _, k := range sortedKeys(s.env) {
		t.check(t.key("env").Key(k), events.Spawn{Env: map[string]string{k: s.env[k]}})
	}
	for _, k := range sortedKeys(s.labels) {
		path := t.key("labels").Key(k)
		if k == LabelRun {
			t.faults.add(path, "is set by the run itself")
		}
		t.check(path, events.Spawn{Labels: map[string]string{k: s.labels[k]}})
	}
	s.onDone = readHook(t)
	s.passEnv, _ = t.list("pass_env")
	for i, k := range s.passEnv {
		t.check(t.key("pass_env").Index(i), events.Spawn{Env: map[string]string{k: ""}})
	}
	return s
}

// readIsolation reads the file space.
func readIsolation(t *table) string {
	s := t.word("isolation")
	t.check(t.key("isolation"), events.Spawn{Isolation: s})
	if canonical, ok := events.ParseIsolation(s); ok && s != "" {
		return canonical
	}
	return s
}

// check holds one member of a spawn against the contract.
func (t *table) check(p tomlpos.Path, part events.Spawn) {
	part.ParentSessionID = "run"
	if err := part.Validate(); err != nil {
		t.faults.add(p, "%s", trimOperation(err))
	}
}

// readCommand reads argv and explains the one mistake everybody makes.
func readCommand(t *table) []string {
	if line, ok := t.values["command"].(string); ok {
		t.asked["command"] = true
		t.faults.add(t.key("command"), "is a string, not an array; for a line of shell write shell = %q", clip(line))
		return nil
	}
	argv, ok := t.list("command")
	switch {
	case !ok:
		return nil
	case len(argv) == 0:
		t.faults.add(t.key("command"), "is empty")
	case argv[0] == "":
		t.faults.add(t.key("command").Index(0), "is empty")
	}
	return argv
}

func readEntry(f *faults, path tomlpos.Path, values map[string]any) *entry {
	t := newTable(f, path, values)
	e := &entry{path: path}
	e.settings = readSettings(t)
	e.name = t.text("name")
	if name, given := values["name"]; !given {
		f.add(path, "has no name")
	} else if name == "" {
		f.add(t.key("name"), "is empty")
	}
	e.description = t.text("description")
	e.needs, _ = t.list("needs")
	e.items, e.each = t.list("for_each")
	if e.each && len(e.items) == 0 {
		f.add(t.key("for_each"), "is empty")
	}
	e.show = t.boolean("show")
	t.rest()
	return e
}

// with returns the settings of an entry under the defaults d.
func (s settings) with(d settings) settings {
	pick := func(key string, take func()) {
		if !s.given[key] {
			take()
		}
	}
	if !s.given["command"] && !s.given["shell"] {
		s.command, s.shell = d.command, d.shell
	}
	pick("type", func() { s.kind = d.kind })
	if !s.given["prompt"] && !s.given["prompt_file"] {
		s.prompt, s.promptFile = d.prompt, d.promptFile
	}
	pick("isolation", func() { s.isolation = d.isolation })
	pick("on_done", func() { s.onDone = d.onDone })
	pick("cwd", func() { s.cwd = d.cwd })
	pick("workspace", func() { s.workspace = d.workspace })
	pick("sandbox", func() { s.sandbox = d.sandbox })
	pick("sandbox_best_effort", func() { s.bestEffort = d.bestEffort })
	pick("max_runtime", func() { s.maxRuntime = d.maxRuntime })
	s.env, s.labels = merged(d.env, s.env), merged(d.labels, s.labels)
	s.addDirs = append(append([]string(nil), d.addDirs...), s.addDirs...)
	s.deny = append(append([]string(nil), d.deny...), s.deny...)
	s.passEnv = append(append([]string(nil), d.passEnv...), s.passEnv...)
	return s
}

// merged returns the union of both, over winning.
func merged(under, over map[string]string) map[string]string {
	if len(under)+len(over) == 0 {
		return nil
	}
	m := make(map[string]string, len(under)+len(over))
	for k, v := range under {
		m[k] = v
	}
	for k, v := range over {
		m[k] = v
	}
	return m
}
