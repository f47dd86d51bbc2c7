package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/worktree"
)

// repo is a repository, and subagents' worktrees of it made by plain git.
type repo struct {
	b    *bench
	dir  string
	root worktree.Root
	base string
}

func newRepo(t *testing.T, b *bench) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs the program git")
	}
	r := &repo{b: b, dir: filepath.Join(b.dir, "project")}
	require.NoError(t, os.Mkdir(r.dir, 0o755))
	root, refusal := worktree.Open(filepath.Join(b.dir, "state", "worktrees"))
	require.Nil(t, refusal)
	r.root = root
	r.git("init", "-q", "-b", "main")
	r.write(r.dir, "text", "1\n2\n3\n")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "begin")
	r.base = r.git("rev-parse", "HEAD")
	return r
}

func (r *repo) git(args ...string) string { return r.gitIn(nil, args...) }

func (r *repo) gitIn(env []string, args ...string) string {
	r.b.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A User", "-c", "user.email=u@example.com"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1"}, env...)
	out, err := cmd.CombinedOutput()
	require.NoError(r.b.t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

func (r *repo) write(dir, name, text string) {
	r.b.t.Helper()
	require.NoError(r.b.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// ended is a worktree whose subagent left these files.
func (r *repo) ended(id string, files map[string]string) worktree.Record {
	r.b.t.Helper()
	git := filepath.Join(r.dir, ".git")
	rec := worktree.Record{
		ID: id, Repository: r.dir, GitDir: git, CommonDir: git, Name: "project", BaseCommit: r.base, Branch: "main", ObjectFormat: "sha1",
		CreatedAt: time.Now().UTC(), State: worktree.StateEnded, EndedAt: time.Now().UTC(), Changes: &events.Changes{Files: len(files), Insertions: 1},
	}
	tree := r.root.Tree(rec)
	require.NoError(r.b.t, os.MkdirAll(tree, 0o700))
	r.write(tree, "text", "1\n2\n3\n")
	for name, text := range files {
		r.write(tree, name, text)
	}
	env := []string{"GIT_DIR=" + git, "GIT_WORK_TREE=" + tree, "GIT_INDEX_FILE=" + filepath.Join(r.root.Dir(id), "test.index")}
	r.gitIn(env, "-C", tree, "add", "-A")
	end := r.gitIn(env, "commit-tree", r.gitIn(env, "write-tree"), "-p", r.base, "-m", "end")
	require.NoError(r.b.t, os.Remove(filepath.Join(r.root.Dir(id), "test.index")))
	require.Nil(r.b.t, worktree.UpdateRefs(r.b.t.Context(), git, id, map[string]string{
		worktree.BaseRef(id, worktree.RefHead): r.base, worktree.BaseRef(id, worktree.RefTree): r.base,
		worktree.EndRef(id, worktree.RefHead): r.base, worktree.EndRef(id, worktree.RefTree): end,
	}))
	require.Nil(r.b.t, r.root.Write(rec))
	return rec
}

func TestWorktreeVerbs(t *testing.T) {
	b := newIdleBench(t)
	r := newRepo(t, b)
	one, two := events.NewID(), events.NewID()
	r.ended(one, map[string]string{"text": "one\n2\n3\n", "new": "n\n"})
	r.ended(two, map[string]string{"text": "two\n2\n3\n"})

	list := b.run("worktree", "ls")
	require.Zero(t, list.code, list.stderr)
	lines := strings.Split(strings.TrimSpace(list.stdout), "\n")
	require.Equal(t, strings.Fields("ID STATE CHANGES SIZE AGE REPOSITORY"), strings.Fields(lines[0]))
	require.Regexp(t, `^`+shortID(one)+`  ended  2 files \+1 -0  \S+KiB  \d\.\ds +`+r.dir+`$`, lines[1])
	require.Equal(t, one+"\n"+two+"\n", b.run("worktree", "ls", "-q").stdout)
	golden(t, "worktree-ls", hideTree(b, b.run("worktree", "ls", "--json").stdout))

	path := b.run("worktree", "path", one[30:])
	require.Equal(t, filepath.Join(r.root.Dir(one), "project")+"\n", path.stdout)
	require.Equal(t, "new\ntext\n", b.run("worktree", "diff", "--name-only", one).stdout)
	require.Contains(t, b.run("worktree", "diff", one).stdout, "-1\n+one\n")
	require.NotContains(t, b.run("worktree", "diff", one).stdout, "\x1b")
	require.Contains(t, b.run("worktree", "diff", "--stat", one).stdout, "2 files changed, 2 insertions(+), 1 deletion(-)")
	golden(t, "worktree-diff", b.run("worktree", "diff", "--json", one).stdout)

	dry := b.run("worktree", "apply", "--dry-run", one)
	require.Zero(t, dry.code, dry.stderr)
	require.Equal(t, "added     new\nmodified  text\n", dry.stdout)
	require.NoFileExists(t, filepath.Join(r.dir, "new"))
	applied := b.run("worktree", "apply", one)
	require.Zero(t, applied.code, applied.stderr)
	require.Equal(t, "hayward worktree apply: 2 files changed in "+r.dir+"\n", applied.stderr)
	require.FileExists(t, filepath.Join(r.dir, "new"))
	again := b.run("worktree", "apply", one)
	require.Zero(t, again.code)
	require.Contains(t, again.stderr, "it was applied before")

	conflict := b.run("worktree", "apply", two)
	require.Equal(t, 1, conflict.code)
	require.Contains(t, conflict.stdout, "conflict  text: both changed the same lines\n  base    100644 "+r.git("rev-parse", "HEAD:text")+"\n  yours   100644 ")
	require.Contains(t, conflict.stderr, "nothing was applied")
	asJSON := b.run("worktree", "apply", "--json", two)
	require.Equal(t, 1, asJSON.code)
	golden(t, "worktree-apply", hideTree(b, asJSON.stdout))

	branch := b.run("worktree", "branch", two, "twos")
	require.Zero(t, branch.code, branch.stderr)
	require.Equal(t, r.git("rev-parse", "twos")+"\n", branch.stdout)
	require.Equal(t, 125, b.run("worktree", "branch", two, "twos").code, "it is there")
	require.Equal(t, 2, b.run("worktree", "branch", two, "a..b").code)

	kept := b.run("worktree", "gc", "--dry-run")
	require.Zero(t, kept.code, kept.stderr)
	require.Regexp(t, `(?m)^`+shortID(one)+`  applied   refs +its changes are in the working tree$`, kept.stdout)
	require.Regexp(t, `(?m)^`+shortID(two)+`  branched  directory, refs  a branch holds all that it did$`, kept.stdout)
	golden(t, "worktree-gc", hideTree(b, b.run("worktree", "gc", "--json").stdout))
	require.Equal(t, `{"worktrees":[]}`+"\n", b.run("worktree", "ls", "--json").stdout)
	require.Empty(t, r.git("for-each-ref", "refs/hayward"))
	require.NoFileExists(t, filepath.Join(b.dir, "state", "lock"), "no daemon is started")
}

// hideTree makes what differs from run to run the same.
func hideTree(b *bench, s string) string {
	s = strings.ReplaceAll(s, b.dir, "/TMP")
	var out []string
	for _, part := range strings.Split(s, ",") {
		if strings.HasPrefix(part, `"bytes":`) {
			rest := strings.TrimLeft(strings.TrimPrefix(part, `"bytes":`), "0123456789")
			part = `"bytes":0` + rest
		}
		if strings.HasPrefix(part, `"base_commit":`) {
			part = `"base_commit":"OID"`
		}
		out = append(out, part)
	}
	return strings.Join(out, ",")
}

func TestWorktreeRefusals(t *testing.T) {
	b := newIdleBench(t)
	require.Equal(t, `{"worktrees":[]}`+"\n", b.run("worktree", "ls", "--json").stdout)
	require.NoDirExists(t, filepath.Join(b.dir, "state"), "looking makes nothing")
	r := newRepo(t, b)
	id, live := events.NewID(), events.NewID()
	r.ended(id, map[string]string{"text": "x\n"})
	rec := r.ended(live, nil)
	rec.State = worktree.StateLive
	require.Nil(t, r.root.Write(rec))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"apply", events.NewID()}, 4, "there is none"},
		{[]string{"apply", "nobody"}, 4, "hayward worktree ls"},
		{[]string{"diff", "--stat", "--name-only", id}, 2, ""},
		{[]string{"apply"}, 2, ""},
		{[]string{"apply", live}, 125, "has not ended"},
		{[]string{"discard", live}, 125, "has not ended"},
		{[]string{"discard", "--force", live}, 125, "has not ended"},
		{[]string{"discard", id}, 125, "neither applied nor made a branch"},
		{[]string{"gc", "--refs"}, 2, "--older-than"},
		{[]string{"gc", "--older-than", "-1h"}, 2, "negative"},
		{[]string{"gc", "--repository", filepath.Join(b.dir, "none")}, 2, "repository"},
	} {
		got := b.run(append([]string{"worktree"}, c.args...)...)
		require.Equal(t, c.code, got.code, c.args)
		require.Contains(t, got.stderr, c.says, c.args)
	}
	var said failure
	require.NoError(t, json.Unmarshal([]byte(b.run("worktree", "discard", "--json", id).stdout), &said))
	require.Equal(t, events.CodeWouldLose, said.Error.Code)

	gone := b.run("worktree", "discard", "--force", id)
	require.Zero(t, gone.code, gone.stderr)
	require.Contains(t, gone.stderr, "git branch NAME")
	require.NoDirExists(t, r.root.Dir(id))

	b.env = append(b.env[:0:0], "HOME="+b.dir, "PATH="+os.Getenv("PATH"), "HAYWARD_SUBAGENT_ID="+id)
	require.Equal(t, 125, b.run("worktree", "ls").code)
}

func TestWorktreesByName(t *testing.T) {
	b := newBench(t)
	r := newRepo(t, b)
	a := b.accept(events.Spawn{Name: "docs", Command: []string{"echo"}})
	r.ended(a.ID(), map[string]string{"new": "n\n"})
	require.Equal(t, "new\n", b.run("worktree", "diff", "--name-only", "docs").stdout)
	offered := b.run(cobra.ShellCompRequestCmd, "worktree", "apply", "")
	require.Contains(t, offered.stdout, "docs\tended "+r.dir+"\n"+a.ID()+"\tended ")
	require.NotContains(t, b.run(cobra.ShellCompRequestCmd, "worktree", "branch", "docs", "").stdout, a.ID())
}
