package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

// dial connects to the user's coordinator, which must be there.
func (u *user) dial() *client.Client {
	u.t.Helper()
	c, err := client.Connect(u.t.Context(), client.Options{
		Socket:    filepath.Join(u.home, "state/run/bus.sock"),
		TokenFile: filepath.Join(u.home, "state/run/client.token"),
		Environ:   u.env,
	})
	require.NoError(u.t, err)
	u.t.Cleanup(func() { require.NoError(u.t, c.Close()) })
	return c
}

// 300 spawns over 3 sessions: never more than 8 of a session are alive at once,
// all complete, none is lost, and within a session they start in order.
func TestLimitPerSession(t *testing.T) {
	const most = 8
	sessions := []string{"alpha", "beta", "gamma"}
	asUsers(t, func(t *testing.T, u *user) {
		each := 100
		if u.uid != os.Getuid() {
			each = 20 // the second time it is about the other user
		}
		// A loaded machine or disk is not what this is about.
		u.serve(nil, "--max-per-session", strconv.Itoa(most), "--start-timeout", "2m", "--put-timeout", "1m")
		ctx, cancel := context.WithTimeout(t.Context(), 2*deadline)
		defer cancel()
		c := u.dial()
		gates := map[string]*os.File{}
		ids := map[string][]string{}
		for _, s := range sessions {
			f, err := os.OpenFile(u.fifo("gate-"+s), os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
			gates[s], ids[s] = f, make([]string, each)
		}
		var spawning sync.WaitGroup
		errs := make(chan error, each*len(sessions))
		for _, s := range sessions {
			spawning.Go(func() {
				for n := range each {
					ids[s][n] = events.NewID()
					_, err := c.Spawn(ctx, events.Spawn{
						ID: ids[s][n], ParentSessionID: s, Cwd: u.work, RunInBackground: true,
						Command: []string{"sh", "-c", `echo + >> log-$0; read x < gate-$0; echo - >> log-$0`, s, "limited"},
					})
					if err != nil {
						errs <- err
					}
				}
			})
		}
		spawning.Wait()
		close(errs)
		require.NoError(t, <-errs)

		status, err := c.Status(ctx)
		require.NoError(t, err)
		require.EqualValues(t, most, status.Limits["per_session"])
		require.Contains(t, status.Origins["per_session"], "flag")
		require.Equal(t, (each-most)*len(sessions), status.Queued)
		for _, s := range sessions {
			require.True(t, u.eventually(func() bool { return u.bySession()[s] == most }), "%s: %v alive", s, u.bySession())
		}

		for _, s := range sessions {
			_, err := gates[s].WriteString(strings.Repeat("\n", each))
			require.NoError(t, err)
		}
		ended := make(chan error, 1)
		go func() {
			for _, s := range sessions {
				if _, err := c.Wait(ctx, events.Query{IDs: ids[s]}, 0); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
		look := time.NewTicker(100 * time.Millisecond) // to look all the time would slow down what is looked at
		defer look.Stop()
		for watching := true; watching; {
			seen := u.bySession()
			for _, s := range sessions {
				require.LessOrEqual(t, seen[s], most, s)
			}
			require.LessOrEqual(t, seen[""], most*len(sessions), "supervisors")
			select {
			case err := <-ended:
				require.NoError(t, err)
				watching = false
			case <-look.C:
			}
		}
		for _, s := range sessions {
			u.requireOrderly(ctx, c, s, ids[s], most)
		}
		u.requireNothingLeft()
	})
}

// bySession counts the commands of each session, which are one process each and name
// it, and under no session the supervisors.
func (u *user) bySession() map[string]int {
	seen := map[string]int{}
	for _, p := range u.processes() {
		args := strings.Fields(p)
		switch n := len(args); {
		case n > 1 && args[1] == "hayward-child":
			seen[""]++
		case n > 2 && args[n-1] == "limited":
			seen[args[n-2]]++
		}
	}
	return seen
}

// requireOrderly proves that a session's subagents completed, were admitted in
// the order of their spawns, and by their own log never ran more than most at
// once.
func (u *user) requireOrderly(ctx context.Context, c *client.Client, session string, ids []string, most int) {
	u.t.Helper()
	running, peak := 0, 0
	for _, line := range u.lines("log-" + session) {
		if line == "+" {
			running++
		} else {
			running--
		}
		peak = max(peak, running)
	}
	require.Zero(u.t, running)
	require.Equal(u.t, most, peak, "%s: the limit is reached and not passed", session)
	require.Len(u.t, u.lines("log-"+session), 2*len(ids), "each ran once")

	var last events.Record
	for n, id := range ids {
		r, err := c.Inspect(ctx, events.InspectRequest{ID: id})
		require.NoError(u.t, err)
		require.Equal(u.t, events.StatusCompleted, r.Record.Status, fmt.Sprint(session, n, r.Record.Error))
		if n > 0 {
			require.False(u.t, r.Record.PendingAt.Before(*last.PendingAt), "%s %d came before %d", session, n, n-1)
		}
		last = r.Record
	}
}

// At the limit a spawn fails at once where that is asked for; the caller is told,
// in the background too, and the failure is among the completions.
func TestFailAtTheLimit(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.serve(nil, "--max-per-session", "1", "--at-limit", "fail")
		gate := u.fifo("gate")
		first := u.detach("--", "sh", "-c", "cat gate > first")
		r := u.run("spawn", "-d", "--", "sh", "-c", "echo ran > second")
		require.Equal(t, 125, r.code, r.stdout)
		require.Contains(t, r.stderr, "the limit is 1")
		require.Zero(t, u.run("spawn", "--session", "other", "--", "true").code, "another session has room")
		o := u.run("completions", "--json", "--peek").object(t)
		refused := list(t, o, "completions")
		require.Len(t, refused, 1)
		require.Equal(t, "failed", refused[0]["status"])
		require.Equal(t, "limit", refused[0]["reason"])

		feed(t, gate, "go\n")
		u.await(first)
		require.Zero(t, u.run("spawn", "--", "true").code, "the slot is free again")
		require.NoFileExists(t, filepath.Join(u.work, "second"))
	})
}
