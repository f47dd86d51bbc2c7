package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// writers warns of directories that several subagents may write at the same
// time: neither comes before the other, and what one of them may write is, or
// lies in, what the other may.
func (p *Plan) writers() []Warning {
	if p.Jobs == 1 {
		return nil // one after another
	}
	tops := make(map[string]string)
	exact, within := make(map[string][]int), make(map[string][]int)
	for i, s := range p.Subagents {
		for _, dir := range s.writable(tops) {
			exact[dir] = append(exact[dir], i)
		}
	}
	dirs := sortedKeys(exact)
	for _, dir := range dirs {
		for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
			if _, written := exact[up]; written {
				within[up] = append(within[up], exact[dir]...)
			}
			if up == filepath.Dir(up) {
				break
			}
		}
	}
	o := p.ordered()
	var warnings []Warning
	for _, dir := range dirs {
		if at := o.concurrent(exact[dir], within[dir]); len(at) > 0 {
			names := make([]string, len(at))
			for i, s := range at {
				names[i] = p.Subagents[s].Name
			}
			warnings = append(warnings, Warning{
				Kind: WarnTwoWriters, Subagents: names, Path: dir,
				Message: fmt.Sprintf("%s can be written by %d subagents at the same time: %s", dir, len(names), enumerate(names)),
			})
		}
	}
	return warnings
}

// writable lists the directories of s that the sandbox opens for writing, as far
// as a client can tell. tops keeps what was found out.
func (s *Subagent) writable(tops map[string]string) []string {
	profile := strings.ReplaceAll(strings.ToLower(s.Sandbox), "_", "-")
	if s.Isolation == events.IsolationWorktree || profile == "read-only" || profile == "readonly" {
		return nil
	}
	dir := s.Workspace
	if dir == "" {
		top, known := tops[s.Cwd]
		if !known {
			top = repositoryTop(s.Cwd)
			tops[s.Cwd] = top
		}
		dir = top
	}
	dirs := []string{dir}
	for _, d := range s.AddDirs {
		if d != dir {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// repositoryTop returns the top of the git repository around dir, else dir, as
// the coordinator will.
func repositoryTop(dir string) string {
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			return up
		}
		if up == filepath.Dir(up) {
			return dir
		}
	}
}

// bitset is a set of subagents by index.
type bitset []uint64

func newBitset(n int, members ...int) bitset {
	b := make(bitset, (n+63)/64)
	for _, i := range members {
		b.add(i)
	}
	return b
}

func (b bitset) add(i int) { b[i/64] |= 1 << (i % 64) }

func (b bitset) union(other bitset) {
	for i, word := range other {
		b[i] |= word
	}
}

// order tells for each subagent which ones end before it starts, and which
// start only after its end.
type order struct{ before, after []bitset }

func (p *Plan) ordered() order {
	index := p.index()
	n := len(p.Subagents)
	o := order{before: make([]bitset, n), after: make([]bitset, n)}
	sequence := p.order(index)
	for _, i := range sequence {
		o.before[i], o.after[i] = newBitset(n), newBitset(n)
		for _, need := range p.Subagents[i].Needs {
			o.before[i].add(index[need])
			o.before[i].union(o.before[index[need]])
		}
	}
	for _, i := range slices.Backward(sequence) {
		for _, need := range p.Subagents[i].Needs {
			o.after[index[need]].add(i)
			o.after[index[need]].union(o.after[i])
		}
	}
	return o
}

// beside reports whether i may run at the same time as one of the others.
func (o order) beside(i int, others bitset) bool {
	for w, word := range others {
		if w == i/64 {
			word &^= 1 << (i % 64)
		}
		if word&^(o.before[i][w]|o.after[i][w]) != 0 {
			return true
		}
	}
	return false
}

// concurrent returns those of a directory's writers that may run beside another
// one, in the order of the plan. exact write the directory itself, within
// something in it; two of the latter are no matter of this directory.
func (o order) concurrent(exact, within []int) []int {
	if len(exact)+len(within) < 2 {
		return nil
	}
	owners := newBitset(len(o.before), exact...)
	all := newBitset(len(o.before), within...)
	all.union(owners)
	var found []int
	for _, i := range exact {
		if o.beside(i, all) {
			found = append(found, i)
		}
	}
	for _, i := range within {
		if o.beside(i, owners) {
			found = append(found, i)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
