package plan

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"sort"
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
	before := p.ancestors()
	var warnings []Warning
	for _, dir := range dirs {
		if at := concurrent(before, exact[dir], within[dir]); len(at) > 0 {
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

func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bitset) union(other bitset) {
	for i, word := range other {
		b[i] |= word
	}
}

func (b bitset) members() []int {
	var list []int
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			list = append(list, i*64+bits.TrailingZeros64(word))
		}
	}
	return list
}

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

// ancestors tells for each subagent which ones end before it starts.
func (p *Plan) ancestors() []bitset {
	index := p.index()
	before := make([]bitset, len(p.Subagents))
	for _, i := range p.order(index) {
		before[i] = newBitset(len(p.Subagents))
		for _, need := range p.Subagents[i].Needs {
			before[i].add(index[need])
			before[i].union(before[index[need]])
		}
	}
	return before
}

// concurrent returns those of a directory's writers that may run beside another
// one, in the order of the plan. exact write the directory itself, within
// something in it; two of the latter are no matter of this directory.
func concurrent(before []bitset, exact, within []int) []int {
	found := newBitset(len(before))
	pair := func(a, b int) {
		if a != b && !before[a].has(b) && !before[b].has(a) {
			found.add(a)
			found.add(b)
		}
	}
	for i, a := range exact {
		for _, b := range exact[i+1:] {
			pair(a, b)
		}
		for _, b := range within {
			pair(a, b)
		}
	}
	list := found.members()
	sort.Ints(list)
	return list
}
