package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// gitIn runs git as the user in a directory.
func (u *user) gitIn(dir string, args ...string) string {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "user.name=u", "-c", "user.email=e@x", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append([]string{"GIT_CONFIG_NOSYSTEM=1"}, u.env...)
	if u.uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid)}}
	}
	r := finish(u.t, cmd)
	require.Zero(u.t, r.code, "git %v: %s%s", args, r.stdout, r.stderr)
	return strings.TrimSuffix(r.stdout, "\n")
}

// file makes a file of the user's.
func (u *user) file(path, content string, mode os.FileMode) {
	u.t.Helper()
	require.NoError(u.t, os.WriteFile(path, []byte(content), mode))
	require.NoError(u.t, os.Chmod(path, mode))
	require.NoError(u.t, os.Lchown(path, u.uid, u.uid))
}

// repository makes a repository with a remote-tracking branch and uncommitted
// state: staged, not staged, not tracked.
func (u *user) repository(dir string) {
	u.t.Helper()
	require.NoError(u.t, os.MkdirAll(dir, 0o755))
	require.NoError(u.t, os.Chown(dir, u.uid, u.uid))
	u.gitIn(dir, "init", "-q", "-b", "main")
	u.gitIn(dir, "config", "user.name", "u")
	u.gitIn(dir, "config", "user.email", "e@x")
	for _, name := range []string{"tracked", "staged", "gone"} {
		u.file(filepath.Join(dir, name), "1\n", 0o644)
	}
	u.gitIn(dir, "add", "-A")
	u.gitIn(dir, "commit", "-q", "-m", "one")
	u.file(filepath.Join(dir, "tracked"), "2\n", 0o644)
	u.gitIn(dir, "commit", "-qam", "two")
	u.gitIn(dir, "remote", "add", "origin", "https://user:secret@example.com/x.git")
	u.gitIn(dir, "update-ref", "refs/remotes/origin/main", "HEAD~1")
	u.gitIn(dir, "branch", "--set-upstream-to=origin/main")
	u.file(filepath.Join(dir, "tracked"), "3\n", 0o644)
	u.file(filepath.Join(dir, "staged"), "2\n", 0o644)
	u.gitIn(dir, "add", "staged")
	u.file(filepath.Join(dir, "private"), "p\n", 0o600)
	u.gitIn(dir, "status")
}

// userState is all of a repository that is the user's: files, index, refs.
func (u *user) userState(dir string) map[string]string {
	state := make(map[string]string)
	require.NoError(u.t, filepath.Walk(dir, func(path string, st os.FileInfo, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case st.IsDir() && (rel == ".git/objects" || rel == ".git/refs/hayward"):
			return filepath.SkipDir
		case st.Mode().IsRegular() && rel != ".git/hayward.lock":
			b, err := os.ReadFile(path)
			state[rel] = st.Mode().String() + " " + string(b)
			return err
		}
		return nil
	}))
	state["refs"] = u.gitIn(dir, "for-each-ref", "refs/heads", "refs/remotes", "refs/tags")
	return state
}

// wt are the arguments of a spawn with a working tree of its own.
func wt(args ...string) []string {
	return append([]string{"spawn", "--json", "--isolation", "worktree"}, args...)
}

