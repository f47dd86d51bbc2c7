package e2e

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// finished runs one subagent after the other to its end and returns their dedupe
// ids in that order. Waiting reads nothing.
func (u *user) finished(session string, n int) (ids, dedupe []string) {
	u.t.Helper()
	for range n {
		id := u.detach("--session", session, "--", "true")
		u.await(id)
		ids, dedupe = append(ids, id), append(dedupe, id+".1")
	}
	return ids, dedupe
}

// Each end is delivered once, in order, to its own session; looking delivers
// nothing, and what is suppressed or leased stays unread.
func TestDelivery(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.serve(nil, "--lease-timeout", "1m")
		ids, ends := u.finished("s", 4)
		u.finished("other", 1)
		for _, look := range [][]string{
			{"query"}, {"wait"}, {"inspect"}, {"logs"}, {"transcript"}, {"ps", "-a"}, {"completions", "--session", "s", "--peek"},
		} {
			if len(look) == 1 {
				look = append(look, ids[0])
			}
			require.Zero(t, u.run(look...).code, "%v", look)
		}
		all := []string{"--session", "s"}
		require.Equal(t, ends, u.completions(append(all, "--peek")...))
		require.Equal(t, append([]string{ends[0]}, ends[2:]...), u.completions(append(all, "--suppress", ids[1])...))
		require.Equal(t, ends[1:2], u.completions(all...), "suppressed is unread")
		require.Empty(t, u.completions(all...))

		// A lease hides; without an acknowledgement they come back.
		ids, ends = u.finished("s", 3)
		require.Equal(t, ends, u.completions(append(all, "--lease", "1s")...))
		require.True(t, u.eventually(func() bool { return len(u.completions(append(all, "--peek")...)) == 3 }))
		require.Equal(t, ends[:2], u.completions(append(all, "--lease", "10m", "--max", "2")...))
		require.Equal(t, ends[2:], u.completions(append(all, "--peek")...))
		require.Empty(t, u.completions(append(all, "--ack", ids[0])...), "to acknowledge takes no more")
		require.Equal(t, ends[2:], u.completions(all...))
		require.Empty(t, u.completions(all...), "the second is leased")

		// What is read stays read, and what is leased comes back, over a restart.
		require.Zero(t, u.run("shutdown").code)
		u.serve(nil, "--lease-timeout", "1m")
		require.Equal(t, ends[1:2], u.completions(all...))
		require.Empty(t, u.completions(all...))
		require.Len(t, u.completions("--session", "other"), 1)
	})
}

// A reader that is killed after it received ends and before it could print them
// did not read them.
func TestReaderKilledBeforeItPrints(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.serve(nil, "--lease-timeout", "5s")
		_, ends := u.finished("s", 3)

		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer r.Close()
		defer w.Close()
		fill(t, w)
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		reader := u.command(ctx, "completions", "--session", "s", "--json")
		reader.Stdout = w
		require.NoError(t, reader.Start())
		require.True(t, u.eventually(func() bool { return len(u.completions("--session", "s", "--peek")) == 0 }), "it has received them")
		require.NoError(t, reader.Process.Kill())
		require.Error(t, reader.Wait())

		require.True(t, u.eventually(func() bool { return len(u.completions("--session", "s", "--peek")) == len(ends) }))
		require.Equal(t, ends, u.completions("--session", "s"))
		require.Empty(t, u.completions("--session", "s"))
	})
}

// fill makes the pipe full, so that the next write blocks.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	conn, err := w.SyscallConn()
	require.NoError(t, err)
	var full error
	require.NoError(t, conn.Control(func(fd uintptr) {
		if _, full = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, os.Getpagesize()); full != nil {
			return
		}
		if full = unix.SetNonblock(int(fd), true); full != nil {
			return
		}
		for page := make([]byte, os.Getpagesize()); full == nil; {
			_, full = unix.Write(int(fd), page)
		}
		if errors.Is(full, syscall.EAGAIN) {
			full = unix.SetNonblock(int(fd), false)
		}
	}))
	require.NoError(t, full)
}

// A client that went away holds no turn open: its subagent goes on in the
// background, and its end is delivered.
func TestCallerThatWentAwayHoldsNoTurn(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.serve(nil)
		gate := u.fifo("gate")
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		front := u.command(ctx, "spawn", "--session", "s", "--parent-prompt", "p", "--", "sh", "-c", "cat gate")
		require.NoError(t, front.Start())
		outstanding := func() map[string]any {
			r := u.run("outstanding", "--session", "s", "--parent-prompt", "p", "--json")
			require.Zero(t, r.code, r.stderr)
			return r.object(t)
		}
		require.True(t, u.eventually(func() bool { return len(outstanding()["live_ids"].([]any)) == 1 }))
		require.NoError(t, front.Process.Kill())
		require.Error(t, front.Wait())
		require.True(t, u.eventually(func() bool { return len(outstanding()["live_ids"].([]any)) == 0 }))
		require.Equal(t, true, outstanding()["background_live"])

		feed(t, gate, "late\n")
		require.True(t, u.eventually(func() bool { return outstanding()["unread"] == 1.0 }))
		require.Len(t, u.completions("--session", "s"), 1)
		require.Zero(t, outstanding()["unread"])
	})
}
