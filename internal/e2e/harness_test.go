package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/testkit"
)

// ordinaryUID is nobody's uid: it owns what a test gives it and nothing else.
const ordinaryUID = 64321

// deadline bounds every command of these tests. It is no measure of speed.
const deadline = 90 * time.Second

func TestMain(m *testing.M) { testkit.LeakCheck(m) }

// user is one person with a home, a workspace and a coordinator of their own.
type user struct {
	t    *testing.T
	bin  string
	uid  int
	home string
	work string
	env  []string
}

// homeRoot is where homes are made. It should lie outside /tmp and /var/tmp,
// which every sandbox may write; only then can a test see that the home is not.
func homeRoot() string {
	if os.Getuid() == 0 {
		return "/opt"
	}
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	return os.TempDir()
}

// asUsers runs f as root (if the tests do) and as an ordinary user.
func asUsers(t *testing.T, f func(t *testing.T, u *user)) {
	if os.Getuid() != 0 {
		t.Run("user", func(t *testing.T) { f(t, newUser(t, os.Getuid())) })
		return
	}
	t.Run("root", func(t *testing.T) { f(t, newUser(t, 0)) })
	t.Run("user", func(t *testing.T) { f(t, newUser(t, ordinaryUID)) })
}

func newUser(t *testing.T, uid int) *user {
	t.Helper()
	bin := testkit.Program(t)
	// A short path that another uid can reach: t.TempDir is below a 0700 directory.
	home, err := os.MkdirTemp(homeRoot(), "hw-")
	require.NoError(t, err)
	u := &user{t: t, bin: bin, uid: uid, home: home, work: filepath.Join(home, "work")}
	require.NoError(t, os.Mkdir(u.work, 0o700))
	if uid != os.Getuid() {
		require.NoError(t, os.Chown(home, uid, uid))
		require.NoError(t, os.Chown(u.work, uid, uid))
	}
	u.env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8",
		"HAYWARD_STATE_DIR=" + filepath.Join(home, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
	}
	t.Cleanup(u.leave)
	return u
}

// leave ends the user's coordinator and proves that nothing of the user is left.
func (u *user) leave() {
	if r := u.run("shutdown", "--kill"); r.code != 0 {
		u.t.Errorf("shutdown: exit %d\n%s", r.code, r.stderr)
	}
	left := u.eventually(func() bool { return len(u.processes()) == 0 })
	if !left {
		for _, p := range u.processes() {
			u.t.Errorf("left behind: %s", p)
		}
	}
	if u.t.Failed() {
		if log, err := os.ReadFile(filepath.Join(u.home, "state", "hayward.log")); err == nil {
			u.t.Logf("the daemon's log:\n%s", log)
		}
	}
	require.NoError(u.t, os.RemoveAll(u.home))
}

// eventually waits for a condition on the outside world that announces nothing.
func (u *user) eventually(cond func() bool) bool {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if cond() {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return cond()
}

// processes lists what runs with the user's home in its environment, in its
// command line, as its directory or as its program, zombies left out.
func (u *user) processes() []string {
	var found []string
	procs, err := os.ReadDir("/proc")
	require.NoError(u.t, err)
	for _, p := range procs {
		if pid, err := strconv.Atoi(p.Name()); err != nil || pid == os.Getpid() {
			continue
		}
		stat, err := os.ReadFile("/proc/" + p.Name() + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		env, _ := os.ReadFile("/proc/" + p.Name() + "/environ") // gone or not ours: not found
		cmd, _ := os.ReadFile("/proc/" + p.Name() + "/cmdline")
		cwd, _ := os.Readlink("/proc/" + p.Name() + "/cwd")
		exe, _ := os.Readlink("/proc/" + p.Name() + "/exe")
		if bytes.Contains(env, []byte(u.home)) || bytes.Contains(cmd, []byte(u.home)) || strings.HasPrefix(cwd, u.home) || strings.HasPrefix(exe, u.home) {
			found = append(found, p.Name()+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return found
}

// result is what a command of the user printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

func (u *user) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, u.bin, args...)
	cmd.Dir = u.work
	cmd.Env = u.env
	if u.uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid)}}
	}
	return cmd
}

// sessionOf makes a process leader of a session with a terminal of its own.
func sessionOf(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Setsid, attr.Setctty = true, true
	return attr
}

func (u *user) run(args ...string) result { return u.runWith("", args...) }

// runWith runs hayward with something on stdin.
func (u *user) runWith(stdin string, args ...string) result {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	cmd := u.command(ctx, args...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	return finish(u.t, cmd)
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	r := result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	if r.code < 0 {
		t.Fatalf("%v: %v\nstdout: %s\nstderr: %s", cmd.Args, cmd.ProcessState, r.stdout, r.stderr)
	}
	return r
}

// object decodes the one JSON object that a command printed.
func (r result) object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	require.NoError(t, dec.Decode(&o), "stdout: %s\nstderr: %s", r.stdout, r.stderr)
	require.False(t, dec.More(), "more than one object: %s", r.stdout)
	return o
}

// list returns a member of an object that is a list of objects.
func list(t *testing.T, o map[string]any, member string) []map[string]any {
	t.Helper()
	items, ok := o[member].([]any)
	require.True(t, ok, "%s in %v", member, o)
	var out []map[string]any
	for _, i := range items {
		out = append(out, i.(map[string]any))
	}
	return out
}

// detach spawns in the background and returns the id.
func (u *user) detach(args ...string) string {
	u.t.Helper()
	r := u.run(append([]string{"spawn", "--detach"}, args...)...)
	require.Zero(u.t, r.code, r.stderr)
	id := strings.TrimSpace(r.stdout)
	require.Len(u.t, id, 36, r.stdout)
	return id
}
