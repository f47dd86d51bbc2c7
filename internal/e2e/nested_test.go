package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/modelstub"
)

// nests lets the user's subagents spawn others, and returns the arguments of a spawn
// of a shell line that may; $HW is hayward in there.
func (u *user) nests(config string) func(line string, flags ...string) []string {
	u.t.Helper()
	u.configure("config.toml", "[limits]\ndepth = 3\n"+config)
	return func(line string, flags ...string) []string {
		args := append([]string{"--env", "HW=" + u.bin, "--may-spawn", "*"}, flags...)
		return append(args, "--", "sh", "-c", line)
	}
}

// nested returns the first subagent that id spawned.
func (u *user) nested(id string) map[string]any {
	u.t.Helper()
	for _, s := range list(u.t, u.run("ps", "-a", "--json").object(u.t), "subagents") {
		if s["parent_id"] == id {
			return s
		}
	}
	require.Fail(u.t, "nothing is nested in "+id)
	return nil
}

// A subagent spawns another one in its own name: in its directory, with no more
// rights, and sees nothing else.
func TestNested(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		line := u.nests("")
		foreign := u.detach("--name", "foreign", "--", "true")
		u.await(foreign)
		r := u.run(append([]string{"spawn", "--json"}, line(`
			$HW spawn --name inner --env HW=$HW -- sh -c 'pwd; echo "$HAYWARD_SUBAGENT_ID"; echo made > made.txt; $HW ps; exit 3'
			echo "exit $?"
			$HW ps -a
			$HW query foreign; echo "query $?"
			$HW spawn --sandbox off -- true; echo "off $?"
			$HW spawn --add-dir /opt -- true; echo "wide $?"
			$HW inspect inner; echo "inspect $?"
			$HW completions`)...)...)
		require.Zero(t, r.code, r.stderr)
		outer := r.object(t)
		id := outer["subagent_id"].(string)
		inner := u.nested(id)
		require.Equal(t, "inner", inner["name"])
		require.Equal(t, id, inner["root_id"])
		require.FileExists(t, filepath.Join(u.work, "made.txt"))
		text, whole := outer["output"].(string), outer["stderr_tail"].(string)
		require.Contains(t, text, u.work+"\n"+inner["subagent_id"].(string)+"\n")
		require.Contains(t, text, "exit 3\n")
		require.NotContains(t, text, "foreign")
		for _, refused := range []string{"query 4", "off 125", "wide 125", "inspect 125"} {
			require.Contains(t, text, refused, whole)
		}
		require.Contains(t, whole, "which may not spawn and cannot look at others", "what it spawned was not allowed to spawn")
		require.Contains(t, whole, "the sandbox of the spawner does not open")

		// What was applied lies within, and the record says within what.
		sandbox := inner["sandbox"].(map[string]any)
		require.Equal(t, outer["sandbox"].(map[string]any)["plan_hash"], sandbox["within"])
		require.Equal(t, true, sandbox["active"])
		require.Contains(t, u.run("ps", "--tree", "-a").stdout, "└ ")
		// Its end was its spawner's to read, not the session's.
		require.NotContains(t, u.run("completions").stdout, inner["subagent_id"].(string))

		r = u.run("spawn", "--env", "HW="+u.bin, "--may-spawn", "explore", "--", "sh", "-c", "$HW spawn -- true")
		require.Equal(t, 125, r.code, r.stderr)
		require.Contains(t, r.stderr, "may not spawn type command")
	})
}

