package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDetachWaitQuery(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		fifo := u.fifo("gate")
		id := u.detach("--", "sh", "-c", "cat gate")
		o := u.run("query", "--json", id).object(t)
		require.Contains(t, []any{"initializing", "running"}, list(t, o, "snapshots")[0]["status"])

		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		wait := u.command(ctx, "wait", "--json", id)
		out, err := wait.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, wait.Start())
		feed(t, fifo, "late\n")
		line, err := bufio.NewReader(out).ReadString('}')
		require.NoError(t, err)
		require.NotEmpty(t, line)
		require.NoError(t, wait.Wait())

		snap := list(t, u.run("query", "--json", id).object(t), "snapshots")[0]
		require.Equal(t, "completed", snap["status"])
		require.Equal(t, "late\n", snap["output"])
		require.Equal(t, "late\n", u.run("logs", id).stdout)
		require.Equal(t, "late\n", u.run("logs", id[len(id)-6:]).stdout, "by the end of the id")
	})
}

func TestUnknownIDAnswersAtOnce(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		const unknown = "0192f0c1-0000-7000-8000-000000000000"
		for _, args := range [][]string{{"query", unknown}, {"query", "--wait", unknown}, {"wait", unknown}, {"logs", unknown}, {"inspect", unknown}, {"cancel", unknown}} {
			r := u.run(args...)
			require.Equal(t, 4, r.code, "%v: %s%s", args, r.stdout, r.stderr)
		}
	})
}

// Cancel by prompt lists exactly the children of the prompt, after all their
// processes are gone.
func TestCancelByPrompt(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		var mine []string
		for range 3 {
			mine = append(mine, u.detach("--parent-prompt", "P", "--", "sh", "-c", "sleep 600 & sleep 600"))
		}
		other := u.detach("--parent-prompt", "Q", "--", "sleep", "601")
		foreign := u.detach("--session", "S2", "--parent-prompt", "P", "--", "sleep", "602")
		require.True(t, u.eventually(func() bool { return u.running("sleep\x00600") == 6 }))

		o := u.run("cancel", "--parent-prompt", "P", "--session", "default", "--json").object(t)
		require.Zero(t, u.running("sleep\x00600"), "processes are left when the reply arrives")
		var ids []string
		for _, res := range list(t, o, "results") {
			require.Equal(t, "cancelled", res["outcome"])
			ids = append(ids, res["subagent_id"].(string))
		}
		sort.Strings(ids)
		sort.Strings(mine)
		require.Equal(t, mine, ids)
		for _, id := range []string{other, foreign} {
			snap := list(t, u.run("query", "--json", id).object(t), "snapshots")[0]
			require.NotContains(t, []any{"cancelled", "failed", "completed"}, snap["status"])
		}
		r := u.run("spawn", "--parent-prompt", "P", "--", "true")
		require.Equal(t, 125, r.code, "a later spawn of a cancelled prompt is refused: %s", r.stderr)
	})
}

// Whatever a command does to get away, a cancel ends it.
func TestCancelEndsEscapes(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		for name, script := range map[string]string{
			"setsid, double fork, TERM ignored": `setsid sh -c "sleep 610 & sleep 610" & (sleep 610 &) ; trap "" TERM; sleep 610`,
			"nohup":                             `nohup sleep 610 >/dev/null 2>&1 & sleep 610`,
			"stopped":                           `sleep 610 & kill -STOP $!; kill -STOP $$; sleep 610`,
			"attacks on the supervisor":         `kill -STOP 1; kill -TERM 1; kill -QUIT 1; kill -KILL 1; kill -KILL $PPID; sleep 610`,
		} {
			t.Run(name, func(t *testing.T) {
				id := u.detach("--", "sh", "-c", script)
				require.True(t, u.eventually(func() bool { return u.running("sleep\x00610") > 0 || name == "stopped" }))
				o := u.run("cancel", "--json", "--kill", id).object(t)
				require.Equal(t, "cancelled", list(t, o, "results")[0]["outcome"])
				require.Zero(t, u.running("sleep\x00610"))
			})
		}
	})
}

// A command that ends and leaves processes behind leaves none.
func TestNothingOutlivesAnEnd(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		for _, profile := range []string{"workspace", "off"} {
			t.Run(profile, func(t *testing.T) {
				r := u.run("spawn", "--sandbox", profile, "--", "sh", "-c", `setsid sleep 611 & (nohup sleep 611 &) >/dev/null 2>&1; echo done`)
				require.Zero(t, r.code, r.stderr)
				require.Equal(t, "done\n", r.stdout)
				require.Zero(t, u.running("sleep\x00611"))
			})
		}
	})
}

