package plan

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hayward-dev/hayward/events"
)

// maxItems bounds a list of items, in bytes.
const maxItems = 32 << 20

// ForEach is one command to run for each item of a list. In the command and in
// the other texts {} stands for the item, {/} for its last part as a path and
// {//} for what is before that ("." if nothing is). An item that neither the
// command nor Cwd nor Env takes up becomes the command's last argument.
type ForEach struct {
	// Name is the plan's.
	Name    string
	Items   []string
	Command []string
	// Dir is the absolute directory that relative ones are below.
	Dir            string
	Cwd, Workspace string
	AddDirs        []string
	// Deny are paths and patterns to put out of reach.
	Deny        []string
	Sandbox     string
	BestEffort  bool
	MaxRuntime  time.Duration
	Env, Labels map[string]string
}

// ReadItems reads items, one on each line, or with nul each ended by a NUL. Empty
// ones are left out.
func ReadItems(r io.Reader, nul bool) ([]string, error) {
	limited := &io.LimitedReader{R: r, N: maxItems + 1}
	scanner := bufio.NewScanner(limited)
	scanner.Buffer(make([]byte, 0, 64<<10), events.MaxArgvBytes)
	if nul {
		scanner.Split(splitNUL)
	}
	var items []string
	for scanner.Scan() {
		if item := scanner.Text(); item != "" {
			items = append(items, item)
		}
		if len(items) > MaxSubagents {
			return nil, fmt.Errorf("there are over %d items", MaxSubagents)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read item %d: %w", len(items)+1, err)
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("the items are over %d bytes", maxItems)
	}
	return items, nil
}

func splitNUL(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// Resolve makes the plan; from says where the items come from. The error is an
// [*Error] that names the items.
func (f ForEach) Resolve(from string) (*Plan, error) {
	faults := &faults{file: from}
	switch {
	case len(f.Items) == 0:
		faults.add("", "holds no items")
	case len(f.Command) == 0:
		faults.add("", "there is no command; put it behind --")
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	p := &Plan{Name: f.Name, Path: from, Dir: f.Dir}
	names := itemNames(f.Items)
	appended := !f.takesItem()
	said := make(map[string]bool)
	for i, item := range f.Items {
		sub := f.subagent(item, appended)
		sub.Name, sub.Entry = names[i], names[i]
		p.Subagents = append(p.Subagents, sub)
		if err := f.check(sub); err != nil && !said[err.Message] {
			said[err.Message] = true
			faults.list = append(faults.list, Fault{File: from, Message: fmt.Sprintf("item %d, %q: %s", i+1, clip(item), trimOperation(err))})
		}
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// check holds the spawn of an item against the contract.
func (f ForEach) check(sub *Subagent) *events.Error {
	if _, taken := sub.Labels[LabelRun]; taken {
		return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "the label %s is set by the run itself", LabelRun)
	}
	for _, text := range append([]string{sub.Item}, sub.Command...) {
		if !utf8.ValidString(text) {
			return events.Errorf(events.CodeInvalidRequest, events.LayerGate, "is not UTF-8")
		}
	}
	spawn := sub.spawn()
	spawn.ParentSessionID = "run"
	return spawn.Validate()
}

// takesItem reports whether the item has a place of its own.
func (f ForEach) takesItem() bool {
	texts := append([]string{f.Cwd}, f.Command...)
	for _, v := range f.Env {
		texts = append(texts, v)
	}
	for _, text := range texts {
		for _, p := range []string{"{}", "{/}", "{//}"} {
			if strings.Contains(text, p) {
				return true
			}
		}
	}
	return false
}

func (f ForEach) subagent(item string, appended bool) *Subagent {
	clean := path.Clean(item)
	replace := strings.NewReplacer("{}", item, "{/}", path.Base(clean), "{//}", path.Dir(clean)).Replace
	sub := &Subagent{
		Item: item, Sandbox: f.Sandbox, SandboxBestEffort: f.BestEffort, MaxRuntimeMS: f.MaxRuntime.Milliseconds(),
		Cwd: below(f.Dir, replace(f.Cwd)), Env: replaceAll(f.Env, replace), Labels: replaceAll(f.Labels, replace),
		Deny: f.Deny,
	}
	if f.Workspace != "" {
		sub.Workspace = below(f.Dir, replace(f.Workspace))
	}
	for _, d := range f.AddDirs {
		sub.AddDirs = append(sub.AddDirs, below(f.Dir, replace(d)))
	}
	for _, a := range f.Command {
		sub.Command = append(sub.Command, replace(a))
	}
	if appended {
		sub.Command = append(sub.Command, item)
	}
	return sub
}

// maxItemName leaves room in a name for what makes it unique.
const maxItemName = 56

// itemNames derives a name from each item: what a name cannot hold becomes "-",
// of a long one the end is kept, and names that would be equal get numbers.
func itemNames(items []string) []string {
	names := make([]string, len(items))
	seen, again := make(map[string]bool, len(items)), make(map[string]int)
	for i, item := range items {
		word := nameable(item)
		if over := len(word) - maxItemName; over > 0 {
			word = strings.TrimLeft(word[over:], "-._")
		}
		if !events.ValidName(word) || events.ValidID(word) {
			word = strings.Trim("item-"+strings.Trim(word, "-._"), "-")
			if len(word) > maxItemName {
				word = word[:maxItemName]
			}
		}
		name := word
		for seen[name] {
			again[word]++
			name = word + "-" + strconv.Itoa(again[word]+1)
		}
		seen[name] = true
		names[i] = name
	}
	return names
}
