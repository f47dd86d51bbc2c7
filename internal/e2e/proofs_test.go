package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// proofs are the lines of a table of what was shown.
type proofs struct {
	mu    sync.Mutex
	lines [][]string // guarded by mu
}

// proof adds the lines of one agent under one profile.
type proof struct {
	t   *testing.T
	to  *proofs
	row []string // user, profile, agent
}

func (p *proofs) of(w *realWorld, profile, agent string) proof {
	user := "root"
	if w.u.uid != 0 {
		user = fmt.Sprintf("uid %d", w.u.uid)
	}
	return proof{t: w.t, to: p, row: []string{user, profile, agent}}
}

// check adds a line. What does not hold fails the test, and details say more then.
func (p proof) check(what string, holds bool, details ...any) {
	p.t.Helper()
	outcome := "yes"
	if !holds {
		outcome = "NO"
		p.t.Errorf("%s: not so: %s: %v", strings.Join(p.row, ", "), what, details)
	}
	p.to.mu.Lock()
	defer p.to.mu.Unlock()
	p.to.lines = append(p.to.lines, append(append([]string{}, p.row...), what, outcome))
}

// print writes the table to the file of HAYWARD_AGENT_CLIS_TABLE, else into the
// test's log.
func (p *proofs) print(t *testing.T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := append([][]string{{"USER", "PROFILE", "AGENT", "SHOWN", ""}}, p.lines...)
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			width[i] = max(width[i], len(cell))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			fmt.Fprintf(&b, "%-*s  ", width[i], cell)
		}
		b.WriteString("\n")
	}
	if path := os.Getenv(agentCLIs + "_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Error(err)
		}
		return
	}
	t.Log("\n" + b.String())
}
