package resume

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// put writes a file below a directory.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// tree lists the files below a directory with what is in them.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		body, err := os.ReadFile(path)
		name, relErr := filepath.Rel(dir, path)
		all[name] = string(body)
		return errors.Join(err, relErr)
	}))
	return all
}

func root(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// agentDir is the run directory of a claude that worked in /w.
func agentDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, TranscriptFile, string(transcriptOf(t, events.Item{Kind: events.ItemPrompt, Text: "in /w"}, call("a"))))
	put(t, dir, "home/projects/-w/"+agentID+".jsonl", "{\"cwd\":\"/w\"}\n{\"cwd\":\"/w\",\"te")
	put(t, dir, "home/projects/-w/"+agentID+"/tool-results/b.txt", "/w\n")
	put(t, dir, "home/projects/-w/another.jsonl", "{}\n")
	put(t, dir, "home/todos/"+agentID+"-agent.json", "[]")
	put(t, dir, "home/file-history/"+agentID+"/f@v1", "old")
	put(t, dir, "home/plans/plan.md", "the plan")
	put(t, dir, "home/settings.json", "{}")
	for _, name := range []string{ToolStateFile, PlanStateFile, PlanModeFile, SignalsFile} {
		put(t, dir, StateDir+"/"+name, `{"schema":1,"path":"/w/f"}`)
	}
	put(t, dir, "spec.json", "{}")
	put(t, dir, "stdout.log", "out")
	return dir
}

func transfer(t *testing.T, from, to string) Transfer {
	return Transfer{
		ID: sourceID, From: root(t, from), To: root(t, to), Runner: events.AgentClaude, Session: agentID,
		Cwd: "/trees/x.y", Paths: NewPaths(Move{"/w", "/trees/x.y"}),
	}
}

// Of a source with every session file, transcript, session and tool state come along,
// and nothing else.
func TestCopy(t *testing.T) {
	from, to := agentDir(t), t.TempDir()
	before := tree(t, from)
	require.NoError(t, os.Mkdir(filepath.Join(to, "home"), 0o700))
	put(t, to, "spec.json", "mine")
	put(t, to, "home/left", "of an attempt that was cut off")
	copied, err := Copy(transfer(t, from, to))
	require.NoError(t, err)
	got := tree(t, to)
	require.EqualValues(t, len(got[TranscriptFile]), copied.Bytes)
	require.EqualValues(t, 3, copied.Items, "the open call has a result")
	require.Contains(t, got[TranscriptFile], "in /trees/x.y")
	delete(got, TranscriptFile)
	require.Equal(t, map[string]string{
		"spec.json": "mine",
		"home/projects/-trees-x-y/" + agentID + ".jsonl":              "{\"cwd\":\"/trees/x.y\"}\n",
		"home/projects/-trees-x-y/" + agentID + "/tool-results/b.txt": "/w\n",
		"home/todos/" + agentID + "-agent.json":                       "[]",
		"home/file-history/" + agentID + "/f@v1":                      "old",
		filepath.Join(StateDir, ToolStateFile):                        `{"schema":1,"path":"/trees/x.y/f"}`,
	}, got)
	require.Equal(t, before, tree(t, from), "the source is as it was")
	require.NoError(t, Clear(root(t, to)))
	require.Equal(t, map[string]string{"spec.json": "mine"}, tree(t, to))
}

func TestCopyOfCodex(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	put(t, from, TranscriptFile, string(transcriptOf(t, events.Item{Kind: events.ItemPrompt, Text: "x"})))
	name := "home/sessions/2026/11/30/rollout-2026-11-30T00-00-00-" + agentID + ".jsonl"
	put(t, from, name, "{\"type\":\"session_meta\"}\n{\"type\":\"turn_context\",\"payload\":{\"model\":\"gpt-5\",\"cwd\":\"/w\"}}\n")
	put(t, from, "home/config.toml", "")
	model, err := FindSession(root(t, filepath.Join(from, "home")), events.AgentCodex, agentID)
	require.NoError(t, err)
	require.Equal(t, "gpt-5", model)
	x := transfer(t, from, to)
	x.Runner = events.AgentCodex
	_, err = Copy(x)
	require.NoError(t, err)
	got := tree(t, to)
	require.Len(t, got, 2)
	require.Contains(t, got[name], `"cwd":"/trees/x.y"`)
}

