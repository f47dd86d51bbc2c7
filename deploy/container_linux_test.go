//go:build cgo

package deploy

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	seccomp "github.com/seccomp/libseccomp-golang"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/testkit"
)

// underFilter makes this test binary a program that puts itself under the
// profile and becomes another program.
const underFilter = "HAYWARD_TEST_UNDER_FILTER"

func TestMain(m *testing.M) {
	if os.Getenv(underFilter) != "" {
		becomeUnderFilter()
	}
	testkit.LeakCheck(m)
}

// profile is a seccomp profile as container engines read it.
type profile struct {
	DefaultAction string   `json:"defaultAction"`
	Architectures []string `json:"architectures"`
	Syscalls      []struct {
		Names    []string `json:"names"`
		Action   string   `json:"action"`
		ErrnoRet int16    `json:"errnoRet"`
	} `json:"syscalls"`
}

func readProfile() (p profile, err error) {
	b, err := os.ReadFile("seccomp.json")
	if err != nil {
		return p, err
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	return p, d.Decode(&p)
}

func becomeUnderFilter() {
	runtime.LockOSThread() // the filter is of this thread, and so is the exec
	fail := func(err error) {
		if err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(99)
		}
	}
	p, err := readProfile()
	fail(err)
	filter, err := seccomp.NewFilter(seccomp.ActAllow)
	fail(err)
	for _, rule := range p.Syscalls {
		for _, name := range rule.Names {
			if call, err := seccomp.GetSyscallFromName(name); err == nil { // engines skip what this machine does not have
				fail(filter.AddRule(call, seccomp.ActErrno.SetReturnCode(rule.ErrnoRet)))
			}
		}
	}
	fail(filter.Load())
	args := os.Args[len(os.Args)-1:]
	fail(syscall.Exec("/bin/sh", append([]string{"sh", "-c"}, args...), os.Environ()))
}

// The filter of a container must let a sandbox be made.
func TestSandboxUnderTheSeccompProfile(t *testing.T) {
	p, err := readProfile()
	require.NoError(t, err)
	require.Equal(t, "SCMP_ACT_ALLOW", p.DefaultAction)
	for _, rule := range p.Syscalls {
		require.Equal(t, "SCMP_ACT_ERRNO", rule.Action)
		for _, needed := range []string{
			"clone", "clone3", "unshare", "setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "mount_setattr", "fsopen", "fsmount",
			"seccomp", "prctl", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "pidfd_open", "pidfd_send_signal", "memfd_create",
		} {
			require.NotContains(t, rule.Names, needed)
		}
	}
	home := testkit.Dir(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, self, `mkdir "$HOME/work" && cd "$HOME/work" && exec "$PROGRAM" spawn --no-daemon -- sh -c 'grep ^Seccomp_filters: /proc/self/status; echo ran'`)
	cmd.Env = []string{underFilter + "=1", "HOME=" + home, "HAYWARD_STATE_DIR=" + filepath.Join(home, "state"), "PATH=" + os.Getenv("PATH"), "PROGRAM=" + testkit.Program(t)}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, regexp.MustCompile(`(?m)^Seccomp_filters:\s+[2-9]`), string(out), "the engine's and the sandbox's own")
	require.Contains(t, string(out), "ran\n")
}

// The steps of the image, in a scratch root.
func TestStepsOfTheImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	root := t.TempDir()
	for _, dir := range []string{"etc", "usr/local/bin"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, file := range []string{"etc/passwd", "etc/group", "usr/local/bin/hayward"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), nil, 0o644))
	}
	out, err := exec.Command("sh", "image.sh", root).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command("sh", "image.sh", root).CombinedOutput()
	require.Error(t, err, string(out))

	text, err := os.ReadFile("Containerfile")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`HAYWARD_(STATE|RUNTIME|CACHE)_DIR=(\S+)`).FindAllStringSubmatch(string(text), -1) {
		st, err := os.Stat(filepath.Join(root, m[2]))
		require.NoError(t, err, "the image has %s", m[0])
		require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
		require.EqualValues(t, 1000, st.Sys().(*syscall.Stat_t).Uid)
	}
	passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	require.NoError(t, err)
	require.Equal(t, "hayward:x:1000:1000::/var/lib/hayward:/usr/sbin/nologin\n", string(passwd))
	for _, copied := range regexp.MustCompile(`(?m)^COPY (deploy/\S+)`).FindAllStringSubmatch(string(text), -1) {
		require.FileExists(t, filepath.Join("..", copied[1]))
	}
}
