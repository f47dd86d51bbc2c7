package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCheckPattern(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"**/.env": true, "*.pem": true, "/abs/**": true, "a?c": true, "[abc]x": true, "[a-z]": true, "[!a]": true, "[^a]": true,
		"**/secrets/**": true, "a/**/b": true, "*": true, "**": true, ".*": true, "a/*/b": true,
		"{a,b}": false, "a}": false, `a\*`: false, "a**b": false, "**a": false, "a//*": false, "*/": false, "./*": false,
		"../*": false, "a/../*": false, "[]a]": false, "[!]a]": false, "[[:alpha:]]": false, "[a[b]": false, "[abc": false, "[z-a": false,
	} {
		err := CheckPattern(pattern)
		require.Equal(t, ok, err == nil, "%s: %v", pattern, err)
	}
}

func TestPatternMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"**/.env", "/w/.env", true}, {"**/.env", "/w/a/b/.env", true}, {"**/.env", "/w/.envrc", false},
		{"**/.env", "/other/.env", false}, {"*.pem", "/w/k.pem", true}, {"*.pem", "/w/a/k.pem", false},
		{"secrets/**", "/w/secrets", false}, {"secrets/**", "/w/secrets/a", true}, {"secrets/**", "/w/secrets/a/b", true},
		{"a/**/b", "/w/a/b", true}, {"a/**/b", "/w/a/x/y/b", true}, {"a/**/b", "/w/a/b/c", false},
		{"**/secrets/**", "/w/secrets/x", true}, {"**/secrets/**", "/w/d/secrets/x/y", true}, {"**/secrets/**", "/w/secrets", false},
		{"[!a]", "/w/b", true}, {"[!a]", "/w/a", false}, {"[^a]", "/w/a", false}, {"?", "/w/é", true}, {"*", "/w/.hidden", true},
		{"a/b", "/w/a/b", true}, {"a/b", "/w/a/b/c", false}, {"a", "/w/ab", false},
		{"/abs/*.key", "/abs/x.key", true}, {"/abs/*.key", "/w/abs/x.key", false}, {"*.PEM", "/w/a.pem", false}, {"**", "/w/a", true}, {"**", "/w", false},
	} {
		p, err := Compile(c.pattern, "/w")
		require.NoError(t, err)
		require.Equal(t, c.want, p.Match(c.path), "%s %s", c.pattern, c.path)
	}
	p, err := Compile("*.x", "/odd[a]*")
	require.NoError(t, err, "what stands before a relative pattern is no pattern")
	require.True(t, p.Match("/odd[a]*/b.x"))
	_, err = Compile("*", "")
	require.Error(t, err)
}

