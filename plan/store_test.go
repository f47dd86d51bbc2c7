package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestRecordKeepsThePlan(t *testing.T) {
	p := parse(t, `
fail_fast = true
jobs = 3
on_done = ["a", "b"]
[defaults]
env = { A = "x" }
max_runtime = "90s"
sandbox_best_effort = true
[[subagent]]
name = "one"
command = ["printf", "\u0001é"]
add_dirs = ["x"]
labels = { k = "v" }
pass_env = ["P"]
isolation = "none"
prompt_file = "t"
[[subagent]]
name = "two"
for_each = ["i", "j"]
shell = "cat {item}"
needs = ["one"]
on_done = "true"
`)
	runs := Runs{Dir: filepath.Join(t.TempDir(), "state", "runs")}
	rec, err := runs.Create(p)
	require.NoError(t, err)
	require.NoError(t, rec.Close())
	found, err := runs.Find(rec.ID[30:])
	require.NoError(t, err)
	require.Equal(t, p, found.Plan)
	require.Equal(t, rec.StartedAt, found.StartedAt)
	info, err := os.Stat(filepath.Join(runs.Dir, rec.ID))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestOneProcessExecutesARun(t *testing.T) {
	runs := Runs{Dir: t.TempDir()}
	rec, err := runs.Create(parse(t, entries("a")))
	require.NoError(t, err)
	pid, driven := rec.Driver()
	require.True(t, driven)
	require.Equal(t, os.Getpid(), pid)
	other, err := runs.Last()
	require.NoError(t, err)
	err = other.take(0)
	require.True(t, events.HasCode(err, events.CodeBusy))
	require.ErrorContains(t, err, "run "+rec.ID+" goes on already, in process ")
	require.ErrorContains(t, err, "hayward report "+shortID(rec.ID))
	require.NoError(t, rec.Close())
	_, driven = rec.Driver()
	require.False(t, driven)
	require.NoError(t, other.Take())
	require.NoError(t, other.Close())
}

func TestFindRuns(t *testing.T) {
	runs := Runs{Dir: filepath.Join(t.TempDir(), "none")}
	_, err := runs.Last()
	require.True(t, events.HasCode(err, events.CodeUnknownID))
	require.ErrorContains(t, err, "there is no run yet")
	list, err := runs.List()
	require.NoError(t, err)
	require.Empty(t, list)

	var ids []string
	for range 3 {
		rec, err := runs.Create(parse(t, entries("a")))
		require.NoError(t, err)
		require.NoError(t, rec.Close())
		ids = append(ids, rec.ID)
	}
	// A process that died before its record was there has started nothing.
	require.NoError(t, os.Mkdir(filepath.Join(runs.Dir, events.NewID()), 0o700))
	last, err := runs.Last()
	require.NoError(t, err)
	require.Equal(t, ids[2], last.ID)
	list, err = runs.List()
	require.NoError(t, err)
	require.Len(t, list, 3)
	for _, ref := range []string{"zzzz", ids[0][33:], "../" + ids[0], "", ids[0][:8]} {
		_, err := runs.Find(ref)
		require.True(t, events.HasCode(err, events.CodeUnknownID), "%q: %v", ref, err)
	}
	twin := ids[0][:4] + "0000" + ids[0][8:]
	require.NoError(t, os.Mkdir(filepath.Join(runs.Dir, twin), 0o700))
	_, err = runs.Find(shortID(ids[0]))
	require.True(t, events.HasCode(err, events.CodeAmbiguousID), err)

	require.NoError(t, os.WriteFile(filepath.Join(runs.Dir, ids[1], runFile), []byte(`{"schema":99}`), 0o600))
	_, err = runs.Find(ids[1])
	require.True(t, events.HasCode(err, events.CodeStoreDamaged), err)
}

func TestForgetOldRuns(t *testing.T) {
	runs := Runs{Dir: t.TempDir()}
	old := func(age time.Duration) string {
		id := uuid.Must(uuid.NewV7())
		ms := time.Now().Add(-age).UnixMilli()
		for i := range 6 {
			id[i] = byte(ms >> (8 * (5 - i)))
		}
		require.NoError(t, os.Mkdir(filepath.Join(runs.Dir, id.String()), 0o700))
		return id.String()
	}
	gone, held, kept := old(retention+time.Hour), old(retention+2*time.Hour), old(retention-time.Hour)
	rec := &Record{ID: held, dir: filepath.Join(runs.Dir, held)}
	require.NoError(t, rec.take(0))
	require.NoError(t, runs.Forget(time.Now().Add(-retention)))
	require.NoDirExists(t, filepath.Join(runs.Dir, gone))
	require.DirExists(t, filepath.Join(runs.Dir, held))
	require.DirExists(t, filepath.Join(runs.Dir, kept))
	require.NoError(t, rec.Close())
}

// TestJournal: a line that a dying process left half written is no end, and the
// next line is whole again.
func TestJournal(t *testing.T) {
	runs := Runs{Dir: t.TempDir()}
	rec, err := runs.Create(parse(t, entries("a")))
	require.NoError(t, err)
	require.NoError(t, rec.Keep(Result{Name: "a", Attempt: 1, Status: StateFailed}))
	_, err = rec.journal.WriteString(`{"name":"a","attempt":2,"sta`)
	require.NoError(t, err)
	ends, err := rec.ends()
	require.NoError(t, err)
	require.Len(t, ends["a"], 1)
	require.NoError(t, rec.Close())
	require.NoError(t, rec.Take())
	require.NoError(t, rec.Keep(Result{Name: "a", Attempt: 2, Status: StateCompleted}))
	require.NoError(t, rec.Keep(Result{Name: "a", Attempt: 2, Status: StateCompleted, OnDone: &HookResult{}}))
	ends, err = rec.ends()
	require.NoError(t, err)
	require.Equal(t, StateFailed, ends["a"][1].Status)
	require.NotNil(t, ends["a"][2].OnDone)
	_, err = rec.journal.WriteString("damage\n")
	require.NoError(t, err)
	_, err = rec.ends()
	require.True(t, events.HasCode(err, events.CodeStoreDamaged), err)
	require.NoError(t, rec.Close())
}

func TestChanged(t *testing.T) {
	path := write(t, entries("a"))
	p, err := Load(path)
	require.NoError(t, err)
	rec := &Record{Plan: p}
	require.Empty(t, rec.Changed())
	require.NoError(t, os.WriteFile(path, []byte(entries("b")), 0o600))
	require.Equal(t, path+" has changed", rec.Changed())
	require.NoError(t, os.Remove(path))
	require.Equal(t, path+" is gone", rec.Changed())
	p.Digest = ""
	require.Empty(t, rec.Changed())
}

// TestRunThatCannotBeKept starts nothing.
func TestRunThatCannotBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	f := newFake(nil)
	code, _, errs := commanded(t, Flags{Plan: parse(t, entries("a")), Runs: Runs{Dir: filepath.Join(file, "runs")}}, f)
	require.Equal(t, ExitOwnError, code)
	require.Contains(t, errs, "make the record of run ")
	require.Empty(t, f.order)
}

