package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// collected runs gc and returns its items by id.
func collected(t *testing.T, root Root, o GCOptions) map[string]GCItem {
	t.Helper()
	items, err := root.GC(testContext(t), o)
	requireNo(t, err)
	byID := map[string]GCItem{}
	for _, i := range items {
		require.Nil(t, i.Error, i.Why)
		byID[i.ID] = i
	}
	return byID
}

func TestCollectByClass(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	subs := map[string]*sub{}
	begin := func(name string) *sub {
		subs[name] = newSub(t, u, root)
		return subs[name]
	}
	begin("live").put(map[string]string{"new": "1\n"})
	begin("clean").end()
	begin("clean with an ignored file").put(map[string]string{"x.o": "built\n"}).end()
	begin("changes").put(map[string]string{"new": "2\n"}).end()
	begin("changes, then more").put(map[string]string{"new": "3\n"}).end().put(map[string]string{"text": "after the end\n"})
	begin("committed").init().put(map[string]string{"new": "4\n"})
	subs["committed"].inside("add", "-A")
	subs["committed"].inside("commit", "-q", "-m", "its own")
	subs["committed"].end()
	begin("reflog only").init().inside("commit", "-q", "--allow-empty", "-m", "dropped")
	subs["reflog only"].inside("reset", "-q", "--hard", "HEAD~1")
	subs["reflog only"].end()
	begin("problem").end().rec.Problem = workFailed("x", "save", os.ErrPermission)
	subs["problem"].write()
	begin("discarded").put(map[string]string{"new": "5\n"}).end().rec.State = StateDiscarded
	subs["discarded"].write()
	begin("unreadable").end()
	require.NoError(t, os.WriteFile(filepath.Join(root.Dir(subs["unreadable"].rec.ID), recordFile), []byte("{"), 0o600))
	begin("leased").end()
	lease, err := root.TryLease(subs["leased"].rec.ID)
	requireNo(t, err)
	defer lease.Unlock()
	begin("branched").put(map[string]string{"new": "6\n"}).end()
	_, err = root.Branch(testContext(t), subs["branched"].rec.ID, "kept")
	requireNo(t, err)
	empty, unfinished, fresh := events.NewID(), events.NewID(), events.NewID()
	for _, id := range []string{empty, unfinished, fresh} {
		require.NoError(t, os.Mkdir(root.Dir(id), 0o700))
	}
	require.NoError(t, os.Mkdir(filepath.Join(root.Dir(unfinished), "project"), 0o700))
	old := time.Now().Add(-2 * incompleteAge)
	require.NoError(t, os.Chtimes(root.Dir(empty), old, old))
	require.NoError(t, os.Chtimes(root.Dir(unfinished), old, old))

	want := map[string]struct {
		class           GCClass
		directory, refs bool
		why             string
	}{
		"live":                       {GCLive, false, false, "has not ended"},
		"clean":                      {GCClean, true, true, "changed nothing"},
		"clean with an ignored file": {GCClean, false, false, "1 file that only its directory holds, such as x.o"},
		"changes":                    {GCChanges, false, false, "not applied"},
		"changes, then more":         {GCChanges, false, false, "not applied"},
		"committed":                  {GCChanges, false, false, "not applied"},
		"reflog only":                {GCClean, false, false, "1 commit that only its directory holds"},
		"problem":                    {GCClean, false, false, "not saved completely"},
		"discarded":                  {GCDiscarded, true, true, "discarded"},
		"unreadable":                 {GCUnknown, false, false, "record cannot be read"},
		"branched":                   {GCBranched, true, true, "branch"},
	}
	check := func(o GCOptions) {
		t.Helper()
		items, err := root.GC(testContext(t), o)
		requireNo(t, err)
		got := map[string]GCItem{}
		for _, i := range items {
			got[i.ID] = i
		}
		for name, w := range want {
			g := got[subs[name].rec.ID]
			require.Equal(t, w.class, g.Class, name)
			require.Equal(t, w.directory, g.Directory, "%s: %s", name, g.Why)
			require.Equal(t, w.refs, g.Refs, "%s: %s", name, g.Why)
			require.Contains(t, g.Why, w.why, name)
		}
		require.Equal(t, events.CodeBusy, got[subs["leased"].rec.ID].Error.Code)
		require.True(t, got[empty].Directory)
		require.False(t, got[fresh].Directory, "a spawn may be about to use it")
		require.False(t, got[unfinished].Directory)
		require.Len(t, items, len(want)+4)
	}
	refs, sacred := u.git("for-each-ref"), u.sacred()
	check(GCOptions{DryRun: true})
	require.Equal(t, refs, u.git("for-each-ref"), "a dry run changes nothing")
	for _, s := range subs {
		require.DirExists(t, s.dir)
	}
	check(GCOptions{})
	require.Equal(t, sacred, u.sacred())
	for name, w := range want {
		id := subs[name].rec.ID
		_, statErr := os.Lstat(subs[name].dir)
		require.Equal(t, w.directory, os.IsNotExist(statErr), name)
		have, err := ListRefs(testContext(t), u.dir+"/.git", id)
		requireNo(t, err)
		require.Equal(t, w.refs, len(have) == 0, name)
		require.Equal(t, w.refs, gone(root.Dir(id)), name)
	}
	require.NoDirExists(t, root.Dir(empty))

	// What the flags add.
	got := collected(t, fixtureOnly(t, root, subs["clean with an ignored file"]), GCOptions{Ignored: true})
	require.Len(t, got, 1)
	require.True(t, got[subs["clean with an ignored file"].rec.ID].Directory)
	lease.Unlock()
	got = collected(t, root, GCOptions{Saved: true})
	require.True(t, got[subs["changes"].rec.ID].Directory)
	require.False(t, got[subs["changes"].rec.ID].Refs)
	require.False(t, got[subs["changes, then more"].rec.ID].Directory)
	require.NoDirExists(t, subs["changes"].dir)
	require.True(t, got[subs["leased"].rec.ID].Directory, "it is free now")
	r, err := subs["changes"].apply()
	requireNo(t, err)
	require.True(t, r.Applied, "the refs are enough")
}