// TestWorktree: inside a tree of its own a subagent sees the uncommitted state and
// uses git as it likes; nothing of it reaches the user's repository but refs, and
// those hold everything.
func TestWorktree(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		for _, place := range []string{u.work, filepath.Join(u.home, "cache", "in a writable root")} {
			u.repository(place)
			before := u.userState(place)
			script := `set -e
test "$(cat tracked)" = 3; test "$(git diff --cached --name-only)" = staged; test "$(cat private)" = p
test "$(git rev-parse --abbrev-ref @{upstream})" = origin/main
case "$(git remote get-url origin)" in *secret*) exit 9;; esac
git stash -q; git stash pop -q --index
git stash -q -u
git checkout -q -b topic; echo inside > made; git add made; git commit -q -m inside; git rebase -q main~1
git stash pop -q
git branch -f main HEAD~1
! touch '` + place + `/x' 2>/dev/null; ! touch '` + place + `/.git/x' 2>/dev/null; ! rm -rf '` + place + `/.git/refs' 2>/dev/null
! ls '` + u.home + `/state/subagents' 2>/dev/null; test "$(ls "$(dirname "$(dirname "$PWD")")")" = "$HAYWARD_SUBAGENT_ID"
chmod 600 tracked; ln -s tracked link; rm gone; printf 'a\r\n\0' > binary`
			r := u.run(wt("--cwd", place, "--", "sh", "-c", script)...)
			require.Zero(t, r.code, "%s\n%s", r.stdout, r.stderr)
			o := r.object(t)
			id := o["subagent_id"].(string)
			require.Equal(t, before, u.userState(place))
			tree := o["worktree"].(map[string]any)
			require.Equal(t, true, tree["kept"])
			require.Equal(t, place, tree["repository"])
			require.Nil(t, tree["problem"])
			require.DirExists(t, tree["path"].(string))
			require.NotZero(t, o["changes"].(map[string]any)["files"])
			end := "refs/hayward/subagents/" + id
			require.Equal(t, "inside", u.gitIn(place, "show", end+"/heads/topic:made"))
			require.Equal(t, "tracked", u.gitIn(place, "cat-file", "-p", end+"/tree:link"))
			require.Contains(t, u.gitIn(place, "log", "-1", "--format=%B", end+"/tree"), `Hayward-Mode: 0600 "tracked"`)
			u.gitIn(place, "fsck", "--strict")
		}

		// It loses its own git directory, not its files; nobody else loses anything.
		before := u.userState(u.work)
		r := u.run(wt("--", "sh", "-c", `echo kept > made; rm -rf "$(git rev-parse --git-common-dir)"; test ! -e .git/HEAD`)...)
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, "kept", u.gitIn(u.work, "show", "refs/hayward/subagents/"+r.object(t)["subagent_id"].(string)+"/tree:made"))
		require.Equal(t, before, u.userState(u.work))
		u.gitIn(u.work, "fsck", "--strict")

		// What changes nothing leaves nothing.
		r = u.run(wt("--sandbox", "strict", "--", "git", "log", "--oneline")...)
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, false, r.object(t)["worktree"].(map[string]any)["kept"])
		require.Empty(t, u.gitIn(u.work, "for-each-ref", "refs/hayward/*/"+r.object(t)["subagent_id"].(string)))
		require.Equal(t, before, u.userState(u.work))
	})
}

// TestWorktreesAtOnce: many on one repository all start with its state and keep
// what they did apart.
func TestWorktreesAtOnce(t *testing.T) {
	u := newUser(t, ordinaryOr(os.Getuid()))
	u.repository(u.work)
	before := u.userState(u.work)
	const count = 16
	results := make([]result, count)
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() {
			results[i] = u.run(wt("--", "sh", "-c", fmt.Sprintf(`test "$(cat tracked)" = 3 && echo %d > tracked && git commit -qam %d`, i, i))...)
		})
	}
	wg.Wait()
	for i, r := range results {
		require.Zero(t, r.code, "%d: %s", i, r.stderr)
		end := "refs/hayward/subagents/" + r.object(t)["subagent_id"].(string)
		require.Equal(t, fmt.Sprint(i), u.gitIn(u.work, "show", end+"/tree:tracked"))
		require.Equal(t, fmt.Sprint(i), u.gitIn(u.work, "show", end+"/heads/main:tracked"))
	}
	require.Equal(t, before, u.userState(u.work))
	u.gitIn(u.work, "fsck", "--strict")
}

// ordinaryOr is the ordinary user's uid where the tests run as root.
func ordinaryOr(uid int) int {
	if uid == 0 {
		return ordinaryUID
	}
	return uid
}

// TestWorktreeRefused: what cannot be isolated does not run.
func TestWorktreeRefused(t *testing.T) {
	u := newUser(t, ordinaryOr(os.Getuid()))
	r := u.run(wt("--", "touch", "ran")...)
	require.Equal(t, 125, r.code)
	require.Contains(t, r.stderr, "is in no git repository")
	u.gitIn(u.work, "init", "-q", "--bare", "b.git")
	r = u.run(wt("--cwd", filepath.Join(u.work, "b.git"), "--", "touch", "ran")...)
	require.Equal(t, 125, r.code)
	require.Contains(t, r.stderr, "bare")
	require.NoFileExists(t, filepath.Join(u.work, "ran"))
}