// A cancel of the prompt reaches what is nested; what a subagent leaves behind ends
// with it.
func TestNestedEnds(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		line := u.nests("")
		deep := `$HW spawn -d --env HW=$HW --may-spawn '*' -- sh -c '$HW spawn -d --name leaf -- sleep 600; touch deep; sleep 600' >/dev/null; sleep 600`
		top := u.detach(line(deep, "--parent-prompt", "p")...)
		require.True(t, u.eventually(func() bool { return u.snapshotOf("leaf")["status"] == "running" }), u.run("ps", "-a").stdout)
		r := u.run("cancel", "--parent-prompt", "p", "--json")
		require.Zero(t, r.code, r.stderr)
		results := list(t, r.object(t), "results")
		require.Len(t, results, 3)
		for _, one := range results {
			require.Equal(t, "cancelled", one["outcome"])
		}
		require.Zero(t, u.running("sleep\x00600"))
		require.Equal(t, "cancelled", u.snapshot(top)["status"])

		// It ends by itself, and what it spawned goes with it.
		r = u.run(append([]string{"spawn", "--json"}, line("$HW spawn -d --name left -- sleep 600")...)...)
		require.Zero(t, r.code, r.stderr)
		require.Zero(t, u.running("sleep\x00600"), "it was gone before the end was told")
		left := u.snapshotOf("left")
		require.Equal(t, "cancelled", left["status"])
		require.Equal(t, "parent", left["reason"])
	})
}

// What a subagent spawned and does not want to end is waited for, longer than anybody
// waits for a cancel: it writes to the tree that is saved then.
func TestNestedEndsFirst(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		line := u.nests("")
		repo := filepath.Join(u.home, "repo")
		u.repository(repo)
		u.serve(nil, "--cancel-timeout", "100ms", "--grace", "1s")
		id := u.detach(line(`$HW spawn -d --name left -- sh -c 'trap "" TERM; touch up; exec sleep 643'
			while [ ! -e up ]; do sleep 0.05; done`, "--cwd", repo, "--isolation", "worktree")...)
		end := u.await(id)[0]
		require.Zero(t, u.running("sleep\x00643"), "it was gone before the end was told")
		require.Equal(t, "completed", end["status"], end)
		left := u.snapshotOf("left")
		require.Equal(t, "cancelled", left["status"])
		require.Equal(t, "parent", left["reason"])
		u.gitIn(repo, "cat-file", "-e", "refs/hayward/subagents/"+id+"/tree:up")
	})
}

// snapshotOf is the subagent with that name.
func (u *user) snapshotOf(name string) map[string]any {
	for _, s := range list(u.t, u.run("ps", "-a", "--json").object(u.t), "subagents") {
		if s["name"] == name {
			return s
		}
	}
	return map[string]any{}
}

// The bounds of a spawner are its own after its coordinator died, and its working
// tree is where it and what it spawns work.
func TestNestedOutlivesCoordinator(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		line := u.nests("")
		repo := filepath.Join(u.home, "repo")
		u.repository(repo)
		before := u.serve(nil)
		id := u.detach(line(`touch begun; while [ ! -e go ]; do sleep 0.05; done
			$HW spawn --name inner -- sh -c 'pwd; echo inner > inner.txt; ! echo x > `+u.work+`/out.txt'`, "--cwd", repo, "--isolation", "worktree")...)
		tree := ""
		require.True(t, u.eventually(func() bool {
			w, ok := u.snapshot(id)["worktree"].(map[string]any)
			if ok {
				tree = w["path"].(string)
			}
			_, err := os.Stat(filepath.Join(tree, "begun"))
			return ok && err == nil
		}))
		before.crash()
		u.serve(nil)
		u.file(filepath.Join(tree, "go"), "", 0o644)
		end := u.await(id)[0]
		require.Equal(t, "completed", end["status"], end)
		require.Equal(t, tree+"\n", end["output"])
		inner := u.nested(id)
		require.Equal(t, "completed", inner["status"], inner)
		require.Equal(t, tree, inner["cwd"])
		require.NotEmpty(t, inner["sandbox"].(map[string]any)["within"])
		require.Equal(t, "inner", u.gitIn(repo, "show", "refs/hayward/subagents/"+id+"/tree:inner.txt"))

		// Without its bounds nothing is spawned in it.
		id = u.detach(line("while [ ! -e ready ]; do sleep 0.05; done; $HW spawn -- true")...)
		require.True(t, u.eventually(func() bool { return u.snapshot(id)["status"] == "running" }))
		require.NoError(t, os.Remove(filepath.Join(u.home, "state/subagents", id, "bounds.json")))
		u.file(filepath.Join(u.work, "ready"), "", 0o644)
		end = u.await(id)[0]
		require.Equal(t, "failed", end["status"])
		require.Contains(t, end["stderr_tail"], "what its sandbox leaves is not known")
	})
}