// fixtureOnly is a root with one of the trees of another.
func fixtureOnly(t *testing.T, root Root, s *sub) Root {
	t.Helper()
	other := fixtureRoot(t)
	// The patterns that git ignores by are those of the tree and of its clean git.
	if gone(root.cleanGit(s.rec.ID)) {
		require.NoError(t, makeCleanGit(root.cleanGit(s.rec.ID), s.rec.ObjectFormat, []string{filepath.Join(s.rec.CommonDir, "objects")}, ""))
	}
	require.NoError(t, os.Rename(root.Dir(s.rec.ID), other.Dir(s.rec.ID)))
	return other
}

// The refs of what was applied go only as long as the user has all of it.
func TestRefsOfAppliedChangesStayUntilTheyAreInPlace(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	s := newSub(t, u, root).put(map[string]string{"new": "1\n", "other": "changed\n"}).end()
	_, err := s.apply()
	requireNo(t, err)
	id := s.rec.ID
	require.NoError(t, os.WriteFile(filepath.Join(u.dir, "new"), []byte("edited\n"), 0o644))
	got := collected(t, root, GCOptions{})[id]
	require.Equal(t, GCApplied, got.Class)
	require.False(t, got.Refs)
	require.Contains(t, got.Why, "1 file that the working tree does not have as it left them, such as new")
	require.False(t, collected(t, root, GCOptions{Refs: true, OlderThan: time.Hour})[id].Refs, "it is too young")
	rec := s.reread()
	rec.EndedAt = time.Now().Add(-2 * time.Hour)
	requireNo(t, root.Write(rec))
	require.True(t, collected(t, root, GCOptions{Refs: true, OlderThan: time.Hour})[id].Refs)
	require.Empty(t, u.git("for-each-ref", "refs/hayward"))
}

func TestRefsWithoutARecord(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	s := newSub(t, u, root).put(map[string]string{"new": "1\n"}).end()
	require.NoError(t, os.RemoveAll(root.Dir(s.rec.ID)))
	require.Empty(t, collected(t, root, GCOptions{Repositories: []string{s.rec.CommonDir}}), "never by itself")
	_, err := root.GC(testContext(t), GCOptions{Refs: true, Repositories: []string{s.rec.CommonDir}})
	require.Equal(t, events.CodeInvalidRequest, err.Code)
	o := GCOptions{Refs: true, OlderThan: time.Hour, Repositories: []string{s.rec.CommonDir}}
	require.False(t, collected(t, root, o)[s.rec.ID].Refs, "too young")
	o.OlderThan = time.Nanosecond
	require.True(t, collected(t, root, o)[s.rec.ID].Refs)
	require.Empty(t, u.git("for-each-ref", "refs/hayward"))
}

