package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func reported(t *testing.T, runs Runs, flags ReportFlags, f *fakeRunner) (code int, out, errs string) {
	t.Helper()
	rec, err := runs.Last()
	require.NoError(t, err)
	var o, e strings.Builder
	code = ReportCommand(t.Context(), rec, flags, connectTo(f), Stdio{&o, &e})
	return code, o.String(), e.String()
}

func TestReport(t *testing.T) {
	runs := Runs{Dir: t.TempDir()}
	f := newFake(map[string]behavior{"bad": {exit: 2}})
	_, table, _ := commanded(t, Flags{Plan: parse(t, entries("a", "bad", "c: bad")), Runs: runs}, f)
	code, out, errs := reported(t, runs, ReportFlags{Full: true}, f)
	require.Equal(t, ExitFailed, code)
	require.Equal(t, table+"\n==> a <==\noutput of a\n\n==> bad <==\noutput of bad\n", out)
	require.Contains(t, errs, "1 completed, 1 failed, 1 skipped")
	require.Contains(t, errs, "hayward run --continue ")

	code, out, _ = reported(t, runs, ReportFlags{Full: true, Names: []string{"a"}}, f)
	require.Equal(t, ExitFailed, code)
	require.NotContains(t, out, "bad")
	code, _, errs = reported(t, runs, ReportFlags{Names: []string{"zzz"}}, f)
	require.Equal(t, ExitBadPlan, code)
	require.Contains(t, errs, "has no subagent zzz; it has a, bad, c\n")

	_, out, _ = reported(t, runs, ReportFlags{JSON: true}, f)
	var r Report
	require.NoError(t, events.DecodeRecord([]byte(out), &r))
	require.Equal(t, RunFailed, r.Status)
	require.Equal(t, "short output of a", r.Subagents[0].Output)
	require.Len(t, r.Subagents, 3)

	// The coordinator has forgotten it; the run's own record has not.
	code, out, errs = reported(t, runs, ReportFlags{Full: true}, newFake(nil))
	require.Equal(t, ExitFailed, code, errs)
	require.Contains(t, out, "==> a <==\n(its output is not kept any more)\n")
}

// TestReportOfARunThatGoesOn shows what runs, what has ended and what waits; one
// whose process is gone says how to go on.
func TestReportOfARunThatGoesOn(t *testing.T) {
	runs := Runs{Dir: t.TempDir()}
	rec, err := runs.Create(parse(t, entries("ended", "lives", "waits: lives", "failed")))
	require.NoError(t, err)
	f := newFake(map[string]behavior{"lives": {never: true}})
	for _, name := range []string{"ended", "lives"} {
		_, err := f.Spawn(t.Context(), events.Spawn{ParentSessionID: rec.ID, ID: subagentID(rec.ID, name, 1), Name: name, Command: []string{"true"}})
		require.NoError(t, err)
	}
	<-f.child("ended").done
	require.NoError(t, rec.Keep(Result{Name: "failed", Attempt: 1, Status: StateFailed, Reason: events.ReasonStart}))
	code, out, errs := reported(t, runs, ReportFlags{Full: true}, f)
	require.Equal(t, ExitCompleted, code)
	require.Regexp(t, `(?m)^ended +completed .*
^lives +running .*
^waits +waiting .*
^failed +failed\(start\) .*$`, out)
	require.Contains(t, errs, "1 completed, 1 failed, 1 running, 1 waiting")
	require.Contains(t, errs, "it goes on in process ")
	require.NoError(t, rec.Close())
	code, _, errs = reported(t, runs, ReportFlags{Full: true}, f)
	require.Equal(t, ExitFailed, code)
	require.Contains(t, errs, "its process is gone; go on with: hayward run --continue "+shortID(rec.ID)+"\n")
}
