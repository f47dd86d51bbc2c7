package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

// Many clients cancel a prompt while others still spawn for it: in the end none
// of it is alive, and nothing of it is accepted any more, not after a crash
// either.
func TestCancelByPromptFromManyClients(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		c := u.serve(nil)
		const spawners, each, cancellers = 4, 15, 6
		ctx, stop := context.WithTimeout(context.Background(), deadline)
		defer stop()
		dial := func() *client.Client {
			cl, err := client.Connect(ctx, client.Options{
				Socket:    filepath.Join(u.home, "state/run/bus.sock"),
				TokenFile: filepath.Join(u.home, "state/run/client.token"),
				Environ:   u.env,
			})
			require.NoError(t, err)
			return cl
		}
		spawn := func(cl *client.Client, id string) error {
			_, err := cl.Spawn(ctx, events.Spawn{
				ID: id, ParentSessionID: "s", ParentPromptID: "p", Cwd: u.work, RunInBackground: true,
				Command: []string{"sh", "-c", "(setsid sleep 640 &); trap '' TERM; sleep 640"},
			})
			return err
		}
		var accepted, refused atomic.Int64
		var mu sync.Mutex
		var ids []string
		someAccepted := make(chan struct{})
		var work sync.WaitGroup
		errs := make(chan error, spawners*each+cancellers)
		for range spawners {
			cl := dial()
			work.Go(func() {
				defer cl.Close()
				for range each {
					id := events.NewID()
					switch err := spawn(cl, id); {
					case err == nil:
						mu.Lock()
						ids = append(ids, id)
						mu.Unlock()
						if accepted.Add(1) == spawners {
							close(someAccepted)
						}
					case events.HasCode(err, events.CodePromptCancelled):
						refused.Add(1)
					default:
						errs <- err
					}
				}
			})
		}
		for range cancellers {
			cl := dial()
			work.Go(func() {
				defer cl.Close()
				<-someAccepted
				r, err := cl.Cancel(ctx, events.Cancel{ParentSessionID: "s", Target: events.CancelTarget{ParentPromptID: "p"}})
				if err != nil {
					errs <- err
				}
				for _, one := range r.Value.Results {
					if one.Outcome != events.CancelCancelled {
						errs <- fmt.Errorf("%s: %s", one.SubagentID, one.Outcome)
					}
				}
			})
		}
		work.Wait()
		close(errs)
		var all error
		for err := range errs {
			all = errors.Join(all, err)
		}
		require.NoError(t, all)
		require.Zero(t, u.running("sleep\x00640"), "processes are left when the last reply arrives")
		require.Empty(t, list(t, u.run("ps", "--json").object(t), "subagents"))
		require.EqualValues(t, spawners*each, accepted.Load()+refused.Load())
		require.NotZero(t, refused.Load(), "no spawn came late: the test shows nothing")
		for _, s := range u.await(ids...) {
			require.Equal(t, "cancelled", s["status"])
			require.Equal(t, "prompt", s["reason"])
		}
		late := []string{"spawn", "--session", "s", "--parent-prompt", "p", "--", "true"}
		r := u.run(late...)
		require.Equal(t, 125, r.code, r.stderr)
		c.crash()
		r = u.run(late...)
		require.Equal(t, 125, r.code, "after a restart: %s", r.stderr)
		require.Contains(t, r.stderr, "cancelled")
		u.requireNothingLeft(ids...)
	})
}

// A second cancel does not wait for the grace of the first; until the end the
// answer is draining.
func TestSecondCancelEscalates(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		// The grace is longer than any wait of the tests.
		u.serve(nil, "--grace", "10m")
		id := u.detach("--", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 641; done")
		require.True(t, u.eventually(func() bool { return u.running("sleep\x00641") == 1 }))
		first := u.run("cancel", "--json", "--timeout", "300ms", "--actor", "first", id)
		require.Equal(t, 124, first.code, first.stderr)
		require.Equal(t, "draining", list(t, first.object(t), "results")[0]["outcome"])
		snap := u.snapshot(id)
		require.NotContains(t, []any{"cancelled", "failed", "completed"}, snap["status"])

		second := u.run("cancel", "--json", "--actor", "second", id)
		require.Zero(t, second.code, second.stderr)
		require.Equal(t, "cancelled", list(t, second.object(t), "results")[0]["outcome"])
		require.Zero(t, u.running("sleep\x00641"))
		snap = u.snapshot(id)
		require.Equal(t, "cancelled", snap["status"])
		require.Equal(t, "user", snap["reason"])
		require.Equal(t, "first", snap["actor"])
		u.requireNothingLeft(id)
	})
}

// A crash while a cancel waits does not make its repetition a second cancel: the
// command keeps its grace.
func TestCancelSurvivesACrash(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		c := u.serve(nil, "--grace", "60s")
		gate := u.fifo("gate")
		id := u.detach("--", "sh", "-c", `trap "echo told; read line < gate; echo \$line; exit 0" TERM; echo up; sleep 642 & wait`)
		require.True(t, u.eventually(func() bool { return u.running("sleep\x00642") == 1 }))
		cancelling := u.begin("cancel", "--json", id)
		require.True(t, u.eventually(func() bool { return u.run("logs", id).stdout == "up\ntold\n" }))
		c.crash()
		u.serve(nil, "--grace", "60s")
		require.True(t, u.eventually(func() bool { return u.snapshot(id)["status"] == "running" }))
		feed(t, gate, "saved\n")
		r := cancelling()
		require.Zero(t, r.code, r.stdout+r.stderr)
		// The repetition may reach the new coordinator before or after the end.
		result := list(t, r.object(t), "results")[0]
		require.Contains(t, []any{"cancelled", "already_finished"}, result["outcome"])
		require.Equal(t, "cancelled", result["status"])
		snap := u.await(id)[0]
		require.Equal(t, "cancelled", snap["status"])
		require.Equal(t, "up\ntold\nsaved\n", snap["output"])
		u.requireNothingLeft(id)
	})
}