func TestDiscard(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	sacred := u.sacred()
	for name, c := range map[string]struct {
		make  func() *sub
		force bool // it takes force
	}{
		"live":                {func() *sub { return newSub(t, u, root) }, false},
		"clean":               {func() *sub { return newSub(t, u, root).end() }, false},
		"changes":             {func() *sub { return newSub(t, u, root).put(map[string]string{"a": "1\n"}).end() }, true},
		"clean, ignored file": {func() *sub { return newSub(t, u, root).put(map[string]string{"a.o": "1\n"}).end() }, true},
		"applied": {func() *sub {
			s := newSub(t, u, root).put(map[string]string{"applied": "1\n"}).end()
			_, err := s.apply()
			requireNo(t, err)
			return s
		}, false},
		"read-only directories": {func() *sub {
			s := newSub(t, u, root).put(map[string]string{"ro/ro/a": "1\n"}).end()
			require.NoError(t, os.Chmod(filepath.Join(s.dir, "ro/ro"), 0o500))
			require.NoError(t, os.Chmod(filepath.Join(s.dir, "ro"), 0o500))
			return s
		}, true},
	} {
		s := c.make()
		r, err := root.DiscardEnded(testContext(t), s.rec.ID, false)
		switch {
		case name == "live":
			require.Equal(t, events.CodeBusy, err.Code)
			_, err = root.DiscardEnded(testContext(t), s.rec.ID, true)
			require.Equal(t, events.CodeBusy, err.Code, "not even by force")
			require.DirExists(t, s.dir)
			continue
		case c.force:
			require.NotNil(t, err, name)
			require.Equal(t, events.CodeWouldLose, err.Code, name)
			require.DirExists(t, s.dir)
			r, err = root.DiscardEnded(testContext(t), s.rec.ID, true)
			requireNo(t, err)
			require.NotEmpty(t, r.Lost, name)
		default:
			require.Nil(t, err, name)
		}
		require.NoDirExists(t, root.Dir(s.rec.ID), name)
		have, err := ListRefs(testContext(t), s.rec.CommonDir, s.rec.ID)
		requireNo(t, err)
		require.Empty(t, have, name)
	}
	require.Equal(t, sacred, u.sacred())

	gone := newSub(t, u, root).end()
	require.NoError(t, os.Rename(filepath.Join(u.dir, ".git"), filepath.Join(u.dir, "moved")))
	_, err := root.DiscardEnded(testContext(t), gone.rec.ID, false)
	require.Equal(t, events.CodeWouldLose, err.Code)
	require.Contains(t, err.Message, "is gone")
	_, err = root.DiscardEnded(testContext(t), gone.rec.ID, true)
	requireNo(t, err)
	require.NoDirExists(t, root.Dir(gone.rec.ID))
}

func TestBranch(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	sacred := u.sacred()
	s := newSub(t, u, root).init().put(map[string]string{"committed": "c\n"})
	s.inside("add", "-A")
	s.inside("commit", "-q", "-m", "its own")
	s.put(map[string]string{"uncommitted": "u\n", "text": ""}).end()
	before := filesIn(t, u.dir)
	r, err := root.Branch(testContext(t), s.rec.ID, "work/one")
	requireNo(t, err)
	require.True(t, r.Uncommitted)
	require.Equal(t, r.Commit, u.git("rev-parse", "work/one"))
	require.Equal(t, r.Head, u.git("rev-parse", "work/one~1"))
	require.Equal(t, "its own", u.git("log", "-1", "--format=%s", "work/one~1"))
	require.Equal(t, s.rec.BaseCommit, u.git("rev-parse", "work/one~2"))
	require.Equal(t, "D\ttext\nA\tuncommitted", u.git("diff", "--name-status", "work/one~1", "work/one"))
	require.Equal(t, before, filesIn(t, u.dir))
	u.git("branch", "-D", "work/one")
	require.Equal(t, sacred, u.sacred())

	for _, name := range []string{"main", "a..b", "-f", "HEAD", "x.lock", ""} {
		_, err = root.Branch(testContext(t), s.rec.ID, name)
		require.NotNil(t, err, name)
	}
	require.Equal(t, sacred, u.sacred())
	whole := newSub(t, u, root).init().put(map[string]string{"committed": "c\n"})
	whole.inside("add", "-A")
	whole.inside("commit", "-q", "-m", "all of it")
	whole.end()
	r, err = root.Branch(testContext(t), whole.rec.ID, "whole")
	requireNo(t, err)
	require.False(t, r.Uncommitted)
	require.Equal(t, r.Head, r.Commit)
}

// A repository that keeps LF and has CRLF in its files gets a branch that differs
// where the subagent worked and nowhere else.
func TestBranchKeepsLineEnds(t *testing.T) {
	u := newProject(t)
	u.git("config", "core.autocrlf", "true")
	u.git("rm", "-q", "--cached", "-r", ".")
	putFiles(t, u.dir, map[string]string{"text": strings.ReplaceAll(project["text"], "\n", "\r\n"), "other": "other\r\n", "lf": "l\nf\n"})
	u.commit("with CRLF in the files")
	s := newSub(t, u, fixtureRoot(t))
	s.put(map[string]string{"text": strings.ReplaceAll(project["text"], "\n", "\r\n") + "10\r\n", "lf": "l\r\nf\r\n"}).end()
	_, err := s.root.Branch(testContext(t), s.rec.ID, "b")
	requireNo(t, err)
	require.Equal(t, project["text"]+"10", u.git("show", "b:text"))
	require.Equal(t, "2\t2\tlf\n1\t0\ttext", u.git("diff", "--numstat", "main", "b"), "what it converted on purpose is a change")
}
