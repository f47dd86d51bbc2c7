package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestTopmost(t *testing.T) {
	require.Equal(t, []string{"/a", "/ab", "/b/c"}, topmost([]string{"/b/c", "/a/x/y", "/ab", "/a", "/a/x", "/b/c/d"}))
	require.Equal(t, []string{"/"}, topmost([]string{"/b", "/", "/a"}))
	require.Empty(t, topmost(nil))
}

func TestPins(t *testing.T) {
	for name, c := range map[string]struct{ outermost, hidden, want []string }{
		"outside":          {[]string{"/w"}, []string{"/s/t"}, nil},
		"directly below":   {[]string{"/w"}, []string{"/w/s"}, nil},
		"ancestors":        {[]string{"/w"}, []string{"/w/a/b/s"}, []string{"/w/a", "/w/a/b"}},
		"shared ancestors": {[]string{"/w"}, []string{"/w/a/s", "/w/a/b/s"}, []string{"/w/a", "/w/a/b"}},
		"the root":         {[]string{"/"}, []string{"/a/b/s"}, []string{"/a", "/a/b"}},
		"a like name":      {[]string{"/w"}, []string{"/ww/a/s"}, nil},
		"two roots":        {[]string{"/v", "/w"}, []string{"/v/a/s", "/w/b/s"}, []string{"/v/a", "/w/b"}},
	} {
		require.Equal(t, c.want, pins(c.outermost, c.hidden), name)
	}
}

func TestCheckWorkspace(t *testing.T) {
	hidden := []string{"/home/u/.local/state/hayward"}
	for _, refused := range []string{"/", "/home", "/home/u", "/home/u/.local", "/home/u/.local/state", hidden[0]} {
		e := checkWorkspace(refused, "/home/u", hidden)
		require.NotNil(t, e, refused)
		require.Equal(t, events.CodeWorkspaceRefused, e.Code)
		require.Contains(t, e.Remedy, "--add-dir "+refused)
	}
	for _, fine := range []string{"/home/u/project", "/home/user2", "/srv", "/home/u/.local/state/other"} {
		require.Nil(t, checkWorkspace(fine, "/home/u", hidden), fine)
	}
	require.Nil(t, checkWorkspace("/home/u", "", nil), "without a home there is none to protect")
}

func TestParseProfile(t *testing.T) {
	for name, want := range map[string]string{
		"": Workspace, "workspace": Workspace, "Workspace": Workspace, "WORKSPACE": Workspace,
		"devbox": Devbox, "read-only": ReadOnly, "read_only": ReadOnly, "ReadOnly": ReadOnly, "READ_ONLY": ReadOnly,
		"strict": Strict, "off": Off, "Off": Off, "none": Off, "NONE": Off,
	} {
		p, e := ParseProfile(name)
		require.Nil(t, e, name)
		require.Equal(t, want, p.Name(), name)
		require.Equal(t, want != Off, p.Enforced(), name)
	}
	for _, name := range []string{" strict", "strict ", "work-space", "of", "offf", "workspace\n"} {
		_, e := ParseProfile(name)
		require.NotNil(t, e, name)
		require.Equal(t, events.CodeUnknownProfile, e.Code)
		require.Contains(t, e.Details["known"], "read-only")
	}
	require.False(t, Profile{}.Enforced())
}