// SIGKILL of hayward-child takes its whole tree with it, and is said.
func TestSupervisorKilled(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		id := u.detach("--", "sh", "-c", "setsid sleep 612 & sleep 612")
		require.True(t, u.eventually(func() bool { return u.running("sleep\x00612") == 2 }))
		snap := list(t, u.run("query", "--json", id).object(t), "snapshots")[0]
		pid := int(snap["process"].(map[string]any)["pid"].(float64))
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		r := u.run("wait", "--json", id)
		require.Equal(t, 1, r.code, r.stderr)
		require.Zero(t, u.running("sleep\x00612"))
		snap = list(t, u.run("query", "--json", id).object(t), "snapshots")[0]
		require.Equal(t, "failed", snap["status"])
		require.Equal(t, "crash", snap["reason"])
	})
}

func TestDuplicateIDLeavesTheLiveChild(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		const id = "0192f0c1-aaaa-7000-8000-00000000aaaa"
		require.Equal(t, id, u.detach("--id", id, "--", "sleep", "613"))
		r := u.run("spawn", "--detach", "--id", id, "--", "echo", "other")
		require.NotZero(t, r.code)
		require.Contains(t, r.stderr, id)
		snap := list(t, u.run("query", "--json", id).object(t), "snapshots")[0]
		require.Contains(t, []any{"initializing", "running"}, snap["status"])
		require.Contains(t, snap["command_line"], "sleep")
		require.Zero(t, u.run("cancel", "--kill", id).code)
	})
}

func TestDeadline(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		r := u.run("spawn", "--json", "--max-runtime", "300ms", "--", "sh", "-c", "echo begun; sleep 614")
		require.NotZero(t, r.code)
		o := r.object(t)
		require.Equal(t, "failed", o["status"])
		require.Equal(t, "deadline", o["reason"])
		require.Equal(t, "begun\n", o["output"])
		require.Zero(t, u.running("sleep\x00614"))
	})
}

// Ctrl-C on a foreground spawn ends it and returns when everything is gone.
func TestInterrupt(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		cmd := u.command(ctx, "spawn", "--", "sh", "-c", "sleep 615 & sleep 615")
		require.NoError(t, cmd.Start())
		require.True(t, u.eventually(func() bool { return u.running("sleep\x00615") == 2 }))
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		err := cmd.Wait()
		require.Zero(t, u.running("sleep\x00615"))
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 130, exit.ExitCode())
	})
}

func TestTwoDaemonsOnOneState(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		require.Zero(t, u.run("ps").code)
		r := u.run("serve")
		require.Equal(t, 125, r.code, r.stderr)
		require.Contains(t, r.stderr, "another coordinator")
		require.Zero(t, u.run("ps").code)
	})
}

// Many commands at once start one daemon.
func TestDaemonStartsOnce(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		var wg sync.WaitGroup
		results := make([]result, 8)
		for i := range results {
			wg.Go(func() { results[i] = u.run("spawn", "--json", "--", "echo", strconv.Itoa(i)) })
		}
		wg.Wait()
		for i, r := range results {
			require.Zero(t, r.code, r.stderr)
			require.Equal(t, strconv.Itoa(i)+"\n", r.object(t)["output"])
		}
		require.Equal(t, 1, u.daemons())
	})
}

func TestReadOnlyState(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: a user that it can take rights from")
	}
	u := newUser(t, ordinaryUID)
	state := filepath.Join(u.home, "state")
	require.NoError(t, os.Mkdir(state, 0o555)) // root's
	r := u.run("spawn", "--", "true")
	require.Equal(t, 125, r.code)
	require.Contains(t, r.stderr, "permission denied")
	require.Contains(t, r.stderr, "HAYWARD_STATE_DIR")
	require.NoError(t, os.Remove(state))
}

// fifo makes a pipe in the workspace that a command can block on.
func (u *user) fifo(name string) string {
	path := filepath.Join(u.work, name)
	require.NoError(u.t, syscall.Mkfifo(path, 0o600))
	require.NoError(u.t, os.Chown(path, u.uid, u.uid))
	return path
}

// feed writes to a pipe once somebody reads it.
func feed(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// daemons counts this user's coordinators.
func (u *user) daemons() int {
	n := 0
	for _, p := range u.processes() {
		if _, args, _ := strings.Cut(p, " "); strings.HasPrefix(args, u.bin+" serve") {
			n++
		}
	}
	return n
}

// running counts the processes of [user.matching].
func (u *user) running(args string) int { return len(u.matching(args)) }

// matching lists this user's processes whose command line ends with args, NULs
// between the arguments.
func (u *user) matching(args string) (pids []int) {
	for _, p := range u.processes() {
		pid, _, _ := strings.Cut(p, " ")
		cmd, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err == nil && strings.HasSuffix(strings.TrimSuffix(string(cmd), "\x00"), args) {
			n, err := strconv.Atoi(pid)
			require.NoError(u.t, err)
			pids = append(pids, n)
		}
	}
	return pids
}
