package worktree

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// TestGitIsDeaf: neither the caller's environment nor the repository's own
// configuration makes git do something else.
func TestGitIsDeaf(t *testing.T) {
	u := newUser(t)
	u.write("a", "1\n")
	head := u.commit("one")
	other := newUser(t)
	for name, value := range map[string]string{
		"GIT_DIR": filepath.Join(other.dir, ".git"), "GIT_INDEX_FILE": "/nowhere", "GIT_WORK_TREE": other.dir,
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": "/nowhere",
		"GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_NAMESPACE": "x",
	} {
		t.Setenv(name, value)
	}
	mark := filepath.Join(t.TempDir(), "ran")
	hook := filepath.Join(u.dir, ".git/hooks/reference-transaction")
	require.NoError(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+mark+"\n"), 0o755))

	got, err := userGit(filepath.Join(u.dir, ".git"), "").Line(testContext(t), "rev-parse", "HEAD")
	requireNo(t, err)
	require.Equal(t, head, got)
	id := events.NewID()
	requireNo(t, UpdateRefs(testContext(t), filepath.Join(u.dir, ".git"), id, map[string]string{BaseRef(id, RefHead): head}))
	require.NoFileExists(t, mark)
	refs, err := ListRefs(testContext(t), filepath.Join(u.dir, ".git"), id)
	requireNo(t, err)
	require.Equal(t, map[string]string{"base/head": head}, refs)
	requireNo(t, DeleteRefs(testContext(t), filepath.Join(u.dir, ".git"), id))
	refs, err = ListRefs(testContext(t), filepath.Join(u.dir, ".git"), id)
	requireNo(t, err)
	require.Empty(t, refs)
}

// TestGitFails: an error names the operation, the repository, the subagent and
// what git said; git that does not end is ended.
func TestGitFails(t *testing.T) {
	u := newUser(t)
	id := events.NewID()
	g := userGit(filepath.Join(u.dir, ".git"), id)
	err := g.Run(testContext(t), Call{}, "cat-file", "-p", "0123456789")
	require.Equal(t, events.CodeGitFailed, err.Code)
	require.Contains(t, err.Message, id)
	require.Contains(t, err.Message, "cat-file")
	require.Equal(t, g.Dir, err.Details["repository"])
	require.NotEmpty(t, err.Details["stderr"])
	require.Equal(t, 128, ExitStatus(err))

	r, w, perr := os.Pipe()
	require.NoError(t, perr)
	defer w.Close()
	defer r.Close()
	g.Timeout = 50 * time.Millisecond
	err = g.Run(testContext(t), Call{Stdin: r}, "cat-file", "--batch")
	require.Equal(t, events.CodeGitFailed, err.Code)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestRefsRefused: nothing but a subagent's own refs can be set.
func TestRefsRefused(t *testing.T) {
	u := newUser(t)
	head := u.commit("one")
	id, other := events.NewID(), events.NewID()
	for _, name := range []string{"refs/heads/main", BaseRef(other, RefHead), EndRef(id, "heads/../x"), EndRef(id, "heads/a b"), EndRef(id, "heads/-x")} {
		require.Error(t, UpdateRefs(testContext(t), filepath.Join(u.dir, ".git"), id, map[string]string{name: head}), name)
	}
	require.Error(t, UpdateRefs(testContext(t), filepath.Join(u.dir, ".git"), "../x", nil))
}

// TestModes: what git cannot keep survives a commit's message.
func TestModes(t *testing.T) {
	m := make(Modes)
	m.note("plain", 0o644)
	m.note("tool", 0o755)
	m.note("secret", 0o600)
	m.note("a \"b\"\nc\xff", 0o750)
	require.Len(t, m, 2)
	require.Equal(t, m, ParseModes(m.Message("subject")))
	require.Equal(t, os.FileMode(0o600), m.Mode("secret", false))
	require.Equal(t, os.FileMode(0o755), m.Mode("tool", true))
}

// TestLease: one holder at a time; a record survives a round trip.
func TestLease(t *testing.T) {
	root, err := Open(filepath.Join(t.TempDir(), "trees"))
	requireNo(t, err)
	id := events.NewID()
	_, err = root.Read(id)
	require.Equal(t, events.CodeUnknownID, err.Code)
	require.NoError(t, os.Mkdir(root.Dir(id), 0o700))
	l, err := root.TryLease(id)
	requireNo(t, err)
	_, err = root.TryLease(id)
	require.Equal(t, events.CodeBusy, err.Code)
	l.Unlock()
	l, err = root.Lease(testContext(t), id)
	requireNo(t, err)
	defer l.Unlock()
	rec := Record{ID: id, Name: "project", State: StateLive, Repository: "/r", CreatedAt: time.Now().UTC()}
	requireNo(t, root.Write(rec))
	got, err := root.Read(id)
	requireNo(t, err)
	rec.Schema = recordSchema
	require.Equal(t, rec, got)
	ids, err := root.List()
	requireNo(t, err)
	require.Equal(t, []string{id}, ids)
}