func TestListRuns(t *testing.T) {
	runs := Runs{Dir: t.TempDir()}
	f := newFake(map[string]behavior{"bad": {exit: 1}})
	code, _, _ := commanded(t, Flags{Plan: parse(t, entries("a")), Runs: runs}, f)
	require.Equal(t, ExitCompleted, code)
	code, _, _ = commanded(t, Flags{Plan: parse(t, entries("a", "bad")), Runs: runs}, f)
	require.Equal(t, ExitFailed, code)
	died, err := runs.Create(parse(t, entries("a", "b")))
	require.NoError(t, err)
	require.NoError(t, died.Keep(Result{Name: "a", Attempt: 1, Status: StateCompleted}))
	require.NoError(t, died.Close())
	running, err := runs.Create(parse(t, entries("a")))
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, runs.PrintList(&b, false))
	require.Regexp(t, `^RUN +PLAN +STARTED +STATUS +COMPLETED
\S+ +test +\S+ \S+ +completed +1 of 1
\S+ +test +\S+ \S+ +failed +1 of 2
\S+ +test +\S+ \S+ +died +1 of 2
\S+ +test +\S+ \S+ +running +0 of 1
$`, b.String())
	b.Reset()
	require.NoError(t, runs.PrintList(&b, true))
	var list struct {
		Runs []ListedRun `json:"runs"`
	}
	require.NoError(t, events.DecodeRecord([]byte(b.String()), &list))
	require.Len(t, list.Runs, 4)
	require.Equal(t, os.Getpid(), list.Runs[3].PID)
	require.NoError(t, running.Close())
}
