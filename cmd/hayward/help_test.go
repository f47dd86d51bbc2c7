package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/manual"
	"github.com/hayward-dev/hayward/sandbox"
)

func TestEveryVerbHasHelp(t *testing.T) {
	b := newIdleBench(t)
	var verbs []string
	root := (&app{environ: b.env}).rootCommand()
	root.InitDefaultHelpCmd()
	var check func(cmd *cobra.Command, path ...string)
	check = func(cmd *cobra.Command, path ...string) {
		require.NotEmpty(t, cmd.Short, path)
		require.NotEmpty(t, cmd.Example, path)
		for _, args := range [][]string{append(path, "--help"), append([]string{"help"}, path...)} {
			r := b.run(args...)
			require.Zero(t, r.code, args)
			require.Contains(t, r.stdout, "Examples:", args)
			require.Contains(t, r.stdout, "hayward "+strings.Join(path, " "), args)
		}
		for _, c := range cmd.Commands() {
			check(c, append(path, c.Name())...)
		}
	}
	for _, cmd := range root.Commands() {
		if cmd.Hidden {
			continue
		}
		verbs = append(verbs, cmd.Name())
		check(cmd, cmd.Name())
	}
	require.ElementsMatch(t, strings.Fields("spawn resume run wait cancel rm prune worktree query ps completions outstanding report logs transcript inspect agents trust sandbox serve shutdown config doctor service load mcp completion version help"), verbs)
	for _, args := range []string{"nonsense", "ps positional", "help nonsense", "help spawn more", "completion nonsense", "completion", "config nonsense"} {
		r := b.run(strings.Fields(args)...)
		require.Equal(t, 2, r.code, args)
		require.Empty(t, r.stdout, args)
		require.Equal(t, 1, strings.Count(r.stderr, "\n"), r.stderr)
	}

	pages := filepath.Join(b.dir, "man")
	require.NoError(t, manual.Write(root, "1", pages))
	page, err := os.ReadFile(filepath.Join(pages, "hayward-spawn.1"))
	require.NoError(t, err)
	require.Contains(t, string(page), "--max-runtime")
	require.FileExists(t, filepath.Join(pages, "hayward-config-show.1"))
}

// What help prints has to arrive as well.
func TestHelpThatIsNotTakenIsAnError(t *testing.T) {
	b := newIdleBench(t)
	for _, args := range []string{"--help", "help spawn", "version", "completion zsh", "config path", "--version"} {
		var stderr buffer
		require.Equal(t, 125, b.runTo(nil, failing{os.ErrClosed}, &stderr, strings.Fields(args)...), args)
		require.Contains(t, stderr.String(), "file already closed", args)
	}
}

func TestShellCompletion(t *testing.T) {
	b := newIdleBench(t)
	for _, shell := range shells {
		r := b.run("completion", shell)
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, "hayward")
		plain := b.run("completion", "--no-descriptions", shell)
		require.Zero(t, plain.code, plain.stderr)
		require.NotEqual(t, r.stdout, plain.stdout)
	}
	r := b.run("completions", "bash")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "hayward completion bash")
	require.Equal(t, 2, b.run("completions", "5f3a").code)
	require.NoDirExists(t, filepath.Join(b.dir, "state"), "nothing is touched")

	offered := func(args ...string) []string {
		t.Helper()
		r := b.run(append([]string{cobra.ShellCompNoDescRequestCmd}, args...)...)
		require.Zero(t, r.code, r.stderr)
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		return lines[:len(lines)-1] // the last is the directive
	}
	require.Equal(t, sandbox.Names, offered("spawn", "--sandbox", ""))
	b.configure("sandbox.toml", "[profiles.mine]\nextends = \"workspace\"\n")
	require.Contains(t, offered("spawn", "--sandbox", ""), "mine")
	require.Equal(t, []string{"none", "worktree"}, offered("spawn", "--isolation", ""))
	require.Equal(t, shells, offered("completion", ""))
	require.Contains(t, offered("help", "co"), "config")
	require.Equal(t, []string{"check", "path", "show"}, offered("help", "config", ""))
	require.Contains(t, offered("config", "show", "limits."), "limits.total")

	b = newBench(t)
	a := b.accept(events.Spawn{Name: "live", Command: []string{"gentle"}, ParentSessionID: "S", ParentPromptID: "p", Labels: map[string]string{"k": "v"}})
	require.Equal(t, []string{"live", a.ID()}, offered("cancel", ""))
	require.Equal(t, []string{"S"}, offered("ps", "--session", ""))
	require.Equal(t, []string{"p"}, offered("cancel", "--parent-prompt", ""))
	require.Equal(t, []string{"k=v"}, offered("cancel", "--label", ""))
	require.Equal(t, []string{"live", a.ID()}, offered("completions", "--ack", ""))
}

func TestCompletionOfIDsStartsNoDaemon(t *testing.T) {
	idle := newIdleBench(t)
	r := idle.run(cobra.ShellCompRequestCmd, "wait", "")
	require.Zero(t, r.code)
	require.NoDirExists(t, filepath.Join(idle.dir, "state"))

	b := newBench(t)
	a := b.accept(events.Spawn{Name: "live", Command: []string{"gentle"}})
	b.ended(events.Spawn{Name: "over", Command: []string{"echo"}})
	r = b.run(cobra.ShellCompRequestCmd, "logs", "")
	require.Contains(t, r.stdout, "live\trunning gentle\n")
	require.Contains(t, r.stdout, a.ID())
	require.Contains(t, r.stdout, "over\t")
	require.NotContains(t, b.run(cobra.ShellCompRequestCmd, "cancel", "").stdout, "over")
	require.NotContains(t, b.run(cobra.ShellCompRequestCmd, "logs", "ov").stdout, "live")
}

// Inside a subagent there is no coordinator, unless it is one's own.
func TestInsideASubagent(t *testing.T) {
	b := newIdleBench(t)
	id := events.NewID()
	b.env = []string{"HOME=" + b.dir, "PATH=" + os.Getenv("PATH"), "HAYWARD_SUBAGENT_ID=" + id}
	for _, args := range [][]string{{"spawn", "--", "echo"}, {"ps"}} {
		r := b.run(args...)
		require.Equal(t, 125, r.code)
		require.Contains(t, r.stderr, "this runs inside subagent "+id+", which may not spawn and cannot look at others")
		require.Contains(t, r.stderr, "set HAYWARD_STATE_DIR")
	}
	require.NoDirExists(t, filepath.Join(b.dir, ".local"), "no daemon is started in there")

	b = newBench(t) // its environment names a state directory
	b.env = append(b.env, "HAYWARD_SUBAGENT_ID="+id)
	require.Zero(t, b.run("ps").code)
}