// daemonPID is the process of the user's only coordinator.
func (u *user) daemonPID() int {
	u.t.Helper()
	for _, p := range u.processes() {
		if pid, args, _ := strings.Cut(p, " "); strings.HasPrefix(args, u.bin+" serve") {
			n, err := strconv.Atoi(pid)
			require.NoError(u.t, err)
			return n
		}
	}
	require.Fail(u.t, "there is no coordinator")
	return 0
}

// TestWorktreeKilled: child and coordinator are killed at once; the next one finds
// everything that was in the tree.
func TestWorktreeKilled(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.repository(u.work)
		before := u.userState(u.work)
		id := u.detach("--isolation", "worktree", "--", "sh", "-c", `
echo c > committed; git add committed; git commit -q -m inside
echo u > untracked; echo s > secret; chmod 600 secret; printf '\0\377' > binary; ln -s nowhere link; rm gone; echo ready; sleep 1000`)
		require.True(t, u.eventually(func() bool { return strings.Contains(u.run("logs", id).stdout, "ready") }))
		u.gitIn(u.work, "gc", "-q", "--prune=now")
		o := u.snapshot(id)
		child := int(o["process"].(map[string]any)["pid"].(float64))
		daemon := u.daemonPID()
		require.NoError(t, syscall.Kill(daemon, syscall.SIGKILL))
		require.NoError(t, syscall.Kill(child, syscall.SIGKILL))
		r := u.run("wait", "--json", id)
		require.Equal(t, 1, r.code, r.stderr)
		o = list(t, r.object(t), "snapshots")[0]
		require.Equal(t, "failed", o["status"])
		require.Equal(t, true, o["worktree"].(map[string]any)["kept"], "%v", o)
		require.Nil(t, o["worktree"].(map[string]any)["problem"])
		end := "refs/hayward/subagents/" + id
		require.Equal(t, ".. binary committed link private secret staged tracked untracked",
			strings.Join(append([]string{".."}, strings.Fields(u.gitIn(u.work, "ls-tree", "--name-only", end+"/tree"))...), " "))
		require.Contains(t, u.gitIn(u.work, "log", "-1", "--format=%B", end+"/tree"), `0600 "secret"`)
		require.Equal(t, "c", u.gitIn(u.work, "show", end+"/head:committed"))
		require.Equal(t, "nowhere", u.gitIn(u.work, "cat-file", "-p", end+"/tree:link"))
		require.Equal(t, before["refs"], u.userState(u.work)["refs"])
		u.gitIn(u.work, "fsck", "--strict")
	})
}

// TestWorktreeSetup: the configured command runs in the tree, inside the sandbox;
// where it fails nothing else runs, and its output says why.
func TestWorktreeSetup(t *testing.T) {
	u := newUser(t, ordinaryOr(os.Getuid()))
	u.repository(u.work)
	dir := filepath.Join(u.home, ".config", "hayward")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	u.file(filepath.Join(dir, "config.toml"), "[worktree]\nsetup = \"echo set up > made; ! touch '"+u.work+"/x'; test ! -e tracked.fail || { echo why not; exit 3; }\"\n", 0o644)
	r := u.run(wt("--", "cat", "made")...)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "set up\n", r.object(t)["output"])
	require.NoFileExists(t, filepath.Join(u.work, "x"))
	u.file(filepath.Join(u.work, "tracked.fail"), "", 0o644)
	r = u.run(wt("--", "touch", "ran")...)
	require.Equal(t, 125, r.code, r.stderr)
	e := r.object(t)["error"].(map[string]any)
	require.Contains(t, e["details"].(map[string]any)["output"], "why not")
	require.Empty(t, u.gitIn(u.work, "for-each-ref", "refs/hayward/*/"+r.object(t)["subagent_id"].(string)))
}