// What a subagent put in the place of its files is refused, and nothing is left.
func TestCopyRefusesWhatIsNoFile(t *testing.T) {
	session := "home/projects/-w/" + agentID + ".jsonl"
	for name, c := range map[string]struct {
		path string
		make func(string) error
	}{
		"session is a link":     {session, func(p string) error { return os.Symlink("/etc/passwd", p) }},
		"session is a pipe":     {session, func(p string) error { return unix.Mkfifo(p, 0o600) }},
		"session is gone":       {session, func(string) error { return nil }},
		"state is a link":       {StateDir + "/" + ToolStateFile, func(p string) error { return os.Symlink("plan_state.json", p) }},
		"state is no JSON":      {StateDir + "/" + ToolStateFile, func(p string) error { return os.WriteFile(p, []byte("{"), 0o600) }},
		"state is no object":    {StateDir + "/" + ToolStateFile, func(p string) error { return os.WriteFile(p, []byte("[]"), 0o600) }},
		"state is too large":    {StateDir + "/" + ToolStateFile, func(p string) error { return os.WriteFile(p, make([]byte, maxState+1), 0o600) }},
		"transcript is damaged": {TranscriptFile, func(p string) error { return os.WriteFile(p, []byte("{}\n{}\n"), 0o600) }},
		"transcript is empty":   {TranscriptFile, func(p string) error { return os.WriteFile(p, nil, 0o600) }},
		"transcript is gone":    {TranscriptFile, func(string) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := agentDir(t), t.TempDir()
			require.NoError(t, os.Remove(filepath.Join(from, c.path)))
			require.NoError(t, c.make(filepath.Join(from, c.path)))
			_, err := Copy(transfer(t, from, to))
			require.Error(t, err)
			require.Empty(t, tree(t, to))
		})
	}
	from, to := agentDir(t), t.TempDir()
	x := transfer(t, from, to)
	x.Session = "../../x"
	_, err := Copy(x)
	require.ErrorContains(t, err, "is not the name of a session")
	x.Session, x.Cwd = agentID, "/"+strings.Repeat("d", 300)
	_, err = Copy(x)
	require.ErrorContains(t, err, "too long for claude")
	require.Empty(t, tree(t, to))
}

// On a full disk nothing is left, and the error says what was full.
func TestCopyOnAFullDisk(t *testing.T) {
	small := t.TempDir()
	err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=256k")
	if errors.Is(err, unix.EPERM) {
		t.Skip("needs the right to mount: a small file system")
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Unmount(small, 0)) })
	from := agentDir(t)
	var body bytes.Buffer
	_, err = io.Copy(&body, &long{left: 2 << 20})
	require.NoError(t, err)
	put(t, from, TranscriptFile, body.String())
	before := tree(t, from)
	to, err := os.OpenRoot(small)
	require.NoError(t, err)
	defer to.Close()
	x := transfer(t, from, t.TempDir())
	x.To = to
	_, err = Copy(x)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Empty(t, tree(t, small))
	require.Equal(t, before, tree(t, from))
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(small, &st))
	require.InDelta(t, st.Blocks, st.Bfree, 16, "the space is free again")
}

func TestFindSession(t *testing.T) {
	dir := filepath.Join(agentDir(t), "home")
	home := root(t, dir)
	_, err := FindSession(home, events.AgentClaude, agentID)
	require.NoError(t, err)
	for _, id := range []string{"", "-p", "a/b", "..", strings.Repeat("a", 129), "none"} {
		_, err := FindSession(home, events.AgentClaude, id)
		require.Error(t, err, id)
	}
	put(t, dir, "projects/-w2/"+agentID+".jsonl", "{}")
	_, err = FindSession(home, events.AgentClaude, agentID)
	require.ErrorContains(t, err, "several")
	require.NoError(t, os.Truncate(filepath.Join(dir, "projects/-w/"+agentID+".jsonl"), 0))
	_, err = FindSession(home, events.AgentClaude, agentID)
	require.ErrorContains(t, err, "is empty")
}
