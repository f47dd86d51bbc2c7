//go:build linux && cgo

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// A request with deny entries puts what they match out of reach by every name.
func TestConfinedDeny(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	for _, d := range []string{"/sub", "/secrets/deep", "/a/b"} {
		require.NoError(t, os.MkdirAll(w.workspace+d, 0o755))
	}
	put(t, w.workspace+"/.env", "TOKEN")
	put(t, w.workspace+"/sub/.env", "TOKEN")
	put(t, w.workspace+"/secrets/key", "TOKEN")
	put(t, w.workspace+"/other", "fine")
	put(t, w.outside+"/target", "TOKEN")
	require.NoError(t, os.Link(w.workspace+"/.env", w.workspace+"/hard"))
	require.NoError(t, os.Symlink(".env", w.workspace+"/relative"))
	require.NoError(t, os.Symlink(w.workspace+"/.env", w.workspace+"/absolute"))
	require.NoError(t, os.Symlink(w.outside+"/target", w.workspace+"/a/.env"))
	require.NoError(t, os.Symlink("nowhere", w.workspace+"/a/b/.env"))
	r := w.under(t, Workspace)
	r.Deny = []string{"**/.env", "secrets", "gone/file"}
	before := listing(t, w.workspace)
	p := compile(t, r, Probe())
	require.Equal(t, []string{w.workspace + "/gone/file"}, p.paths.missing)
	require.Subset(t, p.gaps, []string{GapDenyNew, GapDenyReplace, GapDenyHistory})
	denied := []string{"EACCES", "EROFS", "EPERM", "EBUSY", "EXDEV"}
	var all []expectation
	for _, name := range []string{".env", "sub/.env", "hard", "relative", "absolute", "secrets/key", "a/.env"} {
		all = append(all, mayNot("read|"+w.workspace+"/"+name, "EACCES"))
	}
	for _, name := range []string{".env", "sub/.env", "hard"} {
		path := w.workspace + "/" + name
		all = append(all, mayNot("write|"+path, denied...), mayNot("append|"+path, denied...), mayNot("truncate|"+path, append(denied, "EINVAL")...),
			mayNot("rename|"+path+"|"+w.workspace+"/away", denied...), mayNot("link|"+path+"|"+w.workspace+"/more", denied...),
			mayNot("unlink|"+path, denied...), mayNot("rename|"+w.workspace+"/other|"+path, denied...), mayNot("umount|"+path, "EPERM"))
	}
	all = append(all,
		mayNot("list|"+w.workspace+"/secrets", "EACCES"), mayNot("create|"+w.workspace+"/secrets/new", denied...),
		mayNot("rename|"+w.workspace+"/secrets|"+w.workspace+"/away", denied...),
		mayNot("read|"+w.outside+"/target", "EACCES"),
		// The mask goes along with a directory above it.
		may("rename|%s/sub|%s/moved", w.workspace, w.workspace), mayNot("read|"+w.workspace+"/moved/.env", "EACCES"),
		may("rename|%s/moved|%s/sub", w.workspace, w.workspace),
		may("read|%s/other", w.workspace),
	)
	w.check(t, r, all)
	require.Equal(t, before, listing(t, w.workspace), "nothing is left on the host")

	// A further name that is not in the workspace would open it.
	require.NoError(t, os.Link(w.workspace+"/.env", w.base+"/elsewhere"))
	_, e := Compile(r, Probe())
	require.NotNil(t, e)
	require.Contains(t, e.Message, "has 3 names, of which 2 were found")
}

// listing is every path below dir with its content.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		out[path] = d.Type().String()
		if d.Type().IsRegular() && !strings.HasSuffix(path, ".probe") {
			b, err := os.ReadFile(path)
			out[path] += string(b)
			return err
		}
		return nil
	}))
	return out
}

