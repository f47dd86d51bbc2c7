package plan

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

func TestDrawing(t *testing.T) {
	p := parse(t, `
jobs = 3
fail_fast = true
[defaults]
command = ["true"]
[[subagent]]
name = "build"
[[subagent]]
name = "vet"
needs = ["build"]
for_each = ["a", "b"]
[[subagent]]
name = "docs"
[[subagent]]
name = "one"
needs = ["vet-a"]
[[subagent]]
name = "report"
needs = ["vet", "docs", "one"]
[[subagent]]
name = "tail"
needs = ["docs"]
[[subagent]]
name = "many-{item}"
for_each = ["1", "2", "3", "4", "5", "6", "7", "8", "9"]
[[subagent]]
name = "after-many"
needs = ["many-{item}"]
`)
	golden(t, "check.golden", p.Check().Draw())
}

// TestDrawingIsWhole: each entry of whatever plan has exactly one line.
func TestDrawingIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines, _ := dag(t)
		p, err := Parse("random.toml", "/plans", entries(lines...))
		require.NoError(t, err)
		c := p.Check()
		drawn := strings.Split(strings.TrimSuffix(c.Draw(), "\n"), "\n")
		require.Len(t, drawn, len(p.Subagents)+1)
		for _, s := range p.Subagents {
			n := 0
			for _, l := range drawn[1:] {
				if strings.Fields(strings.TrimLeft(l, "│├└─ "))[0] == s.Name {
					n++
				}
			}
			require.Equal(t, 1, n, s.Name)
		}
		for i, s := range p.Subagents {
			for _, need := range s.Needs {
				require.Less(t, c.Waves[p.index()[need]], c.Waves[i])
			}
		}
	})
}

func TestWriters(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"repo/.git", "repo/sub", "other"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	for _, c := range []struct {
		about, text string
		want        map[string]string // directory: subagents
	}{
		{"one after another", entries("a", "b: a", "c: b"), nil},
		{"side by side", entries("a", "b"), map[string]string{"": "a b"}},
		{"only those side by side", entries("a", "b: a", "c: a"), map[string]string{"": "b c"}},
		{"one job", "jobs = 1\n" + entries("a", "b"), nil},
		{"read-only", "defaults.sandbox = \"Read_Only\"\n" + entries("a", "b"), nil},
		{"own directories", entries("a") + "cwd = \"other\"\n" + entries("b") + "workspace = \"repo\"\n", nil},
		{
			"the repository around", entries("a") + "cwd = \"repo\"\n" + entries("b") + "cwd = \"repo/sub\"\n",
			map[string]string{"repo": "a b"},
		},
		{
			"one within the other", entries("a") + "workspace = \"repo\"\n" + entries("b") + "workspace = \"repo/sub\"\n",
			map[string]string{"repo": "a b"},
		},
		{
			"within, apart", entries("a") + "workspace = \"repo\"\n" + entries("b: a") + "workspace = \"repo/sub\"\n" + entries("c: a") + "workspace = \"other\"\n",
			nil,
		},
		{
			"added directories", entries("a") + "cwd = \"other\"\nadd_dirs = [\"repo\"]\n" + entries("b") + "cwd = \"repo\"\n",
			map[string]string{"repo": "a b"},
		},
	} {
		t.Run(c.about, func(t *testing.T) {
			p, err := Parse("p.toml", dir, c.text)
			require.NoError(t, err)
			got := make(map[string]string)
			for _, w := range p.Check().Warnings {
				require.Equal(t, WarnTwoWriters, w.Kind)
				got[w.Path] = strings.Join(w.Subagents, " ")
			}
			want := make(map[string]string)
			for d, names := range c.want {
				want[filepath.Join(dir, d)] = names
			}
			require.Equal(t, want, got)
		})
	}
}

func TestPrintCheck(t *testing.T) {
	dir := t.TempDir()
	p, err := Parse("p.toml", dir, "[defaults]\nprompt_file = \"task.md\"\ncwd = \"gone\"\n"+entries("a", "b"))
	require.NoError(t, err)
	var out, errs strings.Builder
	require.NoError(t, p.PrintCheck(&out, &errs, false))
	require.Equal(t, "p: 2 subagents\na\nb\n", out.String())
	require.Equal(t, "warning: the working directory "+dir+"/gone of a, b is not there now\n"+
		"warning: the prompt file "+dir+"/task.md of a, b is not there now\n"+
		"warning: "+dir+"/gone can be written by 2 subagents at the same time: a, b\n", errs.String())

	out.Reset()
	require.NoError(t, p.PrintCheck(&out, &errs, true))
	var c Check
	require.NoError(t, events.DecodeRecord([]byte(out.String()), &c))
	require.Len(t, c.Warnings, 3)
	require.Equal(t, []int{1, 1}, c.Waves)
	require.Equal(t, p, c.Plan)

	var failed *writeError
	require.True(t, errors.As(p.PrintCheck(&brokenWriter{writes: 1}, &errs, false), &failed))
}

// TestWritersOfManySubagents: the greatest plan is checked in seconds.
func TestWritersOfManySubagents(t *testing.T) {
	p := &Plan{Dir: "/"}
	for i := range MaxSubagents {
		s := &Subagent{Name: string(rune('a'+i%26)) + strings.Repeat("x", i/26), Cwd: "/w", Workspace: "/w"}
		s.Entry = s.Name
		if i%2 == 1 {
			s.Needs = []string{p.Subagents[i-1].Name}
		}
		p.Subagents = append(p.Subagents, s)
	}
	w := p.Check().Warnings
	require.Len(t, w[len(w)-1].Subagents, MaxSubagents)
}
