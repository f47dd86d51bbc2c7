package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/internal/daemon"
)

// serviceBench runs verbs of service for a user with a home of its own.
type serviceBench struct {
	t    *testing.T
	home string
	unit string
}

func newServiceBench(t *testing.T) *serviceBench {
	home := t.TempDir()
	return &serviceBench{t, home, filepath.Join(home, ".config/systemd/user/hayward.service")}
}

func (b *serviceBench) run(args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdin: os.Stdin, stdout: &out, stderr: &errs, environ: []string{"HOME=" + b.home}}
	code = a.run(b.t.Context(), append([]string{"service"}, args...))
	return code, out.String(), errs.String()
}

func TestServiceOfAUser(t *testing.T) {
	b := newServiceBench(t)
	says := func(want string, args ...string) string {
		t.Helper()
		code, stdout, stderr := b.run(append(args, "--user")...)
		require.Zero(t, code, stderr)
		require.Equal(t, b.unit+": "+want+"\n", stdout)
		return stderr
	}
	says("absent", "status")
	says("would be written", "install", "--dry-run")
	require.NoFileExists(t, b.unit)
	require.Contains(t, says("written", "install"), "systemctl --user enable --now hayward\n")
	says("installed", "status")
	says("installed", "install")
	written, err := os.ReadFile(b.unit)
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	require.Contains(t, string(written), "\nExecStart="+program+" serve --handover\n")

	// One that another version of this program wrote is its own; one that a person
	// changed is not.
	require.NoError(t, os.WriteFile(b.unit, []byte(signed("[Service]\nExecStart=/old/hayward serve\n")), 0o644))
	says("outdated", "status")
	says("written", "install")
	changed := append(written, "Nice=5\n"...)
	require.NoError(t, os.WriteFile(b.unit, changed, 0o644))
	says("changed", "status")
	for _, verb := range []string{"install", "uninstall"} {
		code, _, stderr := b.run(verb, "--user")
		require.Equal(t, exitOwn, code)
		require.Contains(t, stderr, "was changed")
		now, err := os.ReadFile(b.unit)
		require.NoError(t, err)
		require.Equal(t, changed, now, "it is left alone")
	}
	says("written", "install", "--force")

	wants := filepath.Join(filepath.Dir(b.unit), "default.target.wants")
	require.NoError(t, os.Mkdir(wants, 0o755))
	require.NoError(t, os.Symlink(b.unit, filepath.Join(wants, "hayward.service")))
	says("would be removed", "uninstall", "--dry-run")
	require.FileExists(t, b.unit)
	says("removed", "uninstall")
	require.NoFileExists(t, b.unit)
	entries, err := os.ReadDir(wants)
	require.NoError(t, err)
	require.Empty(t, entries, "it is not enabled any more")
	says("absent", "uninstall")
	entries, err = os.ReadDir(filepath.Dir(b.unit))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")

	code, _, stderr := b.run("install", "--user", "--system")
	require.Equal(t, exitUsage, code, stderr)
}

func TestServiceOfTheSystem(t *testing.T) {
	b := newServiceBench(t)
	before := systemUnits
	systemUnits = t.TempDir()
	defer func() { systemUnits = before }()
	code, stdout, stderr := b.run("install", "--system", "--json")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"state":"installed"`)
	require.Contains(t, stdout, "useradd --system")
	require.FileExists(t, filepath.Join(systemUnits, "hayward.service"))
	code, _, _ = b.run("uninstall", "--system")
	require.Zero(t, code)
	require.NoFileExists(t, filepath.Join(systemUnits, "hayward.service"))
}

// systemd is told by datagrams on the socket that it names.
func TestSystemdIsTold(t *testing.T) {
	dir, err := os.MkdirTemp("", "n")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	for _, name := range []string{filepath.Join(dir, "notify"), "@hayward-test-" + filepath.Base(dir)} {
		systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		require.NoError(t, err)
		require.NoError(t, systemd.SetReadDeadline(time.Now().Add(testDeadline)))
		said := func() string {
			b := make([]byte, 1024)
			n, err := systemd.Read(b)
			require.NoError(t, err)
			return string(b[:n])
		}
		t.Setenv("NOTIFY_SOCKET", name)
		t.Setenv("WATCHDOG_USEC", "30000000")
		ready := 0
		o := daemon.Options{Ready: func() { ready++ }, Log: zap.NewNop()}
		tellManager(&o)
		o.Ready()
		require.Equal(t, 1, ready)
		require.Equal(t, "READY=1\nSTATUS=serving", said())
		require.Equal(t, 30*time.Second, o.Watchdog)
		o.Alive("3 active")
		require.Equal(t, "WATCHDOG=1\nSTATUS=3 active", said())
		o.Stopping()
		require.Equal(t, "STOPPING=1\nSTATUS=leaving", said())
		require.NoError(t, systemd.Close())
	}
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	o := daemon.Options{Ready: func() {}, Log: zap.NewNop()}
	tellManager(&o)
	require.Zero(t, o.Watchdog)
	o.Ready() // nobody is told
}