// The reference is a regular expression made from the same pattern.
func TestPatternMatchesReference(t *testing.T) {
	segment := rapid.SampledFrom([]string{"**", "*", "a", "b", "?", "a*", "[ab]", "[!a]", "*b"})
	name := rapid.StringMatching(`[abc]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOfN(segment, 1, 5).Draw(t, "pattern")
		path := rapid.SliceOfN(name, 1, 6).Draw(t, "path")
		p, err := Compile(strings.Join(segments, "/"), "/r")
		require.NoError(t, err)
		want := reference(segments).MatchString("/" + strings.Join(path, "/"))
		require.Equal(t, want, p.Match("/r/"+strings.Join(path, "/")), "%v %v", segments, path)
	})
}

func reference(segments []string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for i, s := range segments {
		switch {
		case s == "**" && i == len(segments)-1:
			b.WriteString("(/[^/]+)+")
		case s == "**":
			b.WriteString("(/[^/]+)*")
		default:
			b.WriteString("/" + strings.NewReplacer("*", "[^/]*", "?", "[^/]", "[!", "[^").Replace(s))
		}
	}
	return regexp.MustCompile(b.String() + "$")
}

func entriesFor(dir string, texts ...string) []Entry {
	var out []Entry
	for _, text := range texts {
		out = append(out, NewEntry(text, "test", Place{Workspace: dir, Home: "/home/u"}))
	}
	return out
}

func fill(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, f := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o644))
	}
}

func found(x Expansion, dir string) []string {
	var out []string
	for _, m := range x.Matches {
		out = append(out, strings.TrimPrefix(m.Path, dir+"/"))
	}
	return out
}

func TestExpand(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	fill(t, dir, ".env", "a/.env", "node_modules/x/.env", ".hidden/.env", "a/other", "secrets/k", "secrets/d/k2", "real/target")
	require.NoError(t, os.Symlink("../../real/target", filepath.Join(dir, "secrets/d/link")))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "dirlink")))
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	for _, c := range []struct{ entries, want, missing []string }{
		{[]string{"**/.env"}, []string{".env", ".hidden/.env", "a/.env", "node_modules/x/.env"}, nil},
		// A directory that matches covers what is in it, but not where its links lead.
		{[]string{"secrets/**"}, []string{"real/target", "secrets/d", "secrets/k"}, nil},
		{[]string{"secrets"}, []string{"secrets"}, nil},
		{[]string{"**/target"}, []string{"real/target"}, nil},
		{[]string{"dirlink"}, []string{"real"}, nil},
		{[]string{"dirlink/*"}, []string{"real/target"}, nil},
		{[]string{"*.pem", "nope", "no/where/**", "loop", "loop/x"}, nil, []string{"loop", "loop/x", "nope", "no/where/**", "*.pem"}},
	} {
		x, err := Expand(entriesFor(dir, c.entries...), DefaultLimits)
		require.NoError(t, err, c.entries)
		require.Equal(t, c.want, found(x, dir), "%v", c.entries)
		var missing []string
		for _, m := range x.Missing {
			missing = append(missing, strings.TrimPrefix(m, dir+"/"))
		}
		require.ElementsMatch(t, c.missing, missing, "%v", c.entries)
	}
}

func TestExpandLimits(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for i := range 5 {
		fill(t, dir, strconv.Itoa(i)+".x", "big/"+strconv.Itoa(i))
	}
	all := Limits{Depth: 64, Matches: 100, Entries: 100}
	with := func(change func(*Limits)) Limits { l := all; change(&l); return l }
	_, err = Expand(entriesFor(dir, "*.x"), with(func(l *Limits) { l.Matches = 5 }))
	require.NoError(t, err)
	_, err = Expand(entriesFor(dir, "*.x"), with(func(l *Limits) { l.Matches = 4 }))
	require.ErrorContains(t, err, "more than 4 paths match")
	// The root, six entries in it, five in big.
	_, err = Expand(entriesFor(dir, "**/*.x"), with(func(l *Limits) { l.Entries = 12 }))
	require.NoError(t, err)
	_, err = Expand(entriesFor(dir, "**/*.x"), with(func(l *Limits) { l.Entries = 11 }))
	require.ErrorContains(t, err, "more than 11 entries to search at "+dir)
	_, err = Expand(entriesFor(dir, "*.x"), with(func(l *Limits) { l.Entries = 7 }))
	require.NoError(t, err, "big cannot hold a match, so it is not entered")
	_, err = Expand(entriesFor(dir, "big/*", "*.x"), with(func(l *Limits) { l.Entries = 12 }))
	require.ErrorContains(t, err, "more than 12 entries", "the limit is one for all roots")
	deep := dir + strings.Repeat("/d", 4)
	require.NoError(t, os.MkdirAll(deep, 0o755))
	fill(t, deep, "f.x")
	_, err = Expand(entriesFor(dir, "**/*.x"), with(func(l *Limits) { l.Depth = 5 }))
	require.NoError(t, err)
	_, err = Expand(entriesFor(dir, "**/*.x"), with(func(l *Limits) { l.Depth = 4 }))
	require.ErrorContains(t, err, "is 4 directories deep")
}
