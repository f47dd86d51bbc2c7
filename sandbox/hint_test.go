package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestHint(t *testing.T) {
	workspace := events.SandboxReport{
		Profile: Workspace, Active: true, Network: events.NetworkOpen,
		Writable: []string{"/w", "/tmp"}, Denied: []string{"/home/u/.ssh"}, Closed: []string{"/w/.git/hooks"},
	}
	strict := workspace
	strict.Profile, strict.Network, strict.Readable = Strict, events.NetworkNone, []string{"/usr", "/etc"}
	inactive := workspace
	inactive.Active = false
	for _, c := range []struct {
		report          events.SandboxReport
		stderr          string
		path, operation string
	}{
		{workspace, "touch: cannot touch '/etc/x': Read-only file system\n", "/etc/x", "write"},
		{workspace, "cat: /home/u/.ssh/id: Permission denied\n", "/home/u/.ssh/id", "read"},
		{workspace, "sh: 1: cannot create /w/.git/hooks/pre-commit: Permission denied\n", "/w/.git/hooks/pre-commit", "write"},
		{workspace, "cat: /w/file: Permission denied\n", "", ""},
		{workspace, "exit status 1\n", "", ""},
		{workspace, "cat: secrets/a: Permission denied\n", "", ""},
		{workspace, "mkdir /nope: no such file or directory\n", "", ""},
		{strict, "cat: /root/word: Permission denied\n", "/root/word", "read"},
		{strict, "open /usr/lib/x: permission denied\n", "/usr/lib/x", "write"},
		{strict, "dial tcp: socket: permission denied\n", "", "network"},
		{strict, "curl: (6) Could not resolve host: example.org\n", "", "network"},
		{workspace, "curl: (6) Could not resolve host: example.org\n", "", ""},
		{inactive, "touch: cannot touch '/etc/x': Read-only file system\n", "", ""},
	} {
		hint := Hint(&c.report, c.stderr)
		if c.operation == "" {
			require.Nil(t, hint, c.stderr)
			continue
		}
		require.NotNil(t, hint, c.stderr)
		require.Equal(t, c.path, hint.Path, c.stderr)
		require.Equal(t, c.operation, hint.Operation, c.stderr)
		require.Equal(t, c.report.Profile, hint.Profile)
		require.NotEmpty(t, hint.Remedy)
	}
	require.Nil(t, Hint(nil, "permission denied"))
	require.NotContains(t, Hint(&workspace, "touch: /new: Read-only file system").Remedy, "--add-dir")
}
