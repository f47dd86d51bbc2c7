package plan

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func exampleSummary() Summary {
	zero, three := 0, 3
	at := frameTime
	return Summary{
		RunID: "01976c6e-0000-7000-8000-000000000001", Plan: "audit", Path: "plans/audit.toml", StartedAt: at, DurationMS: 83_000,
		Counts: Counts{Total: 5, Completed: 1, Failed: 2, Cancelled: 1, Skipped: 1},
		Subagents: []Result{
			{Name: "vet", Entry: "vet", SubagentID: "id-1", Status: StateCompleted, StartedAt: &at, EndedAt: &at, DurationMS: 1234, ExitCode: &zero, OutputBytes: 3, OutputPath: "/state/subagents/id-1/stdout.log"},
			{Name: "format-long-name", Entry: "format", SubagentID: "id-2", Status: StateFailed, Reason: events.ReasonExit, StartedAt: &at, DurationMS: 61_000, ExitCode: &three, OutputPath: "/state/subagents/id-2/stdout.log"},
			{Name: "slow", Entry: "slow", SubagentID: "id-3", Status: StateFailed, Reason: events.ReasonDeadline, StartedAt: &at, DurationMS: 5000, Signal: "SIGKILL"},
			{Name: "ended", Entry: "ended", Status: StateCancelled, Reason: events.ReasonUser},
			{Name: "report", Entry: "report", Needs: []string{"vet", "slow"}, Status: StateSkipped, Reason: events.ReasonDependency, BlockedBy: "slow"},
		},
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	require.NoError(t, exampleSummary().Table(&b))
	golden(t, "table.golden", b.String()+exampleSummary().Line()+"\n")
}

func TestJSONShape(t *testing.T) {
	b, err := events.MarshalRecord(exampleSummary())
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(b, &v))
	pretty, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	golden(t, "summary.golden", string(pretty)+"\n")
}

// write puts a plan into a file and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func connectTo(r Runner) Connect {
	return func(context.Context) (Runner, error) { return r, nil }
}

func noVariable(string) (string, bool) { return "", false }

func TestCommand(t *testing.T) {
	show := "show = true\n"
	for _, c := range []struct {
		about, plan string
		behaviors   map[string]behavior
		flags       Flags
		code        int
		out, err    string
	}{
		{
			about: "completed with output", plan: entries("a", "last: a") + show, code: ExitCompleted,
			out: "NAME  STATUS     DURATION  EXIT  OUTPUT\n" +
				"a     completed  1.0s      0     /state/a/stdout.log\n" +
				"last  completed  0.0s      0     /state/last/stdout.log\n" +
				"\noutput of last\n",
			behaviors: map[string]behavior{"a": {lasts: time.Second}},
			err:       "completed  a  1.0s\n",
		},
		{
			about: "output that is gone afterwards", plan: entries("a") + show, flags: Flags{Fleeting: true}, code: ExitCompleted,
			out: "NAME  STATUS     DURATION  EXIT  OUTPUT\n" +
				"a     completed  0.0s      0     -\n" +
				"\noutput of a\n",
		},
		{
			about: "the one to show failed", plan: entries("last") + show, code: ExitFailed,
			behaviors: map[string]behavior{"last": {exit: 4}},
			out:       "\noutput of last\n", err: "failed     last  exit 4\n",
		},
		{
			about: "the one to show was skipped", plan: entries("a", "last: a") + show, code: ExitFailed,
			behaviors: map[string]behavior{"a": {exit: 4}},
			out:       "last  skipped(dependency)  -         -     -\n", err: "skipped    last  (dependency)  needs a\n",
		},
		{about: "bad plan", plan: "nam = 1\n" + entries("a"), code: ExitBadPlan, err: "test.toml:1: nam: unknown key"},
		{about: "bad flag", plan: entries("a"), flags: Flags{Jobs: -1}, code: ExitBadPlan, err: "-j -1 is not between"},
		{about: "json", plan: entries("a") + show, flags: Flags{JSON: true}, code: ExitCompleted, out: `{"run_id":"`},
	} {
		t.Run(c.about, func(t *testing.T) {
			c.flags.Path, c.flags.LookupEnv = write(t, c.plan), noVariable
			synctest.Test(t, func(t *testing.T) {
				var out, errs strings.Builder
				sig := newSignals()
				defer sig.stop()
				code := command(t.Context(), c.flags, connectTo(newFake(c.behaviors)), Stdio{&out, &errs}, sig)
				require.Equal(t, c.code, code, errs.String())
				require.Contains(t, out.String(), c.out)
				require.Contains(t, errs.String(), c.err)
				if c.flags.JSON {
					var s Summary
					require.NoError(t, events.DecodeRecord([]byte(out.String()), &s))
					require.True(t, s.Success)
					require.Equal(t, 1, strings.Count(out.String(), "\n"))
				}
			})
		})
	}
}

// TestBadPlanReachesForNothing: a plan that is refused starts no daemon.
func TestBadPlanReachesForNothing(t *testing.T) {
	var errs strings.Builder
	code := Command(t.Context(), Flags{Path: write(t, "x = 1"), LookupEnv: noVariable}, func(context.Context) (Runner, error) {
		t.Error("connected")
		return nil, nil
	}, Stdio{&errs, &errs})
	require.Equal(t, ExitBadPlan, code)
}

func TestNoCoordinator(t *testing.T) {
	var errs strings.Builder
	code := Command(t.Context(), Flags{Path: write(t, entries("a")), LookupEnv: noVariable}, func(context.Context) (Runner, error) {
		return nil, errors.New("cannot start the daemon")
	}, Stdio{&errs, &errs})
	require.Equal(t, ExitOwnError, code)
	require.Contains(t, errs.String(), "cannot start the daemon")
}

// TestStdoutThatFails: data that could not be written is an error of ours.
func TestStdoutThatFails(t *testing.T) {
	path := write(t, entries("a"))
	synctest.Test(t, func(t *testing.T) {
		var errs strings.Builder
		sig := newSignals()
		defer sig.stop()
		code := command(t.Context(), Flags{Path: path, LookupEnv: noVariable}, connectTo(newFake(nil)), Stdio{&brokenWriter{writes: 1}, &errs}, sig)
		require.Equal(t, ExitOwnError, code)
		require.Contains(t, errs.String(), "write to stdout: input/output error")
	})
}
