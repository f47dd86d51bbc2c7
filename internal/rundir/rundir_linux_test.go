package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hayward-dev/hayward/internal/testkit"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestMain(m *testing.M) { testkit.LeakCheck(m) }

func openRoot(t *testing.T) Root {
	t.Helper()
	r, err := Open(filepath.Join(t.TempDir(), "subagents"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func create(t *testing.T, r Root) *Dir {
	t.Helper()
	d, err := r.Create(events.NewID())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func put(t *testing.T, d *Dir, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(d.Path(), name), []byte(content), 0o600))
}

func TestDocumentsComeBack(t *testing.T) {
	d := create(t, openRoot(t))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec := events.Spec{Schema: 1, ID: d.ID(), Run: 1, CreatedAt: at, Request: events.Spawn{
		ParentSessionID: "s", Command: []string{"printf", "not \xff UTF-8"}, Prompt: strings.Repeat("p", events.MaxPrompt)}}
	require.NoError(t, d.WriteSpec(spec))
	got, err := d.ReadSpec()
	require.NoError(t, err)
	spec.Request.Command[1] = "not \uFFFD UTF-8" // JSON has nothing else for it
	require.Equal(t, spec, got)

	record := events.Record{Schema: 1, ID: d.ID(), Run: 1, Seq: 3, State: events.StateCompleted, CreatedAt: at}
	require.NoError(t, d.WriteResult(record))
	record.Seq++
	require.NoError(t, d.WriteResult(record), "a later one replaces it")
	result, err := d.ReadResult()
	require.NoError(t, err)
	require.Equal(t, record, result)
	require.NoError(t, d.WriteRecord(record))
	result, err = d.ReadRecord()
	require.NoError(t, err)
	require.Equal(t, record, result)
	report := events.SandboxReport{Requested: "Workspace", Profile: "workspace", Active: true}
	require.NoError(t, d.WriteSandbox(report))
	back, err := d.ReadSandbox()
	require.NoError(t, err)
	require.Equal(t, report, back)

	names, err := d.Files()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{SpecFile, ResultFile, RecordFile, SandboxFile}, names, "no temporary file stays")
	for _, name := range names {
		st, err := os.Lstat(filepath.Join(d.Path(), name))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), st.Mode())
	}
	st, err := os.Lstat(d.Path())
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|0o700, st.Mode())
}

func TestTornDocuments(t *testing.T) {
	d := create(t, openRoot(t))
	_, err := d.ReadSpec()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.False(t, errors.Is(err, ErrTorn), "a missing file is not a torn one")
	require.NoError(t, d.WriteSpec(events.Spec{Schema: 1, ID: d.ID(), Run: 1}))
	whole, err := os.ReadFile(filepath.Join(d.Path(), SpecFile))
	require.NoError(t, err)
	for name, content := range map[string]string{
		"empty":        "",
		"half":         string(whole[:len(whole)/2]),
		"zeros":        strings.Repeat("\x00", len(whole)),
		"wrong type":   `{"schema":"one"}`,
		"of another":   strings.ReplaceAll(string(whole), d.ID(), events.NewID()),
		"trailing":     string(whole) + "{}",
		"far too long": strings.Repeat(" ", maxDocument+1),
	} {
		t.Run(name, func(t *testing.T) {
			put(t, d, SpecFile, content)
			_, err := d.ReadSpec()
			require.ErrorIs(t, err, ErrTorn)
			require.True(t, events.HasCode(err, events.CodeStoreDamaged))
			require.ErrorContains(t, err, filepath.Join(d.Path(), SpecFile))
		})
	}
}