func TestCompileDenyRefusals(t *testing.T) {
	w := newWorld(t)
	for deny, code := range map[string]events.Code{
		"":                events.CodeInvalidRequest,
		"a**":             events.CodeInvalidRequest,
		"*.{a,b}":         events.CodeInvalidRequest,
		"{.env,secrets}":  events.CodeInvalidRequest,
		`a\ b`:            events.CodeInvalidRequest,
		"/proc/version":   events.CodeWorkspaceRefused,
		".":               events.CodeWorkspaceRefused,
		w.base:            events.CodeWorkspaceRefused,
		"/":               events.CodeWorkspaceRefused,
		filepath.Dir("/"): events.CodeWorkspaceRefused,
	} {
		r := w.under(t, Workspace)
		r.Deny = []string{deny}
		p, e := Compile(r, able())
		require.Nil(t, p, deny)
		require.NotNil(t, e, deny)
		require.Equal(t, code, e.Code, "%s: %v", deny, e)
	}
	r := w.request()
	r.Profile, r.Deny = Off, []string{"x"}
	_, e := Compile(r, able())
	require.NotNil(t, e)
	require.Equal(t, events.CodeInvalidRequest, e.Code)
}

// TestConfinedDenyCounts covers the numbers at which descriptors and tables end.
// What is denied by its place cannot leave it with a directory above it.
func TestConfinedDenyByPlace(t *testing.T) {
	requireEnforceable(t)
	for _, deny := range []string{"secrets/**", "secrets/a", "top/secrets/*", "**/secrets/a"} {
		w := newWorld(t)
		require.NoError(t, os.MkdirAll(w.workspace+"/top/secrets", 0o755))
		require.NoError(t, os.MkdirAll(w.workspace+"/secrets", 0o755))
		put(t, w.workspace+"/secrets/a", "TOKEN")
		put(t, w.workspace+"/top/secrets/a", "TOKEN")
		r := w.under(t, Workspace)
		r.Deny = []string{deny}
		moved := "secrets"
		if strings.HasPrefix(deny, "top") {
			moved = "top"
		}
		w.check(t, r, []expectation{
			mayNot("rename|"+w.workspace+"/"+moved+"|"+w.workspace+"/away", "EBUSY"),
			may("create|%s/new", w.workspace+"/"+moved),
		})
	}
}

func TestConfinedDenyCounts(t *testing.T) {
	requireEnforceable(t)
	for _, n := range []int{0, 1, 2, 100, 1000} {
		w := newWorld(t)
		for i := range n {
			put(t, fmt.Sprintf("%s/%d.secret", w.workspace, i), "TOKEN")
		}
		r := w.under(t, Workspace)
		r.Deny = []string{"*.secret"}
		last := fmt.Sprintf("read|%s/%d.secret", w.workspace, n-1)
		o := w.confined(t, r, last)
		if n > 0 {
			require.Equal(t, "EACCES", o.results[last])
		}
	}
}

func TestConfinedCredentials(t *testing.T) {
	requireEnforceable(t)
	for _, profile := range []string{Workspace, Devbox, ReadOnly, Strict} {
		w := newWorld(t)
		home := w.base + "/home"
		for _, d := range []string{"/.ssh", "/.aws", "/.config/gh", "/.docker/cli-plugins"} {
			require.NoError(t, os.MkdirAll(home+d, 0o700))
		}
		files := []string{"/.ssh/id_ed25519", "/.aws/credentials", "/.config/gh/hosts.yml", "/.docker/config.json", "/.netrc"}
		for _, f := range files {
			put(t, home+f, "SECRET")
		}
		put(t, home+"/notes", "fine")
		r := w.under(t, profile)
		r.Home = home
		actions := []string{"read|" + home + "/notes"}
		for _, f := range files {
			actions = append(actions, "read|"+home+f)
		}
		o := w.confined(t, r, actions...)
		for _, f := range files {
			want := []string{"EACCES"}
			if profile == Strict { // the home lies in the host's /tmp
				want = []string{"ENOENT"}
			}
			require.Contains(t, want, o.results["read|"+home+f], "%s %s", profile, f)
		}
		require.Equal(t, profile != Strict, o.results["read|"+home+"/notes"] == "ok")
		r.Profile = Off
		plan := compile(t, r, Probe())
		require.Equal(t, "ok", w.run(t, plan, launch{}, "read|"+home+"/.ssh/id_ed25519").results["read|"+home+"/.ssh/id_ed25519"])
	}
}

