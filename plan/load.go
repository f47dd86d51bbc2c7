package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

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

// Load reads and checks the plan at path. The error is an [*Error].
func Load(path string) (*Plan, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return badFile(path, "find its directory: %v", err)
	}
	file, err := os.Open(path)
	if err != nil {
		var pathError *os.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return badFile(path, "open the plan: %v", err)
	}
	defer file.Close()
	return Read(path, dir, file)
}

// Read is [Load] of an open file; path and dir are as in [Parse].
func Read(path, dir string, file io.Reader) (*Plan, error) {
	text, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return badFile(path, "read the plan: %v", err)
	}
	if len(text) > MaxFile {
		return badFile(path, "the plan is over %d bytes", MaxFile)
	}
	return Parse(path, dir, string(text))
}

func badFile(path, format string, args ...any) (*Plan, error) {
	return nil, &Error{Faults: []Fault{{File: path, Message: fmt.Sprintf(format, args...)}}}
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
	p.FailFast = t.boolean("fail_fast")
	if t.boolean("wait_all") && p.FailFast {
		f.add("wait_all", "fail_fast and wait_all exclude each other")
	}
	p.OnDone = readHook(t).resolve(func(text string) string { return text }, "", false)
	p.Digest = digest(text)
	var defaults settings
	if raw, ok := value[map[string]any](t, "defaults", "a table"); ok {
		d := newTable(f, "defaults", raw)
		defaults = readSettings(d)
		d.rest()
	}
	g := &graph{faults: f}
	tables := t.tables("subagent")
	if tables != nil && len(tables) == 0 {
		f.add("subagent", "is empty")
	}
	for i, raw := range tables {
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

// digest tells texts of a plan apart.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
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
