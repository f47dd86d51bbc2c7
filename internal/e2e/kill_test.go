package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// 50 accepted spawns, finished, running and queued, outlive a SIGKILL of the
// coordinator.
func TestFiftySpawnsSurviveAKill(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		c := u.serve(nil)
		const total, atOnce = 50, 5
		var gates []string
		for n := 0; n < total; n += 5 {
			gates = append(gates, u.fifo(fmt.Sprintf("gate-%d", n)))
		}
		ids := make([]string, total)
		var wg sync.WaitGroup
		for worker := range atOnce {
			wg.Go(func() {
				for n := worker; n < total; n += atOnce {
					script := fmt.Sprintf("echo run >> ran-%d; echo begun %d; ", n, n)
					if n%5 == 0 {
						script += fmt.Sprintf("cat gate-%d", n)
					} else {
						script += "echo ended"
					}
					ids[n] = u.detach("--", "sh", "-c", script)
				}
			})
		}
		wg.Wait()
		c.crash()
		require.Zero(t, u.run("ps").code)
		require.Len(t, u.runDirectories(), total)
		for _, gate := range gates {
			feed(t, gate, "ended\n")
		}
		snaps := u.await(ids...)
		for n, snap := range snaps {
			require.Equal(t, "completed", snap["status"], "%d: %v", n, snap)
			require.Equal(t, fmt.Sprintf("begun %d\nended\n", n), snap["output"])
			require.Equal(t, []string{"run"}, u.lines("ran-"+strconv.Itoa(n)))
		}
		u.requireNothingLeft(ids...)
	})
}

// Lines that a child prints before, during and after the absence of a
// coordinator all arrive, in a log and at a client that was waiting.
func TestOutputSurvivesAKill(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		const lines, phases = 60, 3
		copier := func(name string) []string {
			return []string{"--", "sh", "-c", "while read line; do echo $line; done < " + name}
		}
		pace := map[string]*os.File{}
		for _, name := range []string{"waited", "absent"} {
			f, err := os.OpenFile(u.fifo(name), os.O_RDWR, 0)
			require.NoError(t, err)
			pace[name] = f
		}
		print := func(name string, phase int) {
			for n := phase * lines / phases; n < (phase+1)*lines/phases; n++ {
				_, err := fmt.Fprintln(pace[name], n+1)
				require.NoError(t, err)
			}
		}
		c := u.serve(nil)
		absent := u.detach(copier("absent")...)
		waited := u.begin(append([]string{"spawn"}, copier("waited")...)...)
		for name := range pace {
			print(name, 0)
		}
		printed := func() (bytes int) {
			for _, id := range u.runDirectories() {
				b, err := os.ReadFile(filepath.Join(u.home, "state", "subagents", id, "stdout.log"))
				if err == nil {
					bytes += len(b)
				}
			}
			return bytes
		}
		require.True(t, u.eventually(func() bool { return printed() == 2*len(seq(lines/phases)) }))
		c.crash()
		for name := range pace {
			print(name, 1)
		}
		print("absent", 2)
		require.NoError(t, pace["absent"].Close()) // it ends with no coordinator there, or a new one that just came
		require.Zero(t, u.run("ps").code)
		print("waited", 2)
		require.NoError(t, pace["waited"].Close())

		r := waited()
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, seq(lines), r.stdout)
		snap := u.await(absent)[0]
		require.Equal(t, "completed", snap["status"])
		require.Equal(t, seq(lines), snap["output"])
		require.Equal(t, seq(lines), u.run("logs", absent).stdout)
	})
}

// An end that came while no coordinator was there is told by the next one.
func TestEndWithoutACoordinator(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		gate := u.fifo("gate")
		c := u.serve(nil)
		id := u.detach("--", "sh", "-c", "echo begun; cat gate; exit 3")
		require.True(t, u.eventually(func() bool { return u.running("cat\x00gate") == 1 }))
		c.crash()
		feed(t, gate, "alone\n")
		require.True(t, u.eventually(func() bool { return len(u.processes()) == 0 }), "%v", u.processes())
		snap := u.await(id)[0]
		require.Equal(t, "failed", snap["status"])
		require.Equal(t, "exit", snap["reason"])
		require.Equal(t, 3.0, snap["exit_code"])
		require.Equal(t, "begun\nalone\n", snap["output"])
		require.Equal(t, []string{id + ".1"}, u.completions())
		u.requireNothingLeft(id)
	})
}

// The runtime directory holds nothing that an adoption needs.
func TestRuntimeDirectoryMadeAnew(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		runtime := filepath.Join(u.home, "runtime")
		u.env = append(u.env, "HAYWARD_RUNTIME_DIR="+runtime)
		c := u.serve(nil)
		var ids, gates []string
		running := func() (n int) {
			for i := range gates {
				n += u.running(fmt.Sprintf("cat\x00gate-%d", i))
			}
			return n
		}
		for n := range 3 {
			gates = append(gates, u.fifo(fmt.Sprintf("gate-%d", n)))
			ids = append(ids, u.detach("--", "sh", "-c", fmt.Sprintf("echo run >> ran-%d; echo begun; cat gate-%d", n, n)))
		}
		require.True(t, u.eventually(func() bool { return running() == 3 }))
		require.NoError(t, os.RemoveAll(runtime))
		require.NoError(t, os.Mkdir(runtime, 0o700))
		require.NoError(t, os.Chown(runtime, u.uid, u.uid))
		c.crash()

		o := u.run("ps", "--json").object(t)
		require.Len(t, list(t, o, "subagents"), 3)
		require.Equal(t, 3, running(), "they go on under the new coordinator")
		// They talk to the new one: a stop by its control message is answered.
		o = u.run("cancel", "--json", ids[0]).object(t)
		require.Equal(t, "cancelled", list(t, o, "results")[0]["outcome"])
		for _, gate := range gates[1:] {
			feed(t, gate, "late\n")
		}
		for n, snap := range u.await(ids[1], ids[2]) {
			require.Equal(t, "completed", snap["status"])
			require.Equal(t, "begun\nlate\n", snap["output"])
			require.Equal(t, []string{"run"}, u.lines(fmt.Sprintf("ran-%d", n+1)))
		}
		u.requireNothingLeft(ids...)
	})
}
