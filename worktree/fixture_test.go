package worktree

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// sub is a subagent's tree made by plain git: what applies, branches and gc have
// to do with, without a spawn.
type sub struct {
	t    testing.TB
	u    *user
	root Root
	rec  Record
	dir  string
}

func fixtureRoot(t testing.TB) Root {
	t.Helper()
	root, err := Open(filepath.Join(t.TempDir(), "worktrees"))
	requireNo(t, err)
	return root
}

// newSub begins a tree from the user's files as they are.
func newSub(t testing.TB, u *user, root Root) *sub {
	t.Helper()
	s := &sub{t: t, u: u, root: root}
	s.rec = Record{
		ID: events.NewID(), Repository: u.dir, GitDir: filepath.Join(u.dir, ".git"), CommonDir: filepath.Join(u.dir, ".git"),
		Name: "project", ObjectFormat: repositoryFormat(u), CreatedAt: time.Now().UTC(), State: StateLive,
	}
	s.dir = root.Tree(s.rec)
	require.NoError(t, os.MkdirAll(s.dir, 0o700))
	s.rec.BaseCommit, _ = u.try("rev-parse", "--verify", "-q", "HEAD")
	copyFiles(t, u.dir, s.dir)
	base := s.snapshot(u.dir)
	refs := map[string]string{BaseRef(s.rec.ID, RefTree): base, BaseRef(s.rec.ID, RefIndex): base}
	if s.rec.BaseCommit != "" {
		refs[BaseRef(s.rec.ID, RefHead)] = s.rec.BaseCommit
	}
	requireNo(t, UpdateRefs(context.Background(), s.rec.CommonDir, s.rec.ID, refs))
	s.write()
	return s
}

func repositoryFormat(u *user) string {
	config, err := os.ReadFile(filepath.Join(u.dir, ".git/config"))
	require.NoError(u.t, err)
	if strings.Contains(string(config), "sha256") {
		return "sha256"
	}
	return "sha1"
}

// init gives the tree a git directory, for what makes commits.
func (s *sub) init() *sub {
	s.t.Helper()
	s.inside("init", "-q", "-b", "main", "--object-format="+s.rec.ObjectFormat)
	alternates := filepath.Join(s.dir, ".git/objects/info/alternates")
	require.NoError(s.t, os.WriteFile(alternates, []byte(filepath.Join(s.u.dir, ".git/objects")+"\n"), 0o600))
	if s.rec.BaseCommit != "" {
		s.inside("reset", "-q", s.rec.BaseCommit)
	}
	return s
}

// end records the end of the tree as it is.
func (s *sub) end() *sub {
	s.t.Helper()
	end := s.snapshot(s.dir)
	refs := map[string]string{EndRef(s.rec.ID, RefTree): end, EndRef(s.rec.ID, RefIndex): end}
	if _, err := os.Lstat(filepath.Join(s.dir, ".git")); err != nil {
		if s.rec.BaseCommit != "" {
			refs[EndRef(s.rec.ID, RefHead)] = s.rec.BaseCommit
		}
	} else {
		s.u.git("fetch", "-q", s.dir, "+HEAD:"+EndRef(s.rec.ID, RefHead), "+refs/heads/*:refs/hayward/kept/"+s.rec.ID+"/*")
		for line := range strings.Lines(s.inside("for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads")) {
			oid, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			s.u.git("update-ref", "-d", "refs/hayward/kept/"+s.rec.ID+"/"+name)
			if oid != s.rec.BaseCommit {
				refs[EndRef(s.rec.ID, RefHeads+name)] = oid
			}
		}
	}
	requireNo(s.t, UpdateRefs(context.Background(), s.rec.CommonDir, s.rec.ID, refs))
	s.rec.State, s.rec.EndedAt = StateEnded, time.Now().UTC()
	s.write()
	return s
}

func (s *sub) ref(name, oid string) { s.u.git("update-ref", name, oid) }

func (s *sub) write() { requireNo(s.t, s.root.Write(s.rec)) }

