package resume

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func use(tool, input string) events.Item {
	return events.Item{Kind: events.ItemToolCall, Tool: tool, ToolID: tool, Input: []byte(input)}
}

// The state of an agent is what its transcript says of its own run, over what it
// took up.
func TestWatcher(t *testing.T) {
	work, run := t.TempDir(), t.TempDir()
	put(t, work, "a.txt", "hello\n")
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(work, "link")))
	earlier := use("Read", `{"file_path":"`+work+`/earlier"}`)
	earlier.From = sourceID
	inside := use("Read", `{"file_path":"`+work+`/of-an-agent-inside"}`)
	inside.ParentToolID = "x"
	w := NewWatcher(ToolState{FilesRead: []FileRead{{Path: work + "/a.txt"}, {Path: "/before"}}, BackgroundCommands: []BackgroundCommand{{Command: "of the run before"}}}, false)
	require.NoError(t, Watch(bytes.NewReader(transcriptOf(t,
		earlier, inside,
		use("Read", `{"file_path":"`+work+`/a.txt"}`),
		use("Read", `{"file_path":"/etc/passwd"}`),
		use("Read", `{"file_path":"`+work+`/link"}`),
		use("Read", `{"other":1}`),
		use("Bash", `{"command":"sleep 9","run_in_background":true}`),
		use("Bash", `{"command":"ls"}`),
		use("TodoWrite", `{"todos":[{"content":"one","status":"pending"}]}`),
		use("TodoWrite", `{"todos":[{"content":"one","status":"completed"},{"content":"two","status":"pending"}]}`),
		use("ExitPlanMode", `{"plan":"do it"}`),
	)), w))
	require.NoError(t, w.Finish(t.Context(), root(t, run), work, Signals{Turns: 2, ToolCalls: 9, StopRequests: []string{"user"}}))
	sum := sha256.Sum256([]byte("hello\n"))
	read := func(name string, v any) {
		body, err := os.ReadFile(filepath.Join(run, StateDir, name))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, v))
	}
	var tools ToolState
	read(ToolStateFile, &tools)
	require.Equal(t, ToolState{
		Schema:             1,
		FilesRead:          []FileRead{{Path: "/before"}, {work + "/a.txt", hex.EncodeToString(sum[:])}, {Path: "/etc/passwd"}, {Path: work + "/link"}},
		BackgroundCommands: []BackgroundCommand{{"Bash", "sleep 9"}},
		Todo:               []TodoItem{{"one", "completed"}, {"two", "pending"}},
	}, tools)
	var plan PlanState
	read(PlanStateFile, &plan)
	require.Equal(t, PlanState{1, "do it"}, plan)
	var mode PlanMode
	read(PlanModeFile, &mode)
	require.Equal(t, PlanMode{1, PlanPending}, mode)
	var signals Signals
	read(SignalsFile, &signals)
	require.Equal(t, Signals{Schema: 1, Turns: 2, ToolCalls: 9, StopRequests: []string{"user"}}, signals)

	again, err := ReadToolState(root(t, run))
	require.NoError(t, err)
	require.Equal(t, tools, again)
	w.Add(use("Bash", `{"command":"ls"}`))
	require.Equal(t, PlanInactive, w.mode)
	require.Equal(t, PlanActive, NewWatcher(ToolState{}, true).mode)
	none, err := ReadToolState(root(t, t.TempDir()))
	require.NoError(t, err)
	require.Zero(t, none)
}

// How much is hashed for an end is bounded, what was read last comes first, and it
// ends with its context.
func TestHashingIsBounded(t *testing.T) {
	work, run := t.TempDir(), t.TempDir()
	sparse := func(name string, size int64) {
		put(t, work, name, "")
		require.NoError(t, os.Truncate(filepath.Join(work, name), size))
	}
	sparse("large", maxHashed+1)
	sparse("most", maxHashed)
	put(t, work, "first", "x")
	before := ToolState{FilesRead: []FileRead{{filepath.Join(work, "first"), "of the run before"}}}
	for range maxHashing / maxHashed {
		before.FilesRead = append(before.FilesRead, FileRead{Path: filepath.Join(work, "most")})
	}
	before.FilesRead = append(before.FilesRead, FileRead{Path: filepath.Join(work, "large")})

	w := NewWatcher(before, false)
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, w.Finish(ended, root(t, run), work, Signals{}), context.Canceled)
	require.NoDirExists(t, filepath.Join(run, StateDir))

	require.NoError(t, w.Finish(t.Context(), root(t, run), work, Signals{}))
	after, err := ReadToolState(root(t, run))
	require.NoError(t, err)
	files := after.FilesRead
	require.Len(t, files, len(before.FilesRead))
	require.Empty(t, files[0].SHA256, "it was read first and is one too many")
	for _, f := range files[1 : len(files)-1] {
		require.Len(t, f.SHA256, 64)
	}
	require.Empty(t, files[len(files)-1].SHA256)

	w = NewWatcher(ToolState{FilesRead: []FileRead{{filepath.Join(work, "first"), "of the run before"}}}, false)
	require.NoError(t, w.Finish(t.Context(), root(t, run), filepath.Join(work, "gone"), Signals{}))
	after, err = ReadToolState(root(t, run))
	require.NoError(t, err)
	require.Empty(t, after.FilesRead[0].SHA256, "that of the run before is not that of this one")
}
