package plan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/tomlpos"
)

const (
	// MaxFile bounds a plan file, in bytes.
	MaxFile = 1 << 20
	// MaxSubagents bounds what one plan may stand for.
	MaxSubagents = 10_000
	// MaxJobs bounds how many subagents may be in flight.
	MaxJobs = 10_000
)

// LabelRun and LabelPlan are the labels that a run gives to its subagents: the
// run's id and the plan's name.
const (
	LabelRun  = "run"
	LabelPlan = "plan"
)

// Plan is a plan file, checked and resolved.
type Plan struct {
	Name string
	// Path is the file as it was named, Dir its absolute directory.
	Path, Dir string
	// Jobs bounds the subagents in flight; 0: the coordinator's limit decides.
	Jobs int
	// Subagents are in the order of the file, those of a for_each entry in the
	// order of its items.
	Subagents []*Subagent
}

// Subagent is one subagent of a plan, with defaults and item filled in.
type Subagent struct {
	Name string
	// Entry is the name of the entry and Item the for_each item it comes from.
	Entry, Item string

	Description string
	Command     []string
	Prompt      string
	// Cwd, Workspace and AddDirs are absolute.
	Cwd, Workspace    string
	AddDirs           []string
	Sandbox           string
	SandboxBestEffort bool
	// MaxRuntime is 0 for the coordinator's default.
	MaxRuntime  time.Duration
	Env, Labels map[string]string
	// PassEnv names variables taken from the environment of the run.
	PassEnv []string
	// Needs are the names of the subagents that must complete before.
	Needs []string
	// Inputs maps the end of a HAYWARD_INPUT_ variable to one of Needs.
	Inputs map[string]string
	// Show asks for the output at the end of the run.
	Show bool
}

// spawn returns the request for s without what only a run knows.
func (s *Subagent) spawn() events.Spawn {
	spawn := events.Spawn{
		Name: s.Name, Description: s.Description, Prompt: s.Prompt, Command: s.Command,
		Cwd: s.Cwd, Workspace: s.Workspace, AddDirs: s.AddDirs,
		Sandbox: s.Sandbox, SandboxBestEffort: s.SandboxBestEffort,
		Env: s.Env, Labels: s.Labels, RunInBackground: true,
	}
	if s.MaxRuntime > 0 {
		ms := s.MaxRuntime.Milliseconds()
		spawn.MaxRuntimeMS = &ms
	}
	return spawn
}

// Load reads and checks the plan at path. The error is an [*Error].
func Load(path string) (*Plan, error) {
	bad := func(format string, args ...any) (*Plan, error) {
		return nil, &Error{Faults: []Fault{{File: path, Message: fmt.Sprintf(format, args...)}}}
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return bad("find its directory: %v", err)
	}
	file, err := os.Open(path)
	if err != nil {
		var pathError *os.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return bad("open the plan: %v", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return bad("read the plan: %v", err)
	}
	if len(text) > MaxFile {
		return bad("the plan is over %d bytes", MaxFile)
	}
	return Parse(path, dir, string(text))
}

// Parse checks the text of a plan. path is for messages and the default name,
// dir is the absolute directory that relative paths are below. The error is an
// [*Error].
func Parse(path, dir, text string) (*Plan, error) {
	f := &faults{file: path}
	if !utf8.ValidString(text) {
		f.add("", "is not UTF-8")
		return nil, f.err()
	}
	var values map[string]any
	if _, err := toml.Decode(text, &values); err != nil {
		return nil, syntaxError(path, err)
	}
	f.index = tomlpos.Locate(text)

	t := newTable(f, "", values)
	p := &Plan{Path: path, Dir: dir, Name: t.text("name"), Jobs: t.count("jobs", MaxJobs)}
	if p.Name == "" {
		p.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	} else if len(p.Name) > 128 || strings.ContainsFunc(p.Name, isControl) {
		f.add("name", "is over 128 bytes or holds a control character")
	}
	var defaults settings
	if raw, ok := value[map[string]any](t, "defaults", "a table"); ok {
		d := newTable(f, "defaults", raw)
		defaults = readSettings(d)
		d.rest()
	}
	g := &graph{faults: f}
	for i, raw := range t.tables("subagent") {
		if raw == nil {
			continue
		}
		g.entries = append(g.entries, readEntry(f, tomlpos.Path("subagent").Index(i), raw))
	}
	t.rest()
	if len(g.entries) == 0 && !t.has("subagent") {
		f.add("", "has no [[subagent]]")
	}
	if !g.expand(dir, defaults, len(f.list) == 0) {
		return nil, f.err()
	}
	for _, subs := range g.subs {
		p.Subagents = append(p.Subagents, subs...)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// expand makes the subagents and their edges; false when there are too many.
// sound is true when nothing was wrong with the keys so far.
func (g *graph) expand(dir string, defaults settings, sound bool) bool {
	total := 0
	for _, e := range g.entries {
		total += max(1, len(e.items))
	}
	if total > MaxSubagents {
		g.faults.add("", "stands for %d subagents, the limit is %d", total, MaxSubagents)
		return false
	}
	for _, e := range g.entries {
		g.subs = append(g.subs, e.expand(g.faults, dir, defaults, sound))
	}
	g.names()
	g.resolve()
	g.cycles()
	g.show()
	return true
}

func syntaxError(path string, err error) error {
	fault := Fault{File: path, Message: err.Error()}
	var syntax toml.ParseError
	if errors.As(err, &syntax) {
		fault.Line, fault.Key = syntax.Position.Line, syntax.LastKey
		if syntax.Message != "" {
			fault.Message = syntax.Message
		}
	}
	return &Error{Faults: []Fault{fault}}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) }
