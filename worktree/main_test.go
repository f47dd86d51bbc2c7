package worktree

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hayward-dev/hayward/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testDeadline bounds whatever a test waits for.
const testDeadline = 60 * time.Second

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	t.Cleanup(cancel)
	return ctx
}

// user is a repository as a user has it, and git as they run it.
type user struct {
	t   testing.TB
	dir string
}

func newUser(t testing.TB, args ...string) *user {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs the program git")
	}
	u := &user{t, filepath.Join(t.TempDir(), "project")}
	require.NoError(t, os.Mkdir(u.dir, 0o755))
	u.git(append([]string{"init", "-q", "-b", "main"}, args...)...)
	u.git("config", "user.name", "A User")
	u.git("config", "user.email", "user@example.com")
	return u
}

// git runs git in the repository and returns what it writes.
func (u *user) git(args ...string) string {
	u.t.Helper()
	out, err := u.try(args...)
	require.NoError(u.t, err, "git %v: %s", args, out)
	return out
}

func (u *user) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = u.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1"}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String() + said.String(), err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// write makes a file with the content, and the directories above it.
func (u *user) write(name, content string) {
	u.t.Helper()
	path := filepath.Join(u.dir, name)
	require.NoError(u.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(u.t, os.WriteFile(path, []byte(content), 0o644))
}

func (u *user) commit(message string) string {
	u.t.Helper()
	u.git("add", "-A")
	u.git("commit", "-q", "--allow-empty", "-m", message)
	return u.git("rev-parse", "HEAD")
}

func requireNo(t testing.TB, err *events.Error) {
	t.Helper()
	if err != nil {
		require.NoError(t, err)
	}
}
