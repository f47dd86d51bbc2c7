package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tempDir is where a subagent has its TMPDIR.
func (u *user) tempDir(id string) string {
	return filepath.Join("/tmp", fmt.Sprintf("hayward-%d", u.uid), id)
}

// Every built-in profile runs a command, however its name is written, and the
// report says so.
func TestSandboxProfiles(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		require.NoError(t, os.WriteFile(filepath.Join(u.home, "word"), []byte("a known word"), 0o644))
		for name, c := range map[string]struct {
			canonical    string
			reads, opens bool // a file of the home; writes the workspace
			network      string
		}{
			"Workspace": {"workspace", true, true, "open"},
			"devbox":    {"devbox", true, true, "open"},
			"Read_Only": {"read-only", true, false, "none"},
			"STRICT":    {"strict", false, true, "none"},
			"Off":       {"off", true, true, "open"},
			"none":      {"off", true, true, "open"},
		} {
			r := u.run("spawn", "--json", "--sandbox", name, "--", "sh", "-c",
				`echo x > $TMPDIR/x || exit 9; cat ../word >/dev/null 2>&1 && echo reads; (echo x > file) 2>/dev/null && echo opens; echo $HAYWARD_SANDBOX_PROFILE`)
			require.Zero(t, r.code, r.stdout+r.stderr)
			o := r.object(t)
			out := o["output"].(string)
			require.Equal(t, c.reads, strings.Contains(out, "reads"), "%s: %s", name, out)
			require.Equal(t, c.opens, strings.Contains(out, "opens"), "%s: %s", name, out)
			require.Contains(t, out, c.canonical)
			sandbox := o["sandbox"].(map[string]any)
			require.Equal(t, c.canonical, sandbox["profile"])
			require.Equal(t, c.canonical != "off", sandbox["active"])
			require.Equal(t, c.network, sandbox["network"])
			require.NotContains(t, fmt.Sprint(sandbox["gaps"]), "temporary_files_shared")
		}
	})
}

// Two subagents of one user do not reach each other's temporary files.
func TestSandboxTemporaryFiles(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		ready := filepath.Join(u.work, "ready")
		id := u.detach("--", "sh", "-c", "echo secret > $TMPDIR/file; echo $TMPDIR; touch ready; exec sleep 1000")
		require.True(t, u.eventually(func() bool { _, err := os.Stat(ready); return err == nil }))
		file := filepath.Join(u.tempDir(id), "file")
		require.FileExists(t, file)
		r := u.run("spawn", "--", "sh", "-c", fmt.Sprintf(
			"cat %[1]s; echo x > %[1]s; rm %[1]s; mv %[2]s %[2]s.away; ls %[2]s; test $(ls %[2]s) = $(basename $TMPDIR)", file, filepath.Dir(filepath.Dir(file))))
		require.Zero(t, r.code, r.stdout+r.stderr)
		require.NotContains(t, r.stdout, "secret")
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "secret\n", string(b))
		require.Zero(t, u.run("cancel", id).code)
	})
}