// An agent spawns another one; each call of a model counts once: for its subagent,
// for the tree, for the prompt, and against the budget of each.
func TestNestedUsage(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		worker := modelstub.Scenario{Match: "the inner task", Turns: []modelstub.Turn{{Text: "inner done", Usage: modelstub.Usage{Input: 100, Output: 50}, Repeat: true}}}
		outer := modelstub.Scenario{Turns: []modelstub.Turn{
			bash(u.bin + ` spawn --type worker --prompt "the in""ner task"`),
			{Text: "outer done", Usage: modelstub.Usage{Input: 20, Output: 7}, Repeat: true},
		}}
		u.models(modelstub.Script{Scenarios: []modelstub.Scenario{worker, outer}})
		config, err := os.ReadFile(filepath.Join(u.home, ".config/hayward/config.toml"))
		require.NoError(t, err)
		agents := filepath.Join(u.home, ".config/hayward/agents")
		require.NoError(t, os.MkdirAll(agents, 0o755))
		define := func(name, header string) {
			require.NoError(t, os.WriteFile(filepath.Join(agents, name+".md"), []byte("---\nname: "+name+"\ndescription: "+name+"\n"+header+"---\nWork.\n"), 0o644))
		}
		define("lead", "tools: Bash, Agent(worker)\n")
		define("worker", "tools: Read\n")
		u.configure("config.toml", "[limits]\ndepth = 2\n"+string(config)+"max_tree_tokens = 400\nmax_prompt_tokens = 190\n")

		spawn := []string{"spawn", "--type", "lead", "--prompt", "the outer task", "--json"}
		r := u.run(spawn...)
		require.Zero(t, r.code, r.stderr)
		o := r.object(t)
		require.Equal(t, "outer done", o["output"])
		require.Equal(t, map[string]any{"input_tokens": 30.0, "output_tokens": 12.0}, o["usage"])
		require.Equal(t, map[string]any{"input_tokens": 130.0, "output_tokens": 62.0}, o["tree_usage"])
		// An agent that may spawn has the tools for it, the other one has not.
		server, err := os.ReadFile(filepath.Join(u.home, "state/subagents", o["subagent_id"].(string), "home/hayward/mcp.json"))
		require.NoError(t, err)
		require.Contains(t, string(server), "hayward.sock")
		require.Contains(t, string(server), `"HAYWARD_MAY_SPAWN": "worker"`)
		inner := u.nested(o["subagent_id"].(string))
		require.NoFileExists(t, filepath.Join(u.home, "state/subagents", inner["subagent_id"].(string), "home/hayward/mcp.json"))
		require.Equal(t, "worker", inner["subagent_type"])
		require.Equal(t, map[string]any{"input_tokens": 100.0, "output_tokens": 50.0}, inner["usage"])
		require.Equal(t, inner["usage"], inner["tree_usage"])
		require.Contains(t, u.run("ps", "--tree", "-a").stdout, "42+150")

		// 42 + 150 are over what a prompt may use: the second of it gets nothing.
		require.Zero(t, u.run(append(spawn, "--parent-prompt", "p")...).code)
		r = u.run(append(spawn, "--parent-prompt", "p")...)
		require.NotZero(t, r.code)
		require.Contains(t, r.stdout+r.stderr, "the budget of its prompt of 190 tokens is used up: 192")
	})
}

