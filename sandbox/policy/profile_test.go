package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuiltIn(t *testing.T) {
	for name, want := range map[string]string{
		"": Workspace, "workspace": Workspace, "Workspace": Workspace, "DEVBOX": Devbox, "read-only": ReadOnly,
		"readonly": ReadOnly, "read_only": ReadOnly, "Read-Only": ReadOnly, "ReadOnly": ReadOnly,
		"strict": Strict, "STRICT": Strict, "off": Off, "Off": Off, "none": Off, "NONE": Off,
		" strict": "", "strict ": "", "work space": "", "stricht": "", "offf": "",
	} {
		p, ok := BuiltIn(name)
		require.Equal(t, want != "", ok, name)
		if ok {
			require.Equal(t, want, p.Name(), name)
			require.Equal(t, want, p.Base())
			require.Equal(t, want != Off, p.Enforced())
		}
	}
}

var place = Place{
	Workspace: "/w", Home: "/home/u", TempDir: "/tmp/h/1", CacheRoot: "/home/u/.cache/h", AddDirs: []string{"/added"},
	Top:  []string{"/bin", "/boot", "/data", "/dev", "/etc", "/home", "/proc", "/sys", "/tmp"},
	Path: []string{"/usr/bin", "/home/u/.local/bin", "relative", "", "/", "/home", "/home/u"},
}

func paths(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.String())
	}
	return out
}

// TestResolve is the table of the built-in profiles.
func TestResolve(t *testing.T) {
	shared := []string{"/tmp", "/var/tmp", "/dev/shm"}
	for name, want := range map[string]struct {
		defaultRead, network, private, protect, closed, tracing bool
		write                                                   []string
	}{
		Workspace: {true, false, false, true, false, true, append([]string{"/w", "/tmp/h/1", "/home/u/.cache/h"}, append(shared, "/added")...)},
		Devbox:    {true, false, false, false, false, true, append([]string{"/w", "/tmp/h/1", "/home/u/.cache/h"}, append(shared, "/bin", "/etc", "/home", "/tmp", "/added")...)},
		ReadOnly:  {true, true, false, true, true, true, append([]string{"/tmp/h/1"}, append(shared, "/added")...)},
		Strict:    {false, true, true, true, false, false, []string{"/w", "/tmp/h/1", "/home/u/.cache/h", "/added"}},
	} {
		p, _ := BuiltIn(name)
		c := Resolve(p, place)
		require.Equal(t, want.defaultRead, c.DefaultRead, name)
		require.Equal(t, want.network, c.RestrictNetwork, name)
		require.Equal(t, want.private, c.PrivateTemp, name)
		require.Equal(t, want.protect, c.Protect, name)
		require.Equal(t, want.closed, c.ClosedWorkspace, name)
		require.Equal(t, want.tracing, c.Tracing, name)
		require.Equal(t, want.write, paths(c.ReadWrite), name)
		require.Empty(t, c.Deny, name)
		require.Equal(t, devices, paths(c.Devices), name)
		if name == Strict {
			require.Equal(t, append(append([]string{}, strictRead...), "/usr/bin", "/home/u/.local/bin"), paths(c.ReadOnly))
		} else {
			require.Empty(t, c.ReadOnly, name)
		}
	}
	off, _ := BuiltIn(Off)
	require.Empty(t, Resolve(off, place).ReadWrite)
}

func TestCredentialsAndRunLater(t *testing.T) {
	all := paths(Credentials([]string{"/home/u", "/root"}, nil))
	require.Subset(t, all, []string{"/home/u/.ssh", "/root/.ssh", "/home/u/.aws", "/etc/shadow"})
	for _, name := range []string{
		".pgpass", ".my.cnf", ".terraformrc", ".terraform.d/credentials.tfrc.json", ".s3cfg", ".config/rclone/rclone.conf",
		".config/sops/age", ".m2/settings.xml", ".gradle/gradle.properties", ".composer/auth.json", ".config/composer/auth.json",
		".gem/credentials", ".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history",
	} {
		require.Contains(t, all, "/home/u/"+name)
	}
	some := paths(Credentials([]string{"/home/u"}, []Entry{{Path: "ssh"}}))
	require.NotContains(t, some, "/home/u/.ssh")
	require.Contains(t, some, "/home/u/.aws")
	require.NotContains(t, paths(Credentials([]string{"", "/"}, nil)), "/.ssh")
	for _, c := range credentials {
		require.NotEmpty(t, c.paths, c.kind)
	}
	later := RunLater([]string{"/w"}, []Entry{{Path: "/w/.vscode"}, {Path: "/w/.git/config"}})
	require.Contains(t, later, "/w/.git/hooks")
	require.NotContains(t, later, "/w/.vscode")
	require.NotContains(t, later, "/w/.git/config")
}

// No built-in profile denies what it opens itself.
func TestBuiltInsDoNotConflict(t *testing.T) {
	for _, name := range Names[:4] {
		p, _ := BuiltIn(name)
		c := Resolve(p, place)
		for _, d := range Credentials([]string{place.Home}, nil) {
			for _, w := range c.ReadWrite {
				require.False(t, Within(w.Path, d.Path), "%s opens %s, which %s denies", name, w.Path, d.Origin)
			}
		}
	}
}
