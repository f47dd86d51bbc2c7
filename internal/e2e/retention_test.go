package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus/dial"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// admin sends one request to the admin service as a client does.
func (u *user) admin(endpoint string, request any) (events.RemoveReply, error) {
	u.t.Helper()
	token, err := os.ReadFile(filepath.Join(u.home, "state/run/client.token"))
	require.NoError(u.t, err)
	url, options := dial.Options(filepath.Join(u.home, "state/run/bus.sock"), "client", strings.TrimSpace(string(token)), events.ClientInboxPrefix)
	nc, err := nats.Connect(url, options...)
	require.NoError(u.t, err)
	defer nc.Close()
	lost := make(chan struct{})
	nc.SetDisconnectErrHandler(func(*nats.Conn, error) { close(lost) })
	body, err := events.Marshal(request)
	require.NoError(u.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	go func() {
		select {
		case <-lost:
			cancel() // a coordinator that dies does not answer
		case <-ctx.Done():
		}
	}()
	var reply events.RemoveReply
	msg, err := nc.RequestWithContext(ctx, events.AdminSubject(endpoint), body)
	if err == nil {
		err = events.DecodeRecord(msg.Data, &reply)
	}
	return reply, err
}

func outcomes(r events.RemoveReply) (out []string) {
	for _, one := range r.Results {
		out = append(out, string(one.Outcome))
	}
	return out
}

// A session keeps so many finished subagents and no more, and nothing of those
// that go; what nobody has read stays, and so does what lives.
func TestRetention(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		const keep = 3
		u.serve(nil, "--keep-finished", fmt.Sprint(keep))
		gate := u.fifo("gate")
		live := u.detach("--session", "s", "--", "cat", "gate")
		ids, ends := u.finished("s", keep+2)
		other, _ := u.finished("other", 1)
		require.Len(t, u.runDirectories(), keep+4, "unread is kept")
		require.Equal(t, ends, u.completions("--session", "s"))
		require.True(t, u.eventually(func() bool { return len(u.runDirectories()) == keep+2 }), "%v", u.runDirectories())
		left := append(append([]string{live}, ids[2:]...), other...)
		require.ElementsMatch(t, left, u.runDirectories())
		require.Equal(t, 4, u.run("query", ids[0]).code, "it is unknown now")
		require.Len(t, list(t, u.run("ps", "-a", "--json").object(t), "subagents"), len(left))

		reply, err := u.admin(events.AdminRemove, events.RemoveRequest{IDs: []string{live, other[0], ids[4], ids[0]}, DryRun: true})
		require.NoError(t, err)
		require.Equal(t, []string{"live", "unread", "would_remove", "not_found"}, outcomes(reply))
		reply, err = u.admin(events.AdminPrune, events.PruneRequest{Keep: new(int)})
		require.NoError(t, err)
		require.Equal(t, []string{"removed", "removed", "removed"}, outcomes(reply))
		require.Equal(t, 1, reply.Unread)
		require.ElementsMatch(t, []string{live, other[0]}, u.runDirectories())

		// The next coordinator finds it so, and what lives goes on.
		require.Zero(t, u.run("shutdown", "--handover").code)
		reply, err = u.adminAnew(events.AdminRemove, events.RemoveRequest{IDs: other, Force: true})
		require.NoError(t, err)
		require.Equal(t, []string{"removed"}, outcomes(reply))
		feed(t, gate, "on\n")
		require.Equal(t, "on\n", u.await(live)[0]["output"])
		u.requireNothingLeft(live)
	})
}

// adminAnew is admin once a coordinator is there.
func (u *user) adminAnew(endpoint string, request any) (events.RemoveReply, error) {
	require.Zero(u.t, u.run("ps").code)
	return u.admin(endpoint, request)
}

// A coordinator may die at any point of a removal: the subagent is then there as
// a whole or gone as a whole, and the others are untouched.
func TestCrashWhileRemoving(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		for _, point := range crashpoint.Removal {
			t.Run(string(point), func(t *testing.T) {
				u := newUser(t, u.uid)
				u.bin = testkit.ProgramWithCrashpoints(t)
				dying := u.serve([]string{"HAYWARD_CRASHPOINT=" + string(point)})
				ids, _ := u.finished("s", 2)
				_, err := u.admin(events.AdminRemove, events.RemoveRequest{IDs: ids[:1], Force: true})
				require.Error(t, err, "nobody is told")
				require.True(t, u.eventually(dying.killedItself), "%s was not reached", point)

				require.Equal(t, 4, u.run("query", ids[0]).code, "it was decided, so it is gone")
				require.Equal(t, ids[1:], u.runDirectories())
				reply, err := u.admin(events.AdminRemove, events.RemoveRequest{IDs: ids, Force: true})
				require.NoError(t, err)
				require.Equal(t, []string{"not_found", "removed"}, outcomes(reply))
				require.Empty(t, u.runDirectories())
			})
		}
	})
}

// The gate of a cancelled prompt outlives a crash right after it was written, for
// a prompt that has no subagent either; other prompts are open, and it can be
// lifted.
func TestGateOfAPromptWithoutASubagent(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.bin = testkit.ProgramWithCrashpoints(t)
		spawn := func(flags ...string) result {
			return u.run(append(append([]string{"spawn", "--session", "s"}, flags...), "--", "true")...)
		}
		dying := u.serve([]string{"HAYWARD_CRASHPOINT=" + string(crashpoint.GateWritten)})
		// It is asked again of the next coordinator, and answered by that.
		r := u.run("cancel", "--session", "s", "--parent-prompt", "p")
		require.Zero(t, r.code, r.stderr)
		require.True(t, u.eventually(dying.killedItself))
		for range 2 {
			r = spawn("--parent-prompt", "p")
			require.Equal(t, 125, r.code)
			require.Contains(t, r.stderr, "prompt p of session s was cancelled")
			require.Contains(t, r.stderr, "--reopen")
			require.Zero(t, spawn("--parent-prompt", "q").code, "a new prompt of the session works")
			require.Zero(t, u.run("shutdown").code)
		}
		require.Zero(t, spawn("--parent-prompt", "p", "--reopen").code)
		require.Zero(t, u.run("shutdown").code)
		require.Zero(t, spawn("--parent-prompt", "p").code)
		u.requireNothingLeft()
	})
}
