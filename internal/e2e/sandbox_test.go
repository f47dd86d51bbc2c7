package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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

// The supervisor's threads are woken loosely; what it runs is not.
func TestSandboxTimerSlack(t *testing.T) {
	own, err := os.ReadFile("/proc/self/timerslack_ns")
	require.NoError(t, err)
	asUsers(t, func(t *testing.T, u *user) {
		read := []string{"--", "cat", "/proc/self/timerslack_ns"}
		for _, how := range [][]string{{"spawn"}, {"spawn", "--sandbox", "off"}, {"sandbox", "exec", "--profile", "strict"}} {
			r := u.run(append(how, read...)...)
			require.Zero(t, r.code, r.stdout+r.stderr)
			require.Equal(t, string(own), r.stdout, how)
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

// sandboxed runs a command under sandbox exec.
func (u *user) sandboxed(profile string, args ...string) result {
	return u.run(append([]string{"sandbox", "exec", "--profile", profile}, args...)...)
}

// The word of a file in another home, three listeners and a process, all from
// outside: strict reaches none of them, off all.
func TestSandboxExecStrict(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		elsewhere := u.home + "-elsewhere"
		require.NoError(t, os.Mkdir(elsewhere, 0o755))
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(elsewhere)) })
		require.NoError(t, os.WriteFile(elsewhere+"/word", []byte("xyzzy"), 0o644))
		require.NoError(t, os.WriteFile(elsewhere+"/touched", nil, 0o666))
		require.NoError(t, os.Chmod(elsewhere+"/touched", 0o666))
		tcp, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		defer tcp.Close()
		sockets := []string{"/tmp/" + filepath.Base(u.home) + ".sock", "/run/" + filepath.Base(u.home) + ".sock"}
		if os.Getuid() != 0 {
			sockets = sockets[:1] // only root makes one in /run
		}
		for _, path := range sockets {
			l, err := net.Listen("unix", path)
			require.NoError(t, err)
			defer l.Close()
			require.NoError(t, os.Chmod(path, 0o777))
		}
		sleeper := exec.Command("sleep", "1000")
		sleeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if u.uid != os.Getuid() {
			sleeper.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid)}
		}
		require.NoError(t, sleeper.Start())
		defer func() { _ = sleeper.Wait() }()
		defer func() { require.NoError(t, sleeper.Process.Kill()) }()
		python := tool("python3")
		if python == "" {
			t.Skip("needs python3")
		}
		script := `
import errno, os, socket, sys
def attempt(name, f):
    try:
        f(); print(name, "ok")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
word, touched, port, pid = sys.argv[1:5]
attempt("read", lambda: print(open(word).read()))
attempt("touch", lambda: os.utime(touched))
attempt("kill", lambda: os.kill(int(pid), 0))
attempt("workspace", lambda: open("mine", "w").close())
def tcp():
    socket.create_connection(("127.0.0.1", int(port))).close()
attempt("tcp", tcp)
for i, path in enumerate(sys.argv[5:]):
    def unix():
        s = socket.socket(socket.AF_UNIX); s.connect(path); s.close()
    attempt("unix%d" % i, unix)
`
		args := append([]string{"--", python, "-c", script, elsewhere + "/word", elsewhere + "/touched",
			strings.Split(tcp.Addr().String(), ":")[1], strconv.Itoa(sleeper.Process.Pid)}, sockets...)
		r := u.sandboxed("strict", args...)
		require.Zero(t, r.code, r.stderr)
		require.NotContains(t, r.stdout, "xyzzy")
		for _, line := range []string{"read EACCES", "touch EROFS", "kill ESRCH", "workspace ok", "tcp EACCES", "unix0 ENOENT"} {
			require.Contains(t, r.stdout, line)
		}
		require.FileExists(t, u.work+"/mine")
		if len(sockets) > 1 {
			require.Contains(t, r.stdout, "unix1 ECONNREFUSED")
		}
		r = u.sandboxed("off", args...)
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, "xyzzy")
		require.NotContains(t, r.stdout, " E")
	})
}