// snapshot commits the bytes of a directory into the user's repository.
func (s *sub) snapshot(dir string) string {
	s.t.Helper()
	run := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR=" + s.rec.GitDir, "GIT_WORK_TREE=" + dir,
			"GIT_INDEX_FILE=" + filepath.Join(s.root.Dir(s.rec.ID), "test.index"),
		}
		out, err := cmd.CombinedOutput()
		require.NoError(s.t, err, "git %v: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	defer os.Remove(filepath.Join(s.root.Dir(s.rec.ID), "test.index"))
	run("-c", "core.autocrlf=false", "-c", "advice.addEmbeddedRepo=false", "add", "-A")
	modes := make(Modes)
	for _, name := range fields([]byte(run("ls-files", "-z"))) {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			modes.note(name, info.Mode())
		}
	}
	return run("commit-tree", run("write-tree"), "-m", modes.Message("snapshot"))
}

// inside runs git in the tree, as the subagent would.
func (s *sub) inside(args ...string) string {
	s.t.Helper()
	out, err := s.try(args...)
	require.NoError(s.t, err, "git %v: %s", args, out)
	return out
}

func (s *sub) try(args ...string) (string, error) {
	return (&user{s.t, s.dir}).try(append([]string{"-c", "user.name=A Subagent", "-c", "user.email=s@example.com"}, args...)...)
}

// put makes the tree hold files; see putFiles.
func (s *sub) put(files map[string]string) *sub {
	s.t.Helper()
	putFiles(s.t, s.dir, files)
	return s
}

type tester interface {
	require.TestingT
	Helper()
}

// putFiles makes a directory hold files: "text", "x:text" executable, "->target",
// "" for nothing, "fifo".
func putFiles(t tester, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if text == "" {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
			for up := filepath.Dir(name); up != "." && os.Remove(filepath.Join(dir, up)) == nil; up = filepath.Dir(up) {
				continue
			}
		}
	}
	for name, text := range files {
		p := filepath.Join(dir, name)
		if text == "" {
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		if info, err := os.Lstat(p); err == nil && (text == "fifo" || strings.HasPrefix(text, "->") || !info.Mode().IsRegular()) {
			require.NoError(t, os.RemoveAll(p))
		}
		switch {
		case text == "fifo":
			require.NoError(t, mkfifo(p))
		case strings.HasPrefix(text, "->"):
			require.NoError(t, os.Symlink(text[2:], p))
		default:
			body, exec := strings.CutPrefix(text, "x:")
			require.NoError(t, os.WriteFile(p, []byte(body), 0o644))
			mode := fs.FileMode(0o644)
			if exec {
				mode = 0o755
			}
			require.NoError(t, os.Chmod(p, mode))
		}
	}
}

// filesIn is the reverse of putFiles, without .git.
func filesIn(t tester, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		if name == ".git" {
			return fs.SkipDir
		}
		info, err := d.Info()
		switch {
		case err != nil || d.IsDir():
			return err
		case info.Mode()&fs.ModeNamedPipe != 0:
			files[name] = "fifo"
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			files[name] = "->" + target
			return err
		default:
			b, err := os.ReadFile(p)
			files[name] = string(b)
			if info.Mode()&0o100 != 0 {
				files[name] = "x:" + files[name]
			}
			return err
		}
		return nil
	}))
	return files
}

func copyFiles(t tester, from, to string) {
	t.Helper()
	putFiles(t, to, filesIn(t, from))
}

// sacred is all of the user's that no verb may touch.
func (u *user) sacred() string {
	u.t.Helper()
	index, err := os.ReadFile(filepath.Join(u.dir, ".git/index"))
	if err != nil {
		require.ErrorIs(u.t, err, fs.ErrNotExist)
	}
	head, err := os.ReadFile(filepath.Join(u.dir, ".git/HEAD"))
	require.NoError(u.t, err)
	refs := u.git("for-each-ref", "refs/heads", "refs/tags", "refs/remotes", "refs/stash")
	return fmt.Sprintf("%x\n%s\n%s", index, head, refs)
}

func (s *sub) apply() (ApplyResult, *events.Error) {
	return s.root.Apply(context.Background(), s.rec.ID, ApplyOptions{})
}

// reread is the record as it is now.
func (s *sub) reread() Record {
	s.t.Helper()
	rec, err := s.root.Read(s.rec.ID)
	requireNo(s.t, err)
	return rec
}