func TestConfinedRunLater(t *testing.T) {
	requireEnforceable(t)
	for _, profile := range []string{Workspace, Strict} {
		w := newWorld(t)
		for _, d := range []string{"/.git/hooks", "/.git/objects", "/.vscode", "/hookdir"} {
			require.NoError(t, os.MkdirAll(w.workspace+d, 0o755))
		}
		put(t, w.workspace+"/.git/config", "[core]\n\tbare = false\n\tHooksPath = hookdir\n")
		put(t, w.workspace+"/.git/hooks/pre-commit", "old")
		put(t, w.workspace+"/.envrc", "old")
		r := w.under(t, profile)
		closed := []string{"EROFS", "EBUSY", "EACCES", "EXDEV"}
		w.check(t, r, []expectation{
			may("read|%s/.git/config", w.workspace), mayNot("write|"+w.workspace+"/.git/config", closed...),
			mayNot("create|"+w.workspace+"/.git/hooks/post-commit", closed...), mayNot("write|"+w.workspace+"/.git/hooks/pre-commit", closed...),
			mayNot("rename|"+w.workspace+"/.git/hooks|"+w.workspace+"/.git/old", closed...),
			mayNot("rename|"+w.workspace+"/.git|"+w.workspace+"/old", closed...),
			mayNot("rename|"+w.workspace+"|"+w.base+"/away", append(closed, "ENOENT")...),
			mayNot("create|"+w.workspace+"/hookdir/pre-commit", closed...), mayNot("create|"+w.workspace+"/.vscode/tasks.json", closed...),
			mayNot("unlink|"+w.workspace+"/.envrc", closed...), mayNot("write|"+w.workspace+"/.envrc", closed...),
			may("create|%s/.git/index.lock", w.workspace), may("create|%s/.git/objects/new", w.workspace), may("create|%s/file", w.workspace),
		})
		require.Contains(t, compile(t, r, Probe()).gaps, GapProtected)
	}
}

// A linked work tree is committed in; one that is forged opens nothing.
func TestConfinedLinkedWorktree(t *testing.T) {
	requireEnforceable(t)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	w := newWorld(t)
	main := w.outside + "/main"
	linked := w.workspace + "/linked"
	run := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command(git, append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
		cmd.Env = []string{"HOME=" + w.base, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.Mkdir(main, 0o755))
	run(main, "init", "-q")
	run(main, "commit", "-q", "--allow-empty", "-m", "first")
	run(main, "worktree", "add", "-q", linked, "-b", "feature")
	put(t, linked+"/file", "x")
	r := w.under(t, Workspace)
	r.Workspace, r.Cwd = linked, linked
	commit := strings.Join([]string{"exec", git, "-C", linked, "-c", "user.name=n", "-c", "user.email=e", "-c", "safe.directory=*", "commit", "-q", "-m", "inside"}, "|")
	add := strings.Join([]string{"exec", git, "-C", linked, "-c", "safe.directory=*", "add", "file"}, "|")
	gitdir := main + "/.git/worktrees/linked"
	o := w.confined(t, r, add, commit, "create|"+main+"/.git/hooks/pre-commit", "write|"+main+"/.git/config",
		"write|"+linked+"/.git", "unlink|"+linked+"/.git", "write|"+gitdir+"/commondir", "create|"+main+"/file")
	require.Equal(t, "ok", o.results[add], o.values[add])
	require.Equal(t, "ok", o.results[commit], o.values[commit])
	for _, a := range []string{"create|" + main + "/.git/hooks/pre-commit", "write|" + main + "/.git/config",
		"write|" + linked + "/.git", "unlink|" + linked + "/.git", "write|" + gitdir + "/commondir", "create|" + main + "/file"} {
		require.Contains(t, []string{"EROFS", "EACCES", "EBUSY"}, o.results[a], a)
	}

	secret := w.outside + "/keys"
	require.NoError(t, os.Mkdir(secret, 0o755))
	for name, text := range map[string]string{
		"no repository":      "gitdir: " + secret + "\n",
		"nothing":            "gitdir: /nonexistent\n",
		"another work tree":  "gitdir: " + gitdir + "\n",
		"the repository":     "gitdir: " + main + "/.git\n",
		"not even a pointer": "junk",
	} {
		put(t, w.workspace+"/.git", text)
		r := w.under(t, Workspace)
		p := compile(t, r, Probe())
		require.False(t, slices.ContainsFunc(p.Writable, func(d string) bool { return within(d, w.outside) }), "%s: %v", name, p.Writable)
		require.Contains(t, strings.Join(p.paths.missing, "\n"), w.workspace+"/.git: ", name)
	}
}