// What the profile denies is denied by every name, and nothing stays behind.
func TestSandboxExecDeny(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		for path, text := range map[string]string{
			u.work + "/.env": "TOKEN=1", u.work + "/other": "fine", u.work + "/sub/.env": "TOKEN=2",
			u.home + "/.ssh/id_ed25519": "KEY", u.home + "/.aws/credentials": "KEY",
		} {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		require.NoError(t, os.Symlink(".env", u.work+"/link"))
		u.own()
		before := tree(t, u.work)
		deny := func(script string) result {
			return u.sandboxed("workspace", "--deny", "**/.env", "--", "sh", "-c", script)
		}
		for _, script := range []string{
			"cat .env", "cat link", "mv .env x && cat x", "cat sub/.env", "cp .env x", "ln .env x && cat x", "mv sub s && cat s/.env; mv s sub; false",
		} {
			r := deny(script)
			require.NotZero(t, r.code, script)
			require.NotContains(t, r.stdout, "TOKEN", script)
		}
		require.Equal(t, "fine", deny("cat other").stdout)
		for _, path := range []string{u.home + "/.ssh/id_ed25519", u.home + "/.aws/credentials"} {
			r := u.sandboxed("workspace", "--", "cat", path)
			require.NotZero(t, r.code)
			require.Contains(t, r.stderr, "Permission denied")
			require.Equal(t, "KEY", u.sandboxed("off", "--", "cat", path).stdout)
		}
		r := u.run("spawn", "--json", "--deny", "**/.env", "--", "cat", "sub/.env")
		require.Equal(t, 1, r.code, r.stderr)
		require.NotContains(t, r.stdout, "TOKEN")
		require.Contains(t, r.object(t)["sandbox"].(map[string]any)["denied"], u.work+"/sub/.env")
		for _, wrong := range [][]string{{"--deny", "{a,b}"}, {"--deny", ".env", "--sandbox", "off"}} {
			r = u.run(append(append([]string{"spawn"}, wrong...), "--", "true")...)
			require.Equal(t, 2, r.code, r.stderr)
		}
		require.Equal(t, before, tree(t, u.work), "something is left behind")
	})
}

// own gives everything below the home to the user.
func (u *user) own() {
	u.t.Helper()
	require.NoError(u.t, filepath.WalkDir(u.home, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, u.uid, u.uid)
	}))
}

func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		out = append(out, path+" "+d.Type().String())
		return err
	}))
	return out
}

// The exit codes of sandbox exec, and that it needs no daemon.
func TestSandboxExecCodes(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		for want, args := range map[int][]string{
			7:   {"--", "sh", "-c", "exit 7"},
			143: {"--", "sh", "-c", "kill -TERM $$"},
			127: {"--", "no-such-program"},
			2:   {"--profile", "stricht", "--", "true"},
			126: {"--workspace", u.home, "--", "true"}, // holds the coordinator's state
		} {
			r := u.run(append([]string{"sandbox", "exec"}, args...)...)
			require.Equal(t, want, r.code, "%v: %s", args, r.stderr)
		}
		r := u.runWith("through", "sandbox", "exec", "--profile", "strict", "--", "cat")
		require.Equal(t, "through", r.stdout, r.stderr)
		require.NoFileExists(t, filepath.Join(u.home, "state", "hayward.log"), "a daemon was started")
		for _, left := range glob(t, filepath.Join(filepath.Dir(u.tempDir("x")), "exec-*")) {
			st, err := os.Stat(left)
			require.True(t, err != nil || st.ModTime().Before(time.Now().Add(-time.Minute)), "%s is left", left)
		}
	})
}

// A command that traps what asks it to end is killed at the second signal, and all
// that it started with it.
func TestSandboxExecSecondSignalKills(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		for _, c := range []struct {
			profile       string
			first, second syscall.Signal
		}{
			{"workspace", syscall.SIGINT, syscall.SIGINT},
			{"workspace", syscall.SIGTERM, syscall.SIGHUP},
			{"off", syscall.SIGINT, syscall.SIGTERM},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			cmd := u.command(ctx, "sandbox", "exec", "--profile", c.profile, "--", "sh", "-c",
				`trap 'echo trapped' INT TERM HUP; setsid sleep 618 & echo up; while :; do sleep 619; done`)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(stdout)
			require.True(t, lines.Scan())
			require.Equal(t, "up", lines.Text())
			require.True(t, u.eventually(func() bool { return u.running("sleep\x00618") == 1 && u.running("sleep\x00619") == 1 }))
			require.NoError(t, cmd.Process.Signal(c.first))
			require.True(t, lines.Scan(), "the first signal is the command's")
			require.Equal(t, "trapped", lines.Text())
			require.NoError(t, cmd.Process.Signal(c.second))
			require.False(t, lines.Scan(), lines.Text())
			require.Error(t, cmd.Wait())
			require.Equal(t, 128+int(c.second), cmd.ProcessState.ExitCode(), "%v", cmd.ProcessState)
			require.True(t, u.eventually(func() bool { return u.running("sleep\x00618")+u.running("sleep\x00619") == 0 }))
		}
	})
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return found
}

