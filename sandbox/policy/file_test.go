package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example of the documentation.
func TestExample(t *testing.T) {
	var s Set
	require.NoError(t, s.Add("sandbox.toml", `
[profile.my-strict]
extends = "Workspace"
deny = ["**/.env", "**/secrets/**"]
restrict_network = true
`, false))
	p, ok := s.Find("my-strict")
	require.True(t, ok)
	require.Equal(t, "my-strict", p.Name())
	require.Equal(t, Workspace, p.Base())
	require.True(t, p.Enforced())
	c := Resolve(p, place)
	require.True(t, c.RestrictNetwork)
	require.Equal(t, "profile my-strict (sandbox.toml:5)", c.NetworkOrigin)
	require.Equal(t, []string{"/w/**/.env", "/w/**/secrets/**"}, paths(c.Deny))
	require.Equal(t, "profile my-strict (sandbox.toml:4)", c.Deny[0].Origin)
	require.Equal(t, paths(Resolve(Profile{name: Workspace}, place).ReadWrite), paths(c.ReadWrite))
	off, ok := s.Find("Off")
	require.True(t, ok)
	require.False(t, off.Enforced())
}

func TestCustomExtends(t *testing.T) {
	var s Set
	require.NoError(t, s.Add("f", `
[profiles.a]
read_only = ["/opt/tool", "/opt/**/*", "rel", "~/bin"]
read_write = ["/srv/x/**", "out/*.log"]
[profiles.b]
extends = "Strict"
restrict_network = false
allow_credentials = ["ssh"]
allow_write = [".vscode"]
sockets = ["/run/docker.sock"]
[profiles.c]
extends = "read_only"
`, false))
	find := func(name string) Capabilities {
		p, ok := s.Find(name)
		require.True(t, ok, name)
		return Resolve(p, place)
	}
	a := find("a")
	require.Equal(t, []string{"/opt/tool", "/opt", "/w/rel", "/home/u/bin"}, paths(a.ReadOnly))
	require.Equal(t, []string{"/srv/x", "/w/out/*.log"}, paths(a.ReadWrite[len(a.ReadWrite)-2:]))
	require.False(t, a.RestrictNetwork)
	b := find("b")
	require.False(t, b.RestrictNetwork, "the custom value replaces that of the base, either way")
	require.True(t, b.PrivateTemp)
	require.Equal(t, []string{"ssh"}, paths(b.AllowCredentials))
	require.Equal(t, []string{"/w/.vscode"}, paths(b.AllowWrite))
	require.Equal(t, []string{"/run/docker.sock"}, paths(b.Sockets))
	c := find("c")
	require.True(t, c.RestrictNetwork)
	require.Equal(t, "profile read-only", c.NetworkOrigin)
	_, ok := s.Find("A")
	require.False(t, ok, "custom names match exactly")
	require.Equal(t, []string{Workspace, Devbox, ReadOnly, Strict, Off, "a", "b", "c"}, s.Known())
}

func TestProjectOnlyAdds(t *testing.T) {
	var s Set
	global := "[profiles.a]\ndeny = [\"x\"]\n[profiles.same]\n"
	require.NoError(t, s.Add("global", global, false))
	require.NoError(t, s.Add("project", "[profiles.same]\n[profiles.new]\n[profiles.a]\ndeny = []\n", true))
	require.Equal(t, []Conflict{{"a", "global", "project"}}, s.Conflicts)
	p, _ := s.Find("a")
	require.Len(t, p.Custom().Deny, 1)
	require.False(t, p.Custom().Project)
	p, ok := s.Find("new")
	require.True(t, ok)
	require.True(t, p.Custom().Project)
}