func TestReport(t *testing.T) {
	d := create(t, openRoot(t))
	_, err := d.ReadReport()
	require.ErrorIs(t, err, fs.ErrNotExist)
	put(t, d, ReportFile, "")
	_, err = d.ReadReport()
	require.ErrorIs(t, err, ErrNoReport)
	require.NotErrorIs(t, err, ErrTorn, "it was never written")
	first := `{"schema":1,"id":"` + d.ID() + `","run":1,"stdout_bytes":1,"new_member":true}`
	second := `{"schema":1,"id":"` + d.ID() + `","run":2,"stdout_bytes":2}`
	for name, c := range map[string]struct {
		content string
		run     int // 0: torn
	}{
		"one":                 {first, 1},
		"one with a newline":  {first + "\n", 1},
		"the last counts":     {first + "\n" + second + "\n", 2},
		"torn":                {first[:20], 0},
		"torn behind a whole": {first + "\n" + second[:20], 0},
		"of another":          {`{"schema":1,"id":"x","run":1}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, d, ReportFile, c.content)
			r, err := d.ReadReport()
			if c.run == 0 {
				require.ErrorIs(t, err, ErrTorn)
				require.Zero(t, r)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.run, r.Run)
		})
	}
}

// Whatever lies in a run directory, nothing outside is opened and no open
// blocks.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	d := create(t, openRoot(t))
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(d.Path(), StdoutFile)))
	require.NoError(t, syscall.Mkfifo(filepath.Join(d.Path(), StderrFile), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(d.Path(), TranscriptFile), 0o700))
	for _, name := range []string{StdoutFile, StderrFile, TranscriptFile, "", ".", "..", "../x", "/etc/passwd", "a/b"} {
		_, err := d.OpenRead(name)
		require.Errorf(t, err, "read %q", name)
		_, err = d.OpenAppend(name)
		require.Errorf(t, err, "append to %q", name)
		_, err = d.Output(name, 10, 5, 5)
		require.Error(t, err)
		_, err = d.TailOffset(name, 1)
		require.Error(t, err)
		_, _, err = d.ReadAt(name, 0, 10)
		require.Error(t, err)
	}
	content, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "secret", string(content))
}

func TestAppend(t *testing.T) {
	d := create(t, openRoot(t))
	for _, s := range []string{"one\n", "two\n"} {
		f, err := d.OpenAppend(StdoutFile)
		require.NoError(t, err)
		_, err = f.WriteString(s)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	data, size, err := d.ReadAt(StdoutFile, 2, 4)
	require.NoError(t, err)
	require.Equal(t, "e\ntw", string(data))
	require.EqualValues(t, 8, size)
	for _, off := range []int64{8, 9, 1 << 40} {
		data, size, err = d.ReadAt(StdoutFile, off, 4)
		require.NoError(t, err)
		require.Empty(t, data)
		require.EqualValues(t, 8, size)
	}
	_, _, err = d.ReadAt(StdoutFile, -1, 4)
	require.Error(t, err)
}

func TestRoot(t *testing.T) {
	r := openRoot(t)
	a, b := create(t, r), create(t, r)
	require.NoError(t, os.Mkdir(filepath.Join(r.Path(), "stranger"), 0o700))
	ids, err := r.List()
	require.NoError(t, err)
	require.Equal(t, []string{a.ID(), b.ID()}, ids)

	_, err = r.Create(a.ID())
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = r.Open(events.NewID())
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, id := range []string{"", "..", "x", a.ID() + "/..", strings.ToUpper(a.ID())} {
		_, err := r.Create(id)
		require.Truef(t, events.HasCode(err, events.CodeInvalidID), "create %q: %v", id, err)
		_, err = r.Open(id)
		require.Truef(t, events.HasCode(err, events.CodeInvalidID), "open %q: %v", id, err)
		require.Truef(t, events.HasCode(r.Remove(id), events.CodeInvalidID), "remove %q", id)
	}

	put(t, a, StdoutFile, "x")
	require.NoError(t, r.Condemn(a.ID()))
	ids, err = r.Condemned()
	require.NoError(t, err)
	require.Equal(t, []string{a.ID()}, ids)
	require.NoError(t, r.Reprieve(a.ID()))
	data, _, err := a.ReadAt(StdoutFile, 0, 10)
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
	require.NoError(t, r.Condemn(a.ID()))
	again, err := r.Create(a.ID())
	require.NoError(t, err)
	require.NoError(t, again.Close())
	require.NoError(t, r.Condemn(a.ID()), "an older condemned one is no obstacle")
	require.NoError(t, r.Purge(a.ID()))
	require.NoError(t, r.Purge(a.ID()), "twice is no error")
	require.NoError(t, r.Remove(a.ID()))
	ids, err = r.List()
	require.NoError(t, err)
	require.Equal(t, []string{b.ID()}, ids)
	ids, err = r.Condemned()
	require.NoError(t, err)
	require.Empty(t, ids)

	free, size, err := r.Free()
	require.NoError(t, err)
	require.Positive(t, free)
	require.GreaterOrEqual(t, size, free)
}

func TestRootThatIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(file)
	require.Error(t, err)
}
