package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// A coordinator may die at any point: what was accepted reaches its right end
// with its whole output, what ran ran once, whoever waited gets the right answer,
// and nothing is left.
func TestEveryCrashPoint(t *testing.T) {
	// Different visits of a point meet different subagents.
	visits := map[int]int{os.Getuid(): 1}
	if os.Getuid() == 0 {
		visits[ordinaryUID] = 2
	}
	for uid, visit := range visits {
		for _, point := range crashpoint.All {
			visit := visit
			if point == crashpoint.StopSent {
				visit = 1 // one subagent is stopped
			}
			t.Run(fmt.Sprintf("%s %d uid %d", point, visit, uid), func(t *testing.T) {
				t.Parallel()
				u := newUser(t, uid)
				u.bin = testkit.ProgramWithCrashpoints(t)
				crashScenario(t, u, fmt.Sprintf("HAYWARD_CRASHPOINT=%s:%d", point, visit))
			})
		}
	}
}

// crashScenario passes every point, with a coordinator that dies on the way.
func crashScenario(t *testing.T, u *user, crash string) {
	dying := u.serve([]string{crash}, "--grace", "5s")
	successor := make(chan resultOrError, 1)
	go func() {
		// At once, so that the clients need not start one.
		<-dying.ended
		successor <- collect(u.command(t.Context(), "ps"))
	}()

	var all []string
	detach := func(script string, flags ...string) string {
		id := events.NewID()
		all = append(all, id)
		args := append([]string{"--id", id}, flags...)
		require.Equal(t, id, u.detach(append(args, "--", "sh", "-c", script)...))
		return id
	}
	gate, gate2 := u.fifo("gate"), u.fifo("gate2")
	quick := detach("echo run >> ran-quick; seq 1 500")
	off := detach("echo run >> ran-off; seq 1 500", "--sandbox", "off")
	gated := detach("echo run >> ran-gated; echo begun; cat gate")
	victim := detach(`echo run >> ran-victim; sleep 620 & trap "echo told; kill $!; exit 0" TERM; echo up; wait`)

	front := u.begin("spawn", "--", "sh", "-c", "echo run >> ran-front; echo begun; cat gate2; exit 7")
	waiting := u.begin("wait", "--json", gated)
	require.Equal(t, []string{"completed", "completed"}, statuses(u.await(quick, off)))
	crashedBefore := dying.killedItself()
	taking := u.run("completions", "--json")
	require.Zero(t, taking.code, taking.stderr)
	taken := dedupeIDs(t, taking)
	require.Subset(t, taken, []string{quick + ".1", off + ".1"}, taking.stderr)

	require.True(t, u.eventually(func() bool { return len(u.lines("ran-victim")) == 1 }))
	cancelled := u.run("cancel", "--json", victim)
	require.Zero(t, cancelled.code, cancelled.stdout+cancelled.stderr)
	require.Zero(t, u.running("sleep\x00620"), "processes are left when the reply arrives")
	feed(t, gate, "whole\n")
	feed(t, gate2, "whole\n")

	waited := waiting()
	require.Zero(t, waited.code, waited.stderr)
	require.Equal(t, "begun\nwhole\n", list(t, waited.object(t), "snapshots")[0]["output"])
	fronted := front()
	require.Equal(t, 7, fronted.code, fronted.stderr)
	require.Equal(t, "begun\nwhole\n", fronted.stdout)

	require.True(t, u.eventually(dying.killedItself), "%s was not reached", crash)
	restarted := <-successor
	require.NoError(t, restarted.err)
	require.Zero(t, restarted.code, restarted.stderr)

	// Everything accepted is known, with its right end, and ran once.
	for name, id := range map[string]string{"quick": quick, "off": off, "gated": gated, "victim": victim} {
		snap := u.await(id)[0]
		require.Equal(t, []string{"run"}, u.lines("ran-"+name), name)
		want := "completed"
		if name == "victim" {
			want = "cancelled"
			require.Equal(t, "user", snap["reason"])
		}
		require.Equal(t, want, snap["status"], "%s: %v", name, snap)
	}
	require.Equal(t, []string{"run"}, u.lines("ran-front"))
	require.Equal(t, seq(500), u.run("logs", quick).stdout)
	require.Equal(t, seq(500), u.run("logs", off).stdout)

	// Every unread end is there once, and gone once it was taken.
	unread := u.completions("--peek")
	require.Equal(t, slices.Compact(slices.Sorted(slices.Values(unread))), slices.Sorted(slices.Values(unread)), "delivered twice")
	require.Contains(t, unread, gated+".1")
	for _, id := range taken {
		if crashedBefore {
			require.NotContains(t, unread, id, "it was acknowledged to a coordinator that lives")
		}
	}
	require.ElementsMatch(t, unread, u.completions())
	require.True(t, u.eventually(func() bool { return len(u.completions("--peek")) == 0 }))
	u.requireNothingLeft(all...)
	require.Len(t, u.runDirectories(), len(all)+1)
}

func statuses(snaps []map[string]any) (out []string) {
	for _, s := range snaps {
		out = append(out, s["status"].(string))
	}
	return out
}

// seq is what seq 1 n prints.
func seq(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// Stdin goes on to reach a command that was just let go when the coordinator
// died: its successor learns that it runs.
func TestStdinSurvivesACrashAtTheStart(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		for _, point := range []crashpoint.Point{crashpoint.ForkRecorded, crashpoint.ChildReleased, crashpoint.ChildStarted} {
			t.Run(string(point), func(t *testing.T) {
				u := newUser(t, u.uid)
				u.bin = testkit.ProgramWithCrashpoints(t)
				dying := u.serve([]string{"HAYWARD_CRASHPOINT=" + string(point)})
				r := u.runWith("typed\n", "spawn", "--", "cat")
				require.True(t, u.eventually(dying.killedItself), "%s was not reached", point)
				require.Zero(t, r.code, r.stderr)
				require.Equal(t, "typed\n", r.stdout)
				id := u.runDirectories()[0]
				snap := u.snapshot(id)
				require.NotEmpty(t, snap["started_at"], "%v", snap)
				sandbox := snap["sandbox"].(map[string]any)
				require.Equal(t, true, sandbox["active"])
				require.Equal(t, "pid_namespace", sandbox["tree_kill"])
			})
		}
	})
}
