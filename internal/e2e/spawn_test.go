package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpawnPrintsOneObject(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		r := u.run("spawn", "--json", "--", "sh", "-c", "echo hi")
		require.Zero(t, r.code, r.stderr)
		o := r.object(t)
		require.Equal(t, true, o["success"])
		require.Equal(t, "completed", o["status"])
		require.Equal(t, "hi\n", o["output"])
		require.Equal(t, 0.0, o["exit_code"])
		require.Len(t, o["subagent_id"], 36)
		require.Contains(t, o, "duration_ms")
		sandbox := o["sandbox"].(map[string]any)
		require.Equal(t, true, sandbox["active"])
		require.Equal(t, "workspace", sandbox["profile"])
		require.Equal(t, "pid_namespace", sandbox["tree_kill"])
		for _, layer := range []string{"fds", "namespaces", "mounts", "caps", "no_new_privs", "landlock", "seccomp"} {
			require.Equal(t, "enforced", sandbox["layers"].(map[string]any)[layer].(map[string]any)["state"], layer)
		}
	})
}

// A foreground spawn behaves like the command itself.
func TestSpawnBehavesLikeTheCommand(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		for name, c := range map[string]struct {
			stdin  string
			args   []string
			stdout string
			stderr string // contained
			code   int
		}{
			"stdout":                {args: []string{"sh", "-c", "echo out; echo err >&2"}, stdout: "out\n", stderr: "err\n"},
			"exit code":             {args: []string{"sh", "-c", "exit 7"}, code: 7},
			"signal":                {args: []string{"sh", "-c", "kill -KILL $$"}, code: 128 + 9},
			"piped stdin":           {stdin: "x\n", args: []string{"cat"}, stdout: "x\n"},
			"much stdin":            {stdin: strings.Repeat("0123456789abcde\n", 64<<10), args: []string{"wc", "-c"}, stdout: "1048576\n"},
			"reader that stops":     {stdin: strings.Repeat("y\n", 1<<20), args: []string{"head", "-1"}, stdout: "y\n"},
			"not found":             {args: []string{"no-such-program"}, code: 127, stderr: "no-such-program"},
			"not UTF-8":             {args: []string{"printf", `\377\376\000x`}, stdout: "\xff\xfe\x00x"},
			"no newline":            {args: []string{"printf", "abc"}, stdout: "abc"},
			"arguments as they are": {args: []string{"printf", "%s|", "a b", "$HOME", "*", ""}, stdout: "a b|$HOME|*||"},
		} {
			t.Run(name, func(t *testing.T) {
				r := u.runWith(c.stdin, append([]string{"spawn", "--"}, c.args...)...)
				require.Equal(t, c.code, r.code, r.stderr)
				require.Equal(t, c.stdout, r.stdout)
				require.Contains(t, r.stderr, c.stderr)
			})
		}
	})
}

func TestSpawnOff(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		r := u.run("spawn", "--json", "--sandbox", "Off", "--", "sh", "-c", "echo $HAYWARD_SANDBOX_PROFILE")
		require.Zero(t, r.code, r.stderr)
		o := r.object(t)
		require.Equal(t, "off\n", o["output"])
		sandbox := o["sandbox"].(map[string]any)
		require.Equal(t, false, sandbox["active"])
		require.Equal(t, "off", sandbox["profile"])
	})
}

// What the sandbox claims is tried from inside.
func TestSandboxFromInside(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		state := filepath.Join(u.home, "state")
		outside := filepath.Join(u.home, "outside")
		for name, c := range map[string]struct {
			script string
			ok     bool
		}{
			"write the workspace":        {"echo x > ./file", true},
			"write /tmp":                 {"f=$(mktemp) && rm $f", true},
			"write TMPDIR":               {"echo x > $TMPDIR/x", true},
			"rename across directories":  {"mkdir d && echo x > d/f && mv d/f f2", true},
			"write the home":             {"echo x > " + outside, false},
			"write /etc":                 {"echo x > /etc/hayward-was-here", false},
			"read the client's token":    {"cat " + state + "/run/client.token", false},
			"list the state directory":   {"ls " + state + "/subagents", false},
			"move the state directory":   {"mv " + state + " " + state + "2", false},
			"mount":                      {"mount -t tmpfs none /mnt", false},
			"its own pid 1":              {"test $(cat /proc/1/comm) = hayward-child", true},
			"kill its supervisor":        {"kill -KILL 1; sleep 0.1; kill -0 1", true},
			"see only its own processes": {"test $(ls /proc | grep -c '^[0-9]*$') -lt 10", true},
			"no capability":              {"grep -q '^CapEff:.0000000000000000' /proc/self/status", true},
			"no bounding set":            {"grep -q '^CapBnd:.0000000000000000' /proc/self/status", true},
			"no new privileges":          {"grep -q '^NoNewPrivs:.1' /proc/self/status", true},
			"seccomp filter":             {"grep -q '^Seccomp:.2' /proc/self/status", true},
			"descriptors are 0, 1, 2":    {"test \"$(ls /proc/self/fd | tr '\\n' ' ')\" = '0 1 2 3 '", true}, // 3 is ls reading it
			"use the cache":              {"mkdir -p $GOCACHE && echo x > $GOCACHE/x", true},
			"no environment of ours":     {"test -z \"$HAYWARD_STATE_DIR\"", true},
		} {
			t.Run(name, func(t *testing.T) {
				if name == "write the home" && (strings.HasPrefix(u.home, "/tmp/") || strings.HasPrefix(u.home, "/var/tmp/")) {
					t.Skip("needs a home outside /tmp and /var/tmp")
				}
				r := u.run("spawn", "--", "sh", "-c", "("+c.script+") 2>&1")
				if c.ok {
					require.Zero(t, r.code, r.stdout+r.stderr)
				} else {
					require.NotZero(t, r.code, r.stdout+r.stderr)
				}
			})
		}
		require.NoFileExists(t, outside)
		require.NoFileExists(t, "/etc/hayward-was-here")
		require.DirExists(t, state)
	})
}

// 100 MiB of output: whole on disk, shortened in the reply.
func TestHugeOutput(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		r := u.run("spawn", "--json", "--", "sh", "-c", "head -c 104857600 /dev/zero | tr '\\0' a")
		require.Zero(t, r.code, r.stderr)
		o := r.object(t)
		require.Equal(t, float64(100<<20), o["output_bytes"])
		require.Equal(t, true, o["output_truncated"])
		require.LessOrEqual(t, len(o["output"].(string)), 33<<10)
		st, err := os.Stat(o["output_path"].(string))
		require.NoError(t, err)
		require.Equal(t, int64(100<<20), st.Size())
	})
}

func TestEnvironmentIsTheClients(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		require.Zero(t, u.run("ps").code) // starts the daemon with the environment as it is
		u.env = append(u.env, "SECRET=s3cr3t", "NAMED=yes", "LC_ALL=C")
		r := u.run("spawn", "--env", "NAMED", "--env", "OTHER=1", "--", "env")
		require.Zero(t, r.code, r.stderr)
		require.NotContains(t, r.stdout, "s3cr3t")
		require.Contains(t, r.stdout, "NAMED=yes\n")
		require.Contains(t, r.stdout, "OTHER=1\n")
		require.Contains(t, r.stdout, "LC_ALL=C\n")
		require.NotContains(t, r.stdout, "HAYWARD_STATE_DIR")
	})
}
