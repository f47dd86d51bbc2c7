package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// began reads which subagents have begun, one line for each time.
func (u *user) began() []string {
	b, err := os.ReadFile(filepath.Join(u.work, "began"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(u.t, err)
	return strings.Fields(string(b))
}

// byName maps the names of a summary's subagents to one of their members.
func byName(t *testing.T, o map[string]any, member string) map[string]any {
	t.Helper()
	m := map[string]any{}
	for _, s := range list(t, o, "subagents") {
		m[s["name"].(string)] = s[member]
	}
	return m
}

// A run whose process is killed goes on where it was: what completed is kept,
// what runs is joined, and no command runs twice.
func TestContinueAfterRunIsKilled(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		gate := u.fifo("gate")
		plan := u.plan("plan.toml", `
[[subagent]]
name = "quick"
shell = "echo quick >> began; echo from quick"
on_done = "echo hook >> hooked"

[[subagent]]
name = "slow"
shell = "echo slow >> began; cat gate > /dev/null"

[[subagent]]
name = "last"
needs = ["quick", "slow"]
shell = "echo last >> began; cat \"$HAYWARD_INPUT_quick\""
show = true
`)
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		first := u.command(ctx, "run", plan)
		require.NoError(t, first.Start())
		require.True(t, u.eventually(func() bool {
			_, err := os.Stat(filepath.Join(u.work, "hooked"))
			return err == nil && u.running("cat gate > /dev/null") == 1
		}))
		r := u.run("run", "--continue", "--last")
		require.Equal(t, 125, r.code, "it is executed by another process: %s", r.stderr)
		require.Contains(t, r.stderr, fmt.Sprintf("goes on already, in process %d", first.Process.Pid))
		require.NoError(t, first.Process.Kill())
		require.Error(t, first.Wait())

		require.Regexp(t, ` died +1 of 3\n`, u.run("run", "--list").stdout)
		o := u.run("report", "--last", "--json").object(t)
		require.Equal(t, "died", o["run_status"])
		require.Equal(t, map[string]any{"quick": "completed", "slow": "running", "last": "waiting"}, byName(t, o, "status"))

		second := u.command(ctx, "run", "--continue", "--last")
		var out strings.Builder
		second.Stdout = &out
		errs, err := second.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, second.Start())
		lines := bufio.NewReader(errs)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "of 3 subagents, 1 completed before and 1 still run\n")
		feed(t, gate, "go")
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		require.NoError(t, second.Wait(), string(rest))
		require.True(t, strings.HasSuffix(out.String(), "\nfrom quick\n"), out.String())
		require.ElementsMatch(t, []string{"quick", "slow", "last"}, u.began())

		r = u.run("report", "--last")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, "==> last <==\nfrom quick\n")
		hooked, err := os.ReadFile(filepath.Join(u.work, "hooked"))
		require.NoError(t, err)
		require.Equal(t, "hook\n", string(hooked))
	})
}

// Twelve commands over a list on stdin: half are cancelled by label, and only
// those are run again.
func TestForEachCancelHalfAndContinue(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		var dirs []string
		for _, part := range []string{"libs", "services"} {
			for i := range 6 {
				dirs = append(dirs, fmt.Sprintf("%s/%d", part, i))
			}
		}
		gate := u.fifo("gate")
		require.NoError(t, os.WriteFile(filepath.Join(u.work, "open"), nil, 0o644))
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		script := `echo "$1" >> began; if test -e open; then read -r x < gate; fi; echo did "$1"`
		first := u.command(ctx, "run", "-j", "12", "--json", "--for-each", "-", "--label", "part={//}", "--", "sh", "-c", script, "sh", "{}")
		first.Stdin = strings.NewReader(strings.Join(dirs, "\n"))
		var out strings.Builder
		first.Stdout = &out
		require.NoError(t, first.Start())
		require.True(t, u.eventually(func() bool { return len(u.began()) == 12 }))

		r := u.run("cancel", "--json", "--label", "part=libs")
		require.Len(t, list(t, r.object(t), "results"), 6, r.stderr)
		require.NoError(t, os.Remove(filepath.Join(u.work, "open")))
		feed(t, gate, strings.Repeat("go\n", 6))
		require.Error(t, first.Wait())
		require.Equal(t, 1, first.ProcessState.ExitCode())
		first1 := result{stdout: out.String()}.object(t)
		for name, status := range byName(t, first1, "status") {
			require.Equal(t, strings.HasPrefix(name, "libs"), status == "cancelled", name)
			require.Equal(t, strings.HasPrefix(name, "services"), status == "completed", name)
		}

		r = u.run("run", "--json", "--continue", first1["run_id"].(string)[28:])
		require.Zero(t, r.code, r.stderr)
		again := r.object(t)
		require.Equal(t, first1["run_id"], again["run_id"])
		attempts := byName(t, again, "attempt")
		for name, id := range byName(t, first1, "subagent_id") {
			kept := byName(t, again, "subagent_id")[name] == id
			require.Equal(t, strings.HasPrefix(name, "services"), kept, name)
			require.Equal(t, map[bool]any{true: 1.0, false: 2.0}[kept], attempts[name], name)
		}
		require.Len(t, u.began(), 18)
		r = u.run("report", "--last", "libs-0")
		require.Contains(t, r.stdout, "==> libs-0 <==\ndid libs/0\n", r.stderr)
		r = u.run("run", "--continue", "--last")
		require.Zero(t, r.code)
		require.Contains(t, r.stderr, "nothing to run again, 12 subagents completed")
	})
}

// What is wrong with the command line or the plan is said before anything starts.
func TestRunMessages(t *testing.T) {
	u := newUser(t, os.Getuid())
	two := u.plan("two.toml", "[[subagent]]\nname = \"a\"\nshell = \"true\"\n[[subagent]]\nname = \"b\"\nshell = \"true\"\n")
	for name, c := range map[string]struct {
		stdin string
		args  []string
		code  int
		says  string
	}{
		"no items":     {"\n\n", []string{"run", "--for-each", "-", "--", "true"}, 2, "there are no items"},
		"no command":   {"a\n", []string{"run", "--for-each", "-"}, 2, "there is no command behind --"},
		"stray label":  {"", []string{"run", "--label", "a=b", two}, 2, "--label goes with --for-each"},
		"no run":       {"", []string{"run", "--continue", "--last"}, 4, "there is no run yet"},
		"unknown run":  {"", []string{"report", "abcd"}, 4, "there is no run abcd"},
		"check warns":  {"", []string{"run", "--check", two}, 0, "can be written by 2 subagents at the same time: a, b"},
		"check faults": {"[[subagent]]\nnam = \"a\"\n", []string{"run", "--check", "-"}, 2, "stdin:2: subagent[0].nam: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			r := u.runWith(c.stdin, c.args...)
			require.Equal(t, c.code, r.code, r.stderr)
			require.Contains(t, r.stderr, c.says)
		})
	}
	o := u.run("run", "--check", "--json", two).object(t)
	require.Len(t, list(t, o, "warnings"), 1)
	o = u.runWith("x = 1\n[[subagent]]\nname = \"a\"\nshell = \"true\"\n", "run", "--check", "--json", "-").object(t)
	require.Equal(t, "x", list(t, o, "faults")[0]["key"])
}
