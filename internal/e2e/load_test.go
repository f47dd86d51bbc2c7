package e2e

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proofVariable asks for the load of a thousand subagents.
const proofVariable = "HAYWARD_LOAD_PROOF"

// A load with all there is: nothing is lost, doubled or left, as its own ledger
// says and as a separate process counts in the process table.
func TestLoad(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		picture := filepath.Join(u.home, "load.svg")
		o := u.provenLoad(40, 16, 1, 1, "--clients", "2", "--picture", picture,
			"--fail", "10", "--crash", "10", "--fork", "20", "--flood", "3", "--output", "10")
		require.Equal(t, o.Delivered, o.Latency["read"].Count)
		require.Empty(t, u.subagentProcesses())
		requireXML(t, picture)
	})
}

// The same with a thousand subagents, three kills of the coordinator and two
// storms. It takes minutes, so it must be asked for.
func TestLoadThousand(t *testing.T) {
	if os.Getenv(proofVariable) == "" {
		t.Skipf("needs the variable %s", proofVariable)
	}
	asUsers(t, func(t *testing.T, u *user) { u.provenLoad(1000, 64, 3, 2, "--timeout", "15m") })
}

// loadReport is what a load prints with --json, as far as tests look at it.
type loadReport struct {
	Accepted, Refused, Completed, Failed, Cancelled       int
	Delivered, Redelivered, Lost, Duplicated, Wrong, Left int
	Kills                                                 int     `json:"coordinator_kills"`
	Storms                                                int     `json:"cancel_storms"`
	PerSecond                                             float64 `json:"per_second"`
	Faults                                                []string
	Peak                                                  struct{ Live int }
	Latency                                               map[string]struct{ Count int } `json:"latency_ms"`
}

// provenLoad runs a load and holds its ledger against a count of processes that is
// taken by another process meanwhile.
func (u *user) provenLoad(children, concurrency, kills, storms int, flags ...string) loadReport {
	u.t.Helper()
	// A loaded machine or disk is not what this is about.
	u.configure("config.toml", "[deadlines]\nput_timeout = \"1m\"\nstart_timeout = \"2m\"\n")
	u.serve(nil)
	ends := filepath.Join(u.home, "ends.jsonl")
	counting := u.takeCensus()
	ctx, cancel := context.WithTimeout(u.t.Context(), 20*time.Minute)
	defer cancel()
	r := finish(u.t, u.command(ctx, append([]string{
		"load", "--json", "--ends", ends,
		"--hold", "200ms", // longer than between two looks of the census, on a busy machine as well
		"--children", strconv.Itoa(children), "--concurrency", strconv.Itoa(concurrency),
		"--kill-coordinator", strconv.Itoa(kills), "--cancel-storm", strconv.Itoa(storms),
	}, flags...)...))
	counted := counting.end()
	require.Zero(u.t, r.code, r.stdout+r.stderr)
	var o loadReport
	require.NoError(u.t, json.Unmarshal([]byte(r.stdout), &o))
	require.Equal(u.t, children, o.Accepted+o.Refused)
	require.Equal(u.t, o.Accepted, o.Delivered)
	require.Equal(u.t, o.Accepted, o.Completed+o.Failed+o.Cancelled)
	require.Zero(u.t, o.Lost+o.Duplicated+o.Wrong+o.Left)
	require.Equal(u.t, []int{kills, storms}, []int{o.Kills, o.Storms})
	both := requireAgrees(u.t, counted, ends, concurrency)
	u.t.Logf("ledger: %d accepted, %d refused, %d completed, %d failed, %d cancelled, %d again before the acknowledgement; lost %d, duplicated %d, left %d; %d live at most; %.1f a second",
		o.Accepted, o.Refused, o.Completed, o.Failed, o.Cancelled, o.Redelivered, o.Lost, o.Duplicated, o.Left, o.Peak.Live, o.PerSecond)
	u.t.Logf("process table, %d looks: %d supervisors, %d of them in the ledger, the others ran nothing; %d live at most, %d processes with what they run; %d left",
		counted.Looks, len(counted.Supervisors), both, counted.MostSupervisors, counted.MostProcesses, len(counted.Left))
	return o
}

// A load that is ended leaves nothing behind either.
func TestLoadEnded(t *testing.T) {
	u := newUser(t, os.Getuid())
	u.serve(nil)
	r := u.run("load", "--children", "8", "--clients", "2", "--hold", "655s", "--timeout", "2s")
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, "was not over within 2s")
	require.Zero(t, u.running("sleep\x00655"))
	require.Empty(t, u.subagentProcesses())
}

func requireXML(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for d := xml.NewDecoder(f); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else {
			require.NoError(t, err)
		}
	}
}
