package resume

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPathsText(t *testing.T) {
	p := NewPaths(Move{"/src/a", "/trees/x"}, Move{"/src/a/deep", "/elsewhere"}, Move{"/same", "/same"}, Move{"/", "/root"}, Move{"", "/x"})
	require.Len(t, p, 2)
	for from, to := range map[string]string{
		"/src/a":                  "/trees/x",
		"/src/a/b.go":             "/trees/x/b.go",
		"/src/a/deep/f":           "/elsewhere/f",
		"cd '/src/a' && ls":       "cd '/trees/x' && ls",
		"in /src/a.":              "in /trees/x.",
		"in /src/a. And":          "in /trees/x. And",
		"/src/a:/src/a/b":         "/trees/x:/trees/x/b",
		"file:///src/a/b":         "file:///trees/x/b",
		"(/src/a)":                "(/trees/x)",
		"/src/ab":                 "/src/ab",
		"/src/a-b":                "/src/a-b",
		"/src/a.txt":              "/src/a.txt",
		"/src/a./b":               "/src/a./b",
		"/mnt/src/a":              "/mnt/src/a",
		"//src/a":                 "//src/a",
		"/src/aé":                 "/src/aé",
		"nothing":                 "nothing",
		"":                        "",
		"--dir=/src/a":            "--dir=/trees/x",
		"\n/src/a\n/src/a/deep\n": "\n/trees/x\n/elsewhere\n",
	} {
		require.Equal(t, to, p.Text(from), from)
	}
}

func TestPathsJSON(t *testing.T) {
	p := NewPaths(Move{"/src/a", `/trees/"x"`})
	for from, to := range map[string]string{
		`{"cwd":"/src/a","n":1.50,"u":"\u00e9","deep":[{"/src/a/k":"\/src\/a\/v"}]}`: `{"cwd":"/trees/\"x\"","n":1.50,"u":"\u00e9","deep":[{"/trees/\"x\"/k":"/trees/\"x\"/v"}]}`,
		`"/src/ab"`:                  `"/src/ab"`,
		`{"a":1,"a":2,"p":"/src/a"}`: `{"a":1,"a":2,"p":"/trees/\"x\""}`,
	} {
		got, err := p.JSON([]byte(from))
		require.NoError(t, err)
		require.Equal(t, to, string(got))
	}
	_, err := p.JSON([]byte(`{"p":"/src/a"`))
	require.Error(t, err)
}

// Rewriting there and back is what it was, and what is not the path stays.
func TestPathsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := "/home/u/one", "/var/trees/two"
		parts := rapid.SliceOf(rapid.SampledFrom([]string{from, from + "/f", from + "x", " ", "\n", "é", "=", "\"", "/tmp", ".", "a"})).Draw(t, "parts")
		s := strings.Join(parts, "")
		there := NewPaths(Move{from, to}).Text(s)
		if back := NewPaths(Move{to, from}).Text(there); back != s {
			t.Fatalf("%q became %q and then %q", s, there, back)
		}
		value, err := json.Marshal(map[string]string{"k": s})
		require.NoError(t, err)
		rewritten, err := NewPaths(Move{from, to}).JSON(value)
		require.NoError(t, err)
		var m map[string]string
		require.NoError(t, json.Unmarshal(rewritten, &m))
		require.Equal(t, there, m["k"])
	})
}

func TestLinesOfASession(t *testing.T) {
	p := NewPaths(Move{"/w", "/v"})
	for name, c := range map[string]struct{ in, out string }{
		"whole":           {"{\"a\":\"/w\"}\n{\"b\":2}\n", "{\"a\":\"/v\"}\n{\"b\":2}\n"},
		"torn":            {"{\"a\":1}\n{\"b\":\"/w", "{\"a\":1}\n"},
		"torn and ended":  {"{\"a\":1}\n\x00\x00\x00\n", "{\"a\":1}\n"},
		"no end":          {"{\"a\":1}\n{\"b\":2}", "{\"a\":1}\n{\"b\":2}\n"},
		"in the middle":   {"{\"a\":1}\nnot ours\n{\"b\":2}\n", "{\"a\":1}\nnot ours\n{\"b\":2}\n"},
		"nothing at all":  {"", ""},
		"invalid strings": {"{\"a\":\"\xff/w\"}\n", "{\"a\":\"\xff/w\"}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, p.Lines(&out, strings.NewReader(c.in)))
			require.Equal(t, c.out, out.String())
		})
	}
}