// A custom profile of sandbox.toml is listed, explained and enforced.
func TestSandboxCustomProfile(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		config := u.home + "/.config/hayward"
		require.NoError(t, os.MkdirAll(config, 0o700))
		require.NoError(t, os.MkdirAll(u.work+"/.hayward", 0o700))
		require.NoError(t, os.WriteFile(config+"/sandbox.toml", []byte("[profile.my-strict]\nextends = \"Workspace\"\ndeny = [\"**/.env\", \"**/secrets/**\"]\nrestrict_network = true\n"), 0o600))
		require.NoError(t, os.WriteFile(u.work+"/.hayward/sandbox.toml", []byte("[profiles.my-strict]\n[profiles.project]\nextends = \"strict\"\n"), 0o600))
		require.NoError(t, os.WriteFile(u.work+"/.env", []byte("TOKEN"), 0o644))
		u.own()
		r := u.run("sandbox", "list")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, "my-strict")
		require.Contains(t, r.stdout, "project")
		require.Contains(t, r.stderr, "profile my-strict: ")
		r = u.run("sandbox", "explain", "my-strict", "--json")
		require.Zero(t, r.code, r.stderr)
		o := r.object(t)
		require.Equal(t, "none", o["network"])
		require.Contains(t, o["network_from"], "sandbox.toml:4")
		require.Contains(t, r.stdout, u.work+"/.env")
		r = u.run("spawn", "--json", "--sandbox", "my-strict", "--", "cat", ".env")
		require.Equal(t, 1, r.code, r.stderr)
		o = r.object(t)
		report := o["sandbox"].(map[string]any)
		require.Equal(t, "my-strict", report["profile"])
		require.Equal(t, "workspace", report["base"])
		require.Contains(t, report["denied"], u.work+"/.env")
		require.NoError(t, os.WriteFile(config+"/sandbox.toml", []byte("[profiles.x]\n\nread-write = []\nextends = \"off\"\n"), 0o600))
		r = u.run("spawn", "--sandbox", "my-strict", "--", "true")
		require.Equal(t, 2, r.code)
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		require.Len(t, lines, 2, "each fault has a line")
		require.Contains(t, lines[0], `sandbox.toml:3: unknown key "read-write"`)
		require.Contains(t, lines[1], `sandbox.toml:4: profile off cannot be extended`)
		require.NoError(t, os.WriteFile(config+"/config.toml", []byte("[sandbox]\nprofile = \"stricht\"\n"), 0o600))
		require.NoError(t, os.Remove(config+"/sandbox.toml"))
		u.own()
		r = u.run("config", "check")
		require.Equal(t, 2, r.code)
		require.Contains(t, r.stdout, `config.toml:2: sandbox.profile: no sandbox profile is called "stricht"`)
	})
}

// What a subagent leaves in a repository for the next git command outside does
// not run: names that exist cannot be written, names that do not are moved aside.
func TestSandboxLeavesNothingForGit(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		marker := filepath.Join(u.home, "ran")
		u.git("init", "-q", "repo")
		repo := filepath.Join(u.work, "repo")
		u.git("-C", repo, "config", "include.path", "../.shared")
		require.NoError(t, os.RemoveAll(filepath.Join(repo, ".git", "hooks")))
		config := `printf '[core]\n\tfsmonitor = "touch ` + marker + `; false"\n'`
		for name, script := range map[string]string{
			"commondir":      `rm -rf evil && mkdir evil && cp -r .git/objects .git/refs evil/ && ` + config + ` > evil/config && printf '\trepositoryformatversion = 0\n' >> evil/config && echo ../evil > .git/commondir`,
			"included file":  config + ` > .shared`,
			"work tree file": config + ` > .git/config.worktree`,
		} {
			for _, verb := range [][]string{{"spawn"}, {"sandbox", "exec", "--profile", "strict"}} {
				t.Run(name+" "+verb[0], func(t *testing.T) {
					args := append(append([]string{}, verb...), "--workspace", repo, "--", "sh", "-c", "cd "+repo+" && "+script)
					cmd := u.command(t.Context(), args...)
					cmd.Dir = repo
					r := collect(cmd)
					require.NoError(t, r.err)
					require.Zero(t, r.code, r.stderr)
					require.Contains(t, r.stderr, ".hayward-", "it is said")
					u.git("-C", repo, "status")
					u.git("-C", repo, "add", "-A")
					require.NoFileExists(t, marker)
				})
			}
		}
		// Hooks cannot be made, in a repository that had no directory for them, and in
		// one further down.
		for _, dir := range []string{repo, filepath.Join(repo, "deep", "er")} {
			if dir != repo {
				u.git("init", "-q", dir)
			}
			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git", "hooks")))
			r := u.run("spawn", "--workspace", repo, "--", "sh", "-c", "cd "+dir+"; mkdir -p .git/hooks; echo x > .git/hooks/post-index-change")
			require.NotZero(t, r.code)
			require.Contains(t, r.stderr, "Read-only file system")
			left, err := os.ReadDir(filepath.Join(dir, ".git", "hooks"))
			require.NoError(t, err)
			require.Empty(t, left)
		}
		// An included file that exists stays as it is.
		shared := filepath.Join(repo, ".shared")
		u.git("config", "-f", shared, "user.name", "n")
		r := u.run("spawn", "--workspace", repo, "--", "sh", "-c", config+" > "+shared)
		require.NotZero(t, r.code)
		u.git("-C", repo, "status")
		require.NoFileExists(t, marker)
	})
}

// git runs git as the user, outside of any sandbox.
func (u *user) git(args ...string) {
	u.t.Helper()
	cmd := u.command(u.t.Context(), args...)
	path, err := exec.LookPath("git")
	require.NoError(u.t, err)
	cmd.Path, cmd.Args = path, append([]string{"git"}, args...)
	out, err := cmd.CombinedOutput()
	require.NoError(u.t, err, "git %v: %s", args, out)
}
