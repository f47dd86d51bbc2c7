package e2e

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A coordinator that leaves ends its children gracefully, or leaves them to the
// next one; what is queued is kept in either case.
func TestLeave(t *testing.T) {
	byVerb := func(flags ...string) func(*testing.T, *user, *coordinator) {
		return func(t *testing.T, u *user, _ *coordinator) {
			r := u.run(append([]string{"shutdown"}, flags...)...)
			require.Zero(t, r.code, r.stderr)
		}
	}
	bySignal := func(_ *testing.T, _ *user, c *coordinator) { c.signal(syscall.SIGTERM) }
	for name, c := range map[string]struct {
		flags    []string
		leave    func(*testing.T, *user, *coordinator)
		handover bool
	}{
		"SIGTERM":                     {nil, bySignal, false},
		"SIGTERM of serve --handover": {[]string{"--handover"}, bySignal, true},
		"shutdown":                    {nil, byVerb(), false},
		"shutdown --handover":         {nil, byVerb("--handover"), true},
	} {
		t.Run(name, func(t *testing.T) {
			asUsers(t, func(t *testing.T, u *user) {
				d := u.serve(nil, append([]string{"--max-per-session", "2"}, c.flags...)...)
				gate := u.fifo("gate")
				polite := u.detach("--", "sh", "-c",
					`echo run >> ran-polite; trap "echo bye; exit 0" TERM; echo up; sleep 630 & wait; read line < gate; echo $line`)
				escaped := u.detach("--", "sh", "-c", "setsid sleep 631 & sleep 631")
				queued := u.detach("--", "sh", "-c", "echo run >> ran-queued; echo late")
				require.True(t, u.eventually(func() bool { return u.running("sleep\x00630") == 1 && u.running("sleep\x00631") == 2 }))
				front := u.begin("spawn", "--session", "other", "--", "sh", "-c", "echo front; sleep 632; echo done")
				require.True(t, u.eventually(func() bool { return u.running("sleep\x00632") == 1 }))

				waiting := u.begin("wait", "--json", polite)
				c.leave(t, u, d)
				require.NoError(t, d.wait(), "its own exit")
				if !c.handover {
					require.Empty(t, u.subagentProcesses())
					r := front()
					require.Equal(t, 128+15, r.code, r.stderr) // that of the command
					require.Equal(t, "front\n", r.stdout)
					snaps := u.await(polite, escaped)
					require.Equal(t, []string{"cancelled", "cancelled"}, statuses(snaps))
					for _, s := range snaps {
						require.Equal(t, "shutdown", s["reason"])
					}
					require.Equal(t, "up\nbye\n", snaps[0]["output"])
					require.Equal(t, 1, waiting().code)
				} else {
					require.Equal(t, 1, u.running("sleep\x00630"))
					require.Equal(t, 2, u.running("sleep\x00631"))
					u.signalAll("sleep\x00630", syscall.SIGKILL)
					u.signalAll("sleep\x00632", syscall.SIGKILL)
					// It was told that it goes on in the background, or asked the next
					// coordinator and waited on.
					r := front()
					require.Zero(t, r.code, r.stderr)
					require.True(t, strings.Contains(r.stderr, "background") || r.stdout == "front\ndone\n", "%q %q", r.stdout, r.stderr)
					feed(t, gate, "whole\n")
					snap := u.await(polite)[0]
					require.Equal(t, "completed", snap["status"])
					require.Equal(t, "up\nwhole\n", snap["output"])
					require.Zero(t, waiting().code, "it goes on with the next coordinator")
					require.Zero(t, u.run("cancel", escaped).code)
					require.Zero(t, u.running("sleep\x00631"))
				}
				require.Equal(t, "completed", u.await(queued)[0]["status"])
				require.Equal(t, []string{"run"}, u.lines("ran-queued"))
				require.Equal(t, []string{"run"}, u.lines("ran-polite"))
				u.requireNothingLeft(polite, escaped, queued)
			})
		})
	}
}