// TestFaults holds the line of each fault.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"[profiles.a]\nrestrict_netwrok = true":        `f:2: unknown key "restrict_netwrok" in profile "a"`,
		"[profiles.a]\n\nread-write = []":              `f:3: unknown key "read-write"`,
		"x = 1":                                        `f:1: unknown key "x"`,
		"[profiles.a]\nextends = \"off\"":              `f:2: profile off cannot be extended`,
		"[profiles.a]\nextends = \"b\"\n[profiles.b]":  `f:2: extends names "b": only workspace, devbox, read-only, strict`,
		"[profiles.a]\nextends = 1":                    `f:2: extends is not a string`,
		"[profiles.a]\nextends = \"\"":                 `f:2: extends names ""`,
		"[profiles.a]\ndeny = \".env\"":                `f:2: deny is not a list of strings`,
		"[profiles.a]\ndeny = [\n\"ok\",\n\"a{b}*\"]":  `f:4: an entry of deny "a{b}*" holds "{"`,
		"[profiles.a]\ndeny = [\n1]":                   `f:3: deny holds something that is not a string`,
		"[profiles.a]\nread_only = [\" /x\"]":          `begins or ends with a blank`,
		"[profiles.a]\nread_only = [\"\"]":             `is empty`,
		"[profiles.a]\nread_only = [\"a/../*.x\"]":     `has the segment ".."`,
		"[profiles.a]\nrestrict_network = \"yes\"":     `f:2: restrict_network is neither true nor false`,
		"[profiles.Strict]":                            `f:1: the profile name "Strict" is that of a built-in profile`,
		"[profiles.\"a b\"]":                           `f:1: the profile name "a b" holds more than`,
		"[profiles.a-b]\n[profiles.A_b]":               `f:2: profile "A_b" differs from "a-b" in nothing but its spelling`,
		"[profiles.a]\nallow_credentials = [\"all\"]":  `f:2: allow_credentials holds "all"`,
		"[profiles.a]\nsockets = [\"/run/*\"]":         `f:2: sockets holds the pattern`,
		"[profiles]\na = 1":                            `f:2: profile "a" is not a table`,
		"profiles = 1":                                 `f:1: profiles is not a table`,
		"[profiles.a\n":                                `f:2: `,
		"[profiles.a]\ndeny = [\"x\"]\ndeny = [\"y\"]": `f:3: `,
		"\xff":                         `f:1: the file is not UTF-8`,
		strings.Repeat("#", MaxFile+1): `f:1: the file is over`,
		"[profile.a]\nextends = \"strict\"\n[profiles.a]\ndeny=[]": `f:3: profile "a" differs from "a"`,
	} {
		var s Set
		err := s.Add("f", text, false)
		require.ErrorContains(t, err, want, text)
		require.Equal(t, Names, s.Known(), "nothing is taken of a file with a fault")
	}
	var s Set
	require.ErrorContains(t, s.Add("p", "[profiles.a]\nsockets = [\"/x\"]\n", true), "in the global sandbox.toml only")
	err := s.Add("f", "[profiles.a]\nx = 1\ny = 2\n", false)
	require.ErrorContains(t, err, "f:2:")
	require.ErrorContains(t, err, "f:3:", "every fault is named at once")
}

// What other dialects read as alternatives or an escape is no path to deny.
func TestDenyRefusesBraces(t *testing.T) {
	for text, character := range map[string]string{
		`{.env,secrets}`: `"{"`, `a}`: `"}"`, `~/a\ b`: `"\\"`, `/x/{a,b}/**`: `"{"`,
	} {
		want := fmt.Sprintf("%q holds %s, which patterns do not have: write one entry for each name; "+
			"one that really holds it is covered by naming its directory", text, character)
		var s Set
		require.EqualError(t, s.Add("f", "[profiles.a]\ndeny = [\n'ok',\n'"+text+"']", false), "f:4: an entry of deny "+want)
		require.EqualError(t, CheckDeny(text), want)
	}
	require.NoError(t, CheckDeny("a,b (c)/.env"))
	var s Set
	require.NoError(t, s.Add("f", `[profiles.a]
read_only = ["/opt/{x}"]`, false), "a path that is opened is taken as it stands")
}

func FuzzAdd(f *testing.F) {
	f.Add("[profile.my-strict]\nextends = \"Workspace\"\ndeny = [\"**/.env\"]\n")
	f.Fuzz(func(t *testing.T, text string) {
		var s Set
		if s.Add("f", text, false) != nil {
			require.Empty(t, s.Customs())
			return
		}
		for _, c := range s.Customs() {
			p, ok := s.Find(c.Name)
			require.True(t, ok)
			for _, e := range Resolve(p, place).Deny {
				if e.Pattern {
					_, err := Compile(e.Path, e.Below)
					require.NoError(t, err)
				}
			}
		}
	})
}