// An agent type is spawned over MCP, from outside and from inside a subagent, and the
// trace of a call goes on in it.
func TestNestedMCP(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.nests("")
		dir := filepath.Join(u.home, ".config/hayward/agents")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "greeter.md"), []byte(`---
name: greeter
description: Greets.
runner: command
command: [sh, -c, 'read who; echo "hello $who"; echo "$TRACEPARENT" >&2']
max_runtime: 1m
---
`), 0o644))
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		for _, inside := range []bool{false, true} {
			args := []string{"mcp"}
			if inside {
				args = []string{"spawn", "--may-spawn", "greeter", "--", u.bin, "mcp"}
			}
			p := u.connectTo("2025-11-25", nil, args...)
			about, err := p.cs.ListTools(p.ctx, nil)
			require.NoError(t, err)
			described := about.Tools[slices.IndexFunc(about.Tools, func(t *sdk.Tool) bool { return t.Name == "spawn_subagent" })].Description
			require.Contains(t, described, "- greeter: Greets. Costs a process, at most 1m0s.")
			require.Equal(t, !inside, strings.Contains(described, "- command: runs command"))
			require.Equal(t, inside, strings.Contains(described, "You are a subagent yourself"))
			require.Equal(t, !inside, strings.Contains(described, "Limits: 32 at once in this session"))

			r, err := p.cs.CallTool(p.ctx, &sdk.CallToolParams{
				Meta: sdk.Meta{"traceparent": trace}, Name: "spawn_subagent",
				Arguments: map[string]any{"subagent_type": "greeter", "prompt": "world\n", "parent_prompt_id": "turn"},
			})
			require.NoError(t, err)
			require.False(t, r.IsError, r.Content)
			greeter := list(t, r.StructuredContent.(map[string]any), "subagents")[0]
			require.Equal(t, "hello world\n", greeter["output"])
			require.Contains(t, greeter["stderr_tail"], "00-0af7651916cd43dd8448eb211c80319c-")
			require.Equal(t, "turn", greeter["parent_prompt_id"])
			require.Equal(t, inside, greeter["parent_id"] != nil)

			background := map[string]any{"subagent_type": "greeter", "prompt": "you\n", "run_in_background": true}
			p.done("spawn_subagent", background)
			require.Equal(t, "hello you\n", list(t, p.done("read_completions", map[string]any{"wait_ms": 30_000}), "subagents")[0]["output"])
			_, failed := p.call("spawn_subagent", map[string]any{"command": []string{"true"}})
			require.Equal(t, inside, failed)
			require.NoError(t, p.cs.Close(), p.stderr.String())
		}
	})
}

// A subagent cannot ask in the name of another one: what it is given says who it is.
func TestNestedNames(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		line := u.nests("")
		victim := u.detach(line("sleep 600", "--name", "victim")...)
		r := u.run(append([]string{"spawn", "--sandbox", "strict"}, line(`HAYWARD_SUBAGENT_ID=`+victim+` $HW ps; env | grep -ci token; ls -l "$HAYWARD_BUS"`)...)...)
		require.NotZero(t, strings.Count(r.stdout, "hayward.sock"), r.stdout+r.stderr)
		require.Contains(t, r.stdout, "0\n", "no credential is in the environment")
		require.NotContains(t, r.stdout, "victim")
		require.Zero(t, u.run("cancel", victim).code)
	})
}

// What can hardly be meant is said at once, and runs.
func TestNestedDoubts(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		r := u.run("spawn", "--may-spawn", "explor", "--may-spawn", "explore", "--may-spawn", "command", "--", "true")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stderr, `there is no agent type "explor"`)
		require.NotContains(t, r.stderr, `"explore"`)
		require.NotContains(t, r.stderr, `"command"`)
		require.Contains(t, r.stderr, "limits.depth (serve --max-depth) is 1")
		line := u.nests("")
		require.Zero(t, u.run("shutdown").code) // the next one reads the new configuration
		r = u.run(append([]string{"spawn"}, line("true")...)...)
		require.Zero(t, r.code, r.stderr)
		require.Empty(t, r.stderr)
	})
}
