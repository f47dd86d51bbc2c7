package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

func (u *user) plan(name, text string) string {
	path := filepath.Join(u.work, name)
	require.NoError(u.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestRunPlan(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		plan := u.plan("plan.toml", `
[[subagent]]
name = "one"
shell = "echo from one"

[[subagent]]
name = "items"
for_each = ["a", "b"]
command = ["echo", "item", "{item}"]

[[subagent]]
name = "bad"
shell = "echo half; exit 3"

[[subagent]]
name = "after-bad"
needs = ["bad"]
command = ["true"]

[[subagent]]
name = "all"
needs = ["one", "items"]
shell = "cat \"$HAYWARD_INPUT_one\" \"$HAYWARD_INPUT_items_a\" \"$HAYWARD_INPUT_items_b\""
show = true
`)
		r := u.run("run", plan)
		require.Equal(t, 1, r.code, r.stdout+r.stderr)
		require.Contains(t, r.stdout, "from one\nitem a\nitem b\n", r.stderr)
		require.Regexp(t, `bad +failed.* 3 `, r.stdout)
		require.Regexp(t, `after-bad +skipped\(dependency\)`, r.stdout)

		r = u.run("run", "--json", plan)
		require.Equal(t, 1, r.code)
		o := r.object(t)
		require.Equal(t, false, o["success"])
		statuses := map[string]any{}
		for _, s := range list(t, o, "subagents") {
			statuses[s["name"].(string)] = s["status"]
		}
		require.Equal(t, map[string]any{
			"one": "completed", "items-a": "completed", "items-b": "completed", "bad": "failed", "after-bad": "skipped", "all": "completed",
		}, statuses)
	})
}

func TestRunRefusesBadPlans(t *testing.T) {
	u := newUser(t, os.Getuid())
	for name, c := range map[string]struct{ text, says string }{
		"cycle":       {"[[subagent]]\nname = \"a\"\ncommand = [\"true\"]\nneeds = [\"b\"]\n\n[[subagent]]\nname = \"b\"\ncommand = [\"true\"]\nneeds = [\"a\"]\n", "a -> b -> a"},
		"unknown key": {"[[subagent]]\nname = \"a\"\ncomand = [\"true\"]\n", "comand"},
		"not TOML":    {"[[subagent\n", "bad.toml:2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := u.run("run", u.plan("bad.toml", c.text))
			require.Equal(t, 2, r.code, r.stdout)
			require.Contains(t, r.stderr, "bad.toml:")
			require.Contains(t, r.stderr, c.says)
		})
	}
	require.Equal(t, 2, u.run("run", "missing.toml").code)
}

// Without a daemon the output files are gone at the end, so none is named.
func TestRunWithoutADaemonNamesNoFiles(t *testing.T) {
	u := newUser(t, os.Getuid())
	plan := u.plan("one.toml", "[[subagent]]\nname = \"one\"\ncommand = [\"echo\", \"hi\"]\nshow = true\n")
	r := u.run("run", "--no-daemon", plan)
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `(?m)^one +completed +\S+ +0 +-\n\nhi$`, r.stdout)
	r = u.run("run", "--no-daemon", "--json", plan)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, `"name":"one"`)
	require.NotContains(t, r.stdout, "output_path")
}

// Two runs at once from two terminals, one of which is closed in the middle:
// both complete.
func TestTwoRunsOneTerminalClosed(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		text := func(name string) string {
			return strings.ReplaceAll(`
[[subagent]]
name = "first"
shell = "cat gate-NAME > /dev/null"

[[subagent]]
name = "second"
needs = ["first"]
shell = "echo done > done-NAME"
`, "NAME", name)
		}
		plans := map[string]string{}
		gates := map[string]string{}
		for _, name := range []string{"open", "closed"} {
			gates[name] = u.fifo("gate-" + name)
			plans[name] = u.plan(name+".toml", text(name))
		}
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		closed := u.command(ctx, "run", plans["closed"])
		closed.Env = append(closed.Env, "TERM=xterm")
		attr := closed.SysProcAttr
		terminal, err := pty.StartWithAttrs(closed, &pty.Winsize{Rows: 24, Cols: 80}, sessionOf(attr))
		require.NoError(t, err)
		open := u.command(ctx, "run", plans["open"])
		var out strings.Builder
		open.Stdout, open.Stderr = &out, &out
		require.NoError(t, open.Start())

		require.True(t, u.eventually(func() bool {
			return u.running("cat gate-closed > /dev/null") == 1 && u.running("cat gate-open > /dev/null") == 1
		}))
		require.NoError(t, terminal.Close())
		feed(t, gates["closed"], "go")
		feed(t, gates["open"], "go")
		require.NoError(t, open.Wait(), out.String())
		require.NoError(t, closed.Wait())
		require.FileExists(t, filepath.Join(u.work, "done-open"))
		require.FileExists(t, filepath.Join(u.work, "done-closed"))
	})
}

// Ctrl-C on a run ends every process of it, then the run says so.
func TestRunInterrupted(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		plan := u.plan("long.toml", `
[defaults]
shell = "sleep 616 & sleep 616"

[[subagent]]
name = "a"

[[subagent]]
name = "b"

[[subagent]]
name = "later"
needs = ["a", "b"]
`)
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		cmd := u.command(ctx, "run", plan)
		require.NoError(t, cmd.Start())
		require.True(t, u.eventually(func() bool { return u.running("sleep\x00616") == 4 }))
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.Error(t, cmd.Wait())
		require.Equal(t, 130, cmd.ProcessState.ExitCode())
		require.Zero(t, u.running("sleep\x00616"))
	})
}
