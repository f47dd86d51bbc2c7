package testkit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ordinaryUID is the user that tests are run as again where they start as root.
const ordinaryUID = 65534

// AsOrdinaryUser runs the tests of the calling package that match run once more
// as an ordinary user. It skips where they run as one already.
func AsOrdinaryUser(t *testing.T, run string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: these tests already run as an ordinary user")
	}
	dir := Dir(t)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	tests := filepath.Join(dir, "tests")
	syscall.ForkLock.RLock()
	err = os.WriteFile(tests, self, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, tests, "-test.v", "-test.run", run)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME=/nonexistent", "TMPDIR=/tmp",
		child.variable+"="+Child(t), bare.variable+"="+BareChild(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUID, Gid: ordinaryUID}}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "SKIP") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("as uid %d: %v\n%s", ordinaryUID, err, out)
	}
}
