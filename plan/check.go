package plan

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// Check is what can be said of a sound plan without running it; with --json it
// is what is printed.
type Check struct {
	Plan *Plan `json:"plan"`
	// Waves tells for each subagent, in the order of the plan, the earliest wave it
	// can run in, counted from 1: one more than the last of its needs.
	Waves []int `json:"waves"`
	// Warnings are what may go wrong.
	Warnings []Warning `json:"warnings"`
}

// Warning is something that is allowed and may not be meant.
type Warning struct {
	// Kind is two_writers, cwd_missing or prompt_file_missing.
	Kind string `json:"kind"`
	// Subagents are those that it is about.
	Subagents []string `json:"subagents"`
	// Path is the directory or file that it is about.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// The kinds of a [Warning].
const (
	WarnTwoWriters = "two_writers"
	WarnCwd        = "cwd_missing"
	WarnPromptFile = "prompt_file_missing"
)

// Check looks at the plan and, for its directories, at the file system.
func (p *Plan) Check() Check {
	c := Check{Plan: p, Waves: p.waves(), Warnings: []Warning{}}
	c.Warnings = append(c.Warnings, missing(p, WarnCwd, "working directory", func(s *Subagent) string { return s.Cwd }, os.FileInfo.IsDir)...)
	c.Warnings = append(c.Warnings, missing(p, WarnPromptFile, "prompt file", func(s *Subagent) string { return s.PromptFile }, func(i os.FileInfo) bool { return !i.IsDir() })...)
	c.Warnings = append(c.Warnings, p.writers()...)
	return c
}

// missing warns of files that are not there yet: something else may make them
// before they are needed.
func missing(p *Plan, kind, what string, of func(*Subagent) string, good func(os.FileInfo) bool) []Warning {
	var warnings []Warning
	at := make(map[string]int)
	for _, s := range p.Subagents {
		path := of(s)
		if path == "" {
			continue
		}
		if i, told := at[path]; told {
			if i >= 0 {
				warnings[i].Subagents = append(warnings[i].Subagents, s.Name)
			}
			continue
		}
		at[path] = -1
		if info, err := os.Stat(path); err == nil && good(info) {
			continue
		}
		at[path] = len(warnings)
		warnings = append(warnings, Warning{Kind: kind, Subagents: []string{s.Name}, Path: path})
	}
	for i := range warnings {
		w := &warnings[i]
		w.Message = fmt.Sprintf("the %s %s of %s is not there now", what, w.Path, enumerate(w.Subagents))
	}
	return warnings
}

// waves counts for each subagent how many must run one after another up to it.
func (p *Plan) waves() []int {
	index := p.index()
	waves := make([]int, len(p.Subagents))
	for _, i := range p.order(index) {
		waves[i] = 1
		for _, need := range p.Subagents[i].Needs {
			waves[i] = max(waves[i], waves[index[need]]+1)
		}
	}
	return waves
}

func (p *Plan) index() map[string]int {
	index := make(map[string]int, len(p.Subagents))
	for i, s := range p.Subagents {
		index[s.Name] = i
	}
	return index
}

// order returns the subagents so that each comes behind its needs, and otherwise
// as in the file.
func (p *Plan) order(index map[string]int) []int {
	order := make([]int, 0, len(p.Subagents))
	done := make([]bool, len(p.Subagents))
	var visit func(i int)
	visit = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, need := range p.Subagents[i].Needs {
			visit(index[need])
		}
		order = append(order, i)
	}
	for i := range p.Subagents {
		visit(i)
	}
	return order
}

// enumerate writes the first few of a list of names.
func enumerate(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// PrintCheck checks p: the graph goes to out, or with json the [Check], and the
// warnings to errs. The error is one of writing.
func (p *Plan) PrintCheck(out, errs io.Writer, json bool) error {
	c := p.Check()
	if json {
		b, err := events.MarshalRecord(c)
		if err != nil {
			return fmt.Errorf("encode the check of %s: %w", p.Path, err)
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return &writeError{err}
		}
		return nil
	}
	if _, err := io.WriteString(out, c.Draw()); err != nil {
		return &writeError{err}
	}
	for _, w := range c.Warnings {
		if err := writeLines(errs, []string{"warning: " + w.Message}); err != nil {
			return fmt.Errorf("write to stderr: %w", err)
		}
	}
	return nil
}
