package plan

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAuditPlan holds the plan that audits this repository: it is sound, most of
// it runs in parallel, its scripts are there and parse, and no part of the
// repository is left out.
func TestAuditPlan(t *testing.T) {
	p, err := Load(filepath.Join("..", "plans", "audit.toml"))
	require.NoError(t, err)
	requireSound(t, p)
	last := p.Subagents[len(p.Subagents)-1]
	require.True(t, last.Show)
	require.Len(t, last.Needs, len(p.Subagents)-1, "the report collects everything")
	waves := make(map[string]int)
	items := make(map[string]bool)
	for _, s := range p.Subagents {
		waves[strings.Join(s.Needs, " ")]++
		items[s.Item] = true
		require.Equal(t, "sh", s.Command[0])
		script := filepath.Join(s.Cwd, s.Command[1])
		out, err := exec.Command("sh", "-n", script).CombinedOutput()
		require.NoError(t, err, "%s: %s", script, out)
	}
	require.GreaterOrEqual(t, waves["prepare"], 8)

	sources, err := filepath.Glob("../*/*.go")
	require.NoError(t, err)
	deeper, err := filepath.Glob("../*/*/*.go")
	require.NoError(t, err)
	for _, path := range append(sources, deeper...) {
		part := strings.Split(filepath.ToSlash(path), "/")[1]
		require.True(t, items[part], "%s is not in the audit", part)
	}
}

// TestAuditReport: verdicts first, then what is behind them.
func TestAuditReport(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "../plans/audit/report.sh")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, text := range map[string]string{
		"vet_events": "ok: nothing\n", "a.path with spaces": "found: 2 things\none\ntwo\n", "empty": "",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		cmd.Env = append(cmd.Env, "HAYWARD_INPUT_"+InputVariable(strings.Fields(name)[0])+"="+path)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, `Audit of plan: 3 checks, 1 with findings

a_path             found: 2 things
empty              
vet_events         ok: nothing

== a_path
one
two
`, string(out))
}
