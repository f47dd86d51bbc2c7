package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// The subagent's tree is not trusted: what git would refuse is refused here.
func TestHostileTrees(t *testing.T) {
	u := newProject(t)
	for _, name := range []string{".git", ".GIT", "..", "git~1"} {
		s := newSub(t, u, fixtureRoot(t)).end()
		blob := u.git("hash-object", "-w", "text")
		hooks := mktree(t, u, "100755 blob "+blob+"\tpre-commit\n")
		s.ref(EndRef(s.rec.ID, RefTree), u.git("commit-tree", mktree(t, u, "040000 tree "+hooks+"\t"+name+"\n"), "-m", "evil"))
		before := filesIn(t, u.dir)
		_, err := s.apply()
		require.NotNil(t, err, name)
		require.Equal(t, events.CodeWorktreeFailed, err.Code)
		require.Equal(t, before, filesIn(t, u.dir))
		require.NoFileExists(t, filepath.Join(u.dir, ".git/pre-commit"))
		require.NoFileExists(t, filepath.Join(filepath.Dir(u.dir), "pre-commit"))
	}
	s := newSub(t, u, fixtureRoot(t)).end()
	s.ref(EndRef(s.rec.ID, RefTree), u.git("commit-tree", mktree(t, u, "160000 commit "+u.git("rev-parse", "HEAD")+"\tsub\n"), "-m", "gitlink"))
	r, err := s.apply()
	requireNo(t, err)
	require.Equal(t, ConflictRepository, r.Conflicts[len(r.Conflicts)-1].Kind)
}

func mktree(t *testing.T, u *user, lines string) string {
	t.Helper()
	out, err := userGit(filepath.Join(u.dir, ".git"), "").OutputOf(testContext(t), Call{Stdin: strings.NewReader(lines)}, "mktree")
	requireNo(t, err)
	return strings.TrimSpace(string(out))
}

func TestPrivateModesArrive(t *testing.T) {
	u := newProject(t)
	s := newSub(t, u, fixtureRoot(t)).put(map[string]string{"secret": "s\n"})
	require.NoError(t, os.Chmod(filepath.Join(s.dir, "secret"), 0o600))
	s.end()
	_, err := s.apply()
	requireNo(t, err)
	info, statErr := os.Stat(filepath.Join(u.dir, "secret"))
	require.NoError(t, statErr)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestApplyRefusals(t *testing.T) {
	u := newProject(t)
	root := fixtureRoot(t)
	_, err := root.Apply(testContext(t), events.NewID(), ApplyOptions{})
	require.Equal(t, events.CodeUnknownID, err.Code)
	_, err = root.Apply(testContext(t), "../x", ApplyOptions{})
	require.Equal(t, events.CodeInvalidID, err.Code)

	live := newSub(t, u, root)
	_, err = live.apply()
	require.Equal(t, events.CodeBusy, err.Code)

	held := newSub(t, u, root).put(map[string]string{"new": "n\n"}).end()
	lease, err := root.TryLease(held.rec.ID)
	requireNo(t, err)
	_, err = held.apply()
	require.Equal(t, events.CodeBusy, err.Code)
	lease.Unlock()

	partly := newSub(t, u, root).put(map[string]string{"new": "n\n"}).end()
	partly.rec.Problem = workFailed(partly.rec.ID, "save", os.ErrPermission)
	partly.write()
	_, err = partly.apply()
	require.Equal(t, events.CodeWorktreeFailed, err.Code)

	require.NoError(t, os.Rename(filepath.Join(u.dir, ".git"), filepath.Join(u.dir, "moved")))
	require.NoError(t, os.Symlink("moved", filepath.Join(u.dir, ".git")))
	u.git("init", "-q", filepath.Join(u.dir, "other repository"))
	require.NoError(t, os.Remove(filepath.Join(u.dir, ".git")))
	held.rec.GitDir, held.rec.CommonDir = filepath.Join(u.dir, "moved"), filepath.Join(u.dir, "moved")
	held.write()
	require.NoError(t, os.Rename(filepath.Join(u.dir, "other repository/.git"), filepath.Join(u.dir, ".git")))
	_, err = held.apply()
	require.Equal(t, events.CodeNotRepository, err.Code, "the working tree is of another repository now")
	require.NoFileExists(t, filepath.Join(u.dir, "new"))
}
