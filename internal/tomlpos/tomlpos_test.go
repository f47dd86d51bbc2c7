package tomlpos

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"
)

const document = `# comment
name = "a" # [not.a.table]
text = """
[no.table]
x = 1 \""""
"quoted \u0041.b".c = 'its'

[defaults]
env.A = "1"
env.B = { x = 1, "y z" = [1, 2] }

[[subagent]]
needs = [
  "a", # a comment, with a comma
  'b',
]
[subagent.env]
K = "v"

[[subagent]]
name = "two"
[[subagent.part]]
n = 1
[[subagent.part]]
n = 2
`

func TestLocate(t *testing.T) {
	x := Locate(document)
	for path, line := range map[Path]int{
		"name":                        2,
		"text":                        3,
		Path("").Key("quoted A.b"):    6,
		`"quoted A.b".c`:              6,
		"defaults":                    8,
		"defaults.env":                9,
		"defaults.env.A":              9,
		"defaults.env.B.x":            10,
		`defaults.env.B."y z"`:        10,
		`defaults.env.B."y z"[1]`:     10,
		"subagent":                    12,
		"subagent[0]":                 12,
		"subagent[0].needs":           13,
		"subagent[0].needs[0]":        14,
		"subagent[0].needs[1]":        15,
		"subagent[0].env":             17,
		"subagent[0].env.K":           18,
		"subagent[1]":                 20,
		"subagent[1].name":            21,
		"subagent[1].part[0].n":       23,
		"subagent[1].part[1]":         24,
		"subagent[1].part[1].n":       25,
		"subagent[1].part[1].missing": 24,
		"subagent[1].absent.deep[3]":  20,
		"nowhere":                     0,
	} {
		require.Equal(t, line, x.Line(path), "path %s", path)
	}
	require.NotContains(t, x, Path("no.table"))
	require.NotContains(t, x, Path("not.a.table"))
	requireComplete(t, document, x)
}

// requireComplete holds the index against what the decoder found: both know
// the same paths.
func requireComplete(t *testing.T, doc string, x Index) {
	t.Helper()
	if !utf8.ValidString(doc) {
		return // not TOML, though the decoder passes over some of it
	}
	var values map[string]any
	if _, err := toml.Decode(doc, &values); err != nil {
		return
	}
	var want []string
	if depth := paths("", values, &want); depth >= maxDepth {
		return
	}
	got := make([]string, 0, len(x))
	for p := range x {
		got = append(got, string(p))
	}
	require.ElementsMatch(t, want, got, "document:\n%s", doc)
}

// paths lists all paths below p and returns how deep the deepest is.
func paths(p Path, v any, into *[]string) (depth int) {
	if p != "" {
		*into = append(*into, string(p))
	}
	below := func(p Path, v any) { depth = max(depth, 1+paths(p, v, into)) }
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			below(p.Key(k), e)
		}
	case []any:
		for i, e := range v {
			below(p.Index(i), e)
		}
	case []map[string]any:
		for i, e := range v {
			below(p.Index(i), e)
		}
	}
	return depth
}

// TestDeep: what is too deep to be noted is passed over, and what follows it
// keeps its line.
func TestDeep(t *testing.T) {
	deep := "a = " + strings.Repeat("[", 200) + "\n'x]', \"]\", # ]\n{ k = 1 }\n" + strings.Repeat("]", 200) +
		"\n" + strings.Repeat("k.", 200) + "k = 1\nlast = 1\n[" + strings.Repeat("t.", 200) + "t]\nx = 1\n[end]\nk = 1\n"
	x := Locate(deep)
	require.Equal(t, 6, x.Line("last"))
	require.Equal(t, 10, x.Line("end.k"))
	require.Equal(t, 5, x.Line(Path(strings.Repeat("k.", 150)+"k")))
	require.Less(t, len(x), 4*maxDepth)
}

func FuzzLocate(f *testing.F) {
	f.Add(document)
	f.Add("a = [[1, 2], [{b = 1}]]\n[[t]]\n[t.u]\nv = '''x'''''\n")
	f.Add("a.\"b\\\"c\".d = 1979-05-27T07:32:00Z\r\nb = inf\n")
	f.Fuzz(func(t *testing.T, doc string) {
		requireComplete(t, doc, Locate(doc))
	})
}
