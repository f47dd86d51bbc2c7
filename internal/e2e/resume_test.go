package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/testkit"
)

// refused is the code of a refusal that a command printed as JSON.
func refused(t *testing.T, r result) events.Code {
	t.Helper()
	require.NotZero(t, r.code, r.stdout)
	var o struct {
		Error *events.Error `json:"error"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &o), "%s%s", r.stdout, r.stderr)
	require.NotNil(t, o.Error, r.stdout)
	return o.Error.Code
}

// runDir is the run directory of a subagent.
func (u *user) runDir(id string) string { return filepath.Join(u.home, "state/subagents", id) }

// at follows names into an object.
func at(t *testing.T, o map[string]any, names ...string) any {
	t.Helper()
	var v any = o
	for _, name := range names {
		m, ok := v.(map[string]any)
		require.True(t, ok, "%s of %v", name, v)
		v = m[name]
	}
	return v
}

// transcript reads the items of a subagent.
func (u *user) transcript(id string) (items []events.Item) {
	u.t.Helper()
	r := u.run("transcript", "--json", id)
	require.Zero(u.t, r.code, r.stderr)
	for line := range strings.Lines(r.stdout) {
		var i events.Item
		require.NoError(u.t, events.DecodeRecord([]byte(line), &i))
		items = append(items, i)
	}
	return items
}

// A command is run again as it was, with the new prompt on stdin. Of its five session
// files the transcript and the tool state come along.
func TestResumeCommand(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		script := `cat; echo; ls "$HAYWARD_SESSION_DIR"; pwd; echo "$FLAG"
for f in tool_state plan_state plan_mode signals; do echo "{\"schema\":1,\"of\":\"$f\"}" > "$HAYWARD_SESSION_DIR/$f.json"; done`
		r := u.run("spawn", "--json", "--name", "job", "--label", "k=v", "--env", "FLAG=up", "--prompt", "first", "--", "sh", "-c", script)
		require.Zero(t, r.code, r.stderr)
		source := r.object(t)
		id := source["subagent_id"].(string)
		require.Equal(t, "first\n"+u.work+"\nup\n", source["output"])
		require.Equal(t, "new", at(t, source, "boundaries", "context_source"))
		require.Equal(t, map[string]any{"path": u.work, "from": "request"}, at(t, source, "boundaries", "cwd"))
		before, err := os.ReadFile(filepath.Join(u.runDir(id), "transcript.jsonl"))
		require.NoError(t, err)

		r = u.run("resume", "job", "--json", "--prompt", "second", "--model", "opus")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stderr, "model_pinned")
		o := r.object(t)
		require.Equal(t, "second\ntool_state.json\n"+u.work+"\nup\n", o["output"])
		require.Equal(t, "job", o["name"])
		require.Equal(t, map[string]any{"k": "v"}, o["labels"])
		require.Equal(t, id, o["resumed_from"])
		b := at(t, o, "boundaries").(map[string]any)
		require.Equal(t, "resumed", b["context_source"])
		require.Equal(t, map[string]any{"type": "command", "pinned": false}, b["identity"])
		require.Equal(t, map[string]any{"path": u.work, "from": "source"}, b["cwd"])
		require.Equal(t, "none", b["isolation"])
		require.Equal(t, map[string]any{"requested": "workspace", "applied": "workspace"}, b["sandbox"])
		require.Equal(t, id, at(t, b, "resume_source", "identity", "subagent_id"))
		require.Equal(t, u.work, at(t, b, "resume_source", "directories", "child_cwd"))

		// The conversation goes on where it was, and the source's is as it was.
		items := u.transcript(o["subagent_id"].(string))
		var prompts []string
		for i, item := range items {
			require.EqualValues(t, i+1, item.Seq)
			if item.Kind == events.ItemPrompt {
				prompts = append(prompts, item.Text+" of "+item.From)
			}
		}
		require.Equal(t, []string{"first of " + id, "second of "}, prompts)
		after, err := os.ReadFile(filepath.Join(u.runDir(id), "transcript.jsonl"))
		require.NoError(t, err)
		require.Equal(t, string(before), string(after))

		// A branch: the source again, while the name is taken by a live one.
		u.fifo("hold")
		live := u.detach("--name", "holder", "--", "sh", "-c", "read x < hold")
		r = u.run("resume", id[:35]+id[35:], "--json")
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, "first\ntool_state.json\n"+u.work+"\nup\n", r.object(t)["output"], "without a prompt it is what it was")
		require.Equal(t, events.CodeResumeLive, refused(t, u.run("resume", live, "--json")))
		require.Zero(t, u.run("cancel", live).code)
		require.Equal(t, 4, u.run("resume", events.NewID()).code)

		human := u.run("inspect", o["subagent_id"].(string))
		for _, line := range []string{"context source     resumed", "resumed from       " + id, "cwd                " + u.work + " (from source)", "sandbox applied    workspace"} {
			require.Contains(t, human.stdout, line)
		}
		require.Contains(t, u.run("ps", "-a", "--boundaries").stdout, "resumed")

		// A directory that is gone is a refusal by name, never another one.
		gone := filepath.Join(u.home, "gone")
		require.NoError(t, os.Mkdir(gone, 0o700))
		require.NoError(t, os.Chown(gone, u.uid, u.uid))
		r = u.run("spawn", "--json", "--cwd", gone, "--", "true")
		require.Zero(t, r.code, r.stderr)
		require.NoError(t, os.Remove(gone))
		require.Equal(t, events.CodeResumeCwdGone, refused(t, u.run("resume", r.object(t)["subagent_id"].(string), "--json")))
		require.Equal(t, events.CodeResumeUnreadable, func() events.Code {
			require.NoError(t, os.WriteFile(filepath.Join(u.runDir(id), "transcript.jsonl"), append([]byte("{\n"), before...), 0o600))
			return refused(t, u.run("resume", id, "--json"))
		}())
		require.NoError(t, os.Truncate(filepath.Join(u.runDir(id), "transcript.jsonl"), 0))
		require.Equal(t, events.CodeResumeEmpty, refused(t, u.run("resume", id, "--json")))
	})
}

// An agent goes on with its own session: the model is sent what was said before. The
// A subagent in a working tree is killed together with the coordinator, and its
// directory is deleted by hand. Two resumes at once get two directories, each with
// everything that was not committed, and neither loses anything.
func TestResumeWorktree(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.repository(u.work)
		before := u.userState(u.work)
		c := u.serve(nil)
		u.fifo("gate")
		gate := filepath.Join(u.home, "gate")
		require.NoError(t, os.Rename(filepath.Join(u.work, "gate"), gate))
		script := `echo "$PWD" >> half-done; cat half-done; echo begun; if test -e made; then cat >> made; cat made; else echo made > made; cat '` + gate + `' ; fi`
		id := u.detach("--isolation", "worktree", "--add-dir", u.home, "--prompt", "first", "--", "sh", "-c", script)
		require.True(t, u.eventually(func() bool {
			made, err := filepath.Glob(filepath.Join(u.home, "state/worktrees", id, "*/made"))
			return err == nil && len(made) == 1
		}))
		c.crash()
		for _, pid := range u.supervisors() {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		u.serve(nil)
		ended := u.await(id)[0]
		require.Equal(t, "failed", ended["status"], ended)
		require.Equal(t, "crash", ended["reason"])
		tree := at(t, ended, "worktree", "path").(string)
		require.NoError(t, os.RemoveAll(filepath.Dir(tree)))

		first, second := u.begin("resume", id, "--json", "--prompt", "one"), u.begin("resume", id, "--json", "--prompt", "two")
		paths := map[string]bool{tree: true}
		for want, r := range map[string]result{"one": first(), "two": second()} {
			require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
			o := r.object(t)
			path := at(t, o, "worktree", "path").(string)
			paths[path] = true
			// The command wrote where it is; what the source wrote is there, unchanged.
			require.Equal(t, tree+"\n"+path+"\nbegun\nmade\n"+want, strings.TrimSuffix(o["output"].(string), "\n"))
			require.Equal(t, map[string]any{"path": path, "from": "worktree"}, at(t, o, "boundaries", "cwd"))
			require.Equal(t, "refs/hayward/subagents/"+id+"/tree", at(t, o, "boundaries", "resume_source", "snapshot", "snapshot_ref"))
			require.Equal(t, "made\n"+want, u.gitIn(u.work, "show", "refs/hayward/subagents/"+o["subagent_id"].(string)+"/tree:made"))
		}
		require.Len(t, paths, 3)
		require.Equal(t, "made", u.gitIn(u.work, "show", "refs/hayward/subagents/"+id+"/tree:made"), "the source is as it was")
		require.Equal(t, before, u.userState(u.work))

		// The next one is given the directory that is there; what git ignores comes along.
		u.file(filepath.Join(u.work, ".git/info/exclude"), "*.log\n", 0o644)
		r := u.run(wt("--", "sh", "-c", "test -e new && ls *.log; echo x > new; echo built > built.log; pwd")...)
		require.Zero(t, r.code, r.stderr)
		source := r.object(t)
		r = u.run("resume", source["subagent_id"].(string), "--json")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.object(t)["output"], "built.log\n")
		require.NoDirExists(t, at(t, source, "worktree", "path").(string), "it has moved to its new owner")

		// Nothing left to go on from.
		r = u.run(wt("--", "true")...)
		require.Zero(t, r.code, r.stderr)
		clean := r.object(t)["subagent_id"].(string)
		require.Equal(t, events.CodeResumeWorktreeGone, refused(t, u.run("resume", clean, "--json")))
		r = u.run("resume", clean, "--isolation", "none", "--json")
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, map[string]any{"path": u.work, "from": "source"}, at(t, r.object(t), "boundaries", "cwd"))
	})
}

// An agent that moved knows its new directory: its session is found, and the paths in
// What of a run did not complete is resumed by one verb, once.
func TestResumeAll(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		plan := u.plan("p.toml", `name = "p"
[[subagent]]
name = "good"
shell = "true"
[[subagent]]
name = "bad"
shell = "test -e fixed"
[[subagent]]
name = "worse"
command = ["sh", "-c", "test -e fixed || exit 3"]
`)
		r := u.run("run", "--json", plan)
		require.Equal(t, 1, r.code, r.stderr)
		run := r.object(t)["run_id"].(string)
		u.file(filepath.Join(u.work, "fixed"), "", 0o644)
		r = u.run("resume", "--all", "--run", run, "--json")
		require.Zero(t, r.code, r.stderr)
		var ids, named []string
		for _, one := range list(t, r.object(t), "resumed") {
			ids, named = append(ids, one["subagent_id"].(string)), append(named, one["name"].(string))
		}
		require.ElementsMatch(t, []string{"bad", "worse"}, named)
		for _, snap := range u.await(ids...) {
			require.Equal(t, "completed", snap["status"], snap)
			require.Equal(t, run, snap["parent_session_id"])
		}
		r = u.run("resume", "--all", "--run", run)
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stderr, "everything of that run completed")
		require.Equal(t, 4, u.run("resume", "--all", "--run", "nobody").code)
		for _, args := range [][]string{{"resume"}, {"resume", "--all"}, {"resume", "--run", run}, {"resume", "--all", "--run", run, "x"}, {"resume", "a", "b"}} {
			require.Equal(t, 2, u.run(args...).code, args)
		}
	})
}

// A coordinator may die while it takes up a conversation or a directory: the resume
// runs once, with all of it.
func TestResumeCrashPoints(t *testing.T) {
	asUsers(t, func(t *testing.T, outer *user) {
		for _, point := range crashpoint.Resume {
			t.Run(string(point), func(t *testing.T) {
				u := newUser(t, outer.uid)
				u.bin = testkit.ProgramWithCrashpoints(t)
				u.repository(u.work)
				r := u.run(wt("--", "sh", "-c", "echo run >> ran; cat ran")...)
				require.Zero(t, r.code, r.stderr)
				source := r.object(t)["subagent_id"].(string)
				require.Zero(t, u.run("shutdown").code)
				dying := u.serve([]string{"HAYWARD_CRASHPOINT=" + string(point)})
				id := events.NewID()
				// The answer may be lost with the coordinator; what was accepted is not.
				u.run("resume", source, "--detach", "--id", id)
				require.True(t, u.eventually(dying.killedItself), "%s was not reached", point)
				snap := u.await(id)[0]
				require.Equal(t, "completed", snap["status"], "%v", snap)
				require.Equal(t, "run\nrun\n", snap["output"])
				require.Equal(t, "run\nrun", u.gitIn(u.work, "show", "refs/hayward/subagents/"+id+"/tree:ran"))
				require.Equal(t, "run", u.gitIn(u.work, "show", "refs/hayward/subagents/"+source+"/tree:ran"))
				items := u.transcript(id)
				for i, item := range items {
					require.EqualValues(t, i+1, item.Seq)
				}
			})
		}
	})
}

// A model over MCP goes on from its own subagents, within what it may name.
func TestResumeOverMCP(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		p := u.connectMCP("2025-06-18", "shared")
		first := p.done("spawn_subagent", map[string]any{"command": []string{"sh", "-c", "cat; pwd"}, "prompt": "one ", "name": "n"})
		id := list(t, first, "subagents")[0]["subagent_id"].(string)
		o := p.done("spawn_subagent", map[string]any{"resume_from": "n", "prompt": "two "})
		s := list(t, o, "subagents")[0]
		require.Equal(t, "two "+u.work+"\n", s["output"])
		require.Equal(t, id, u.snapshot(s["subagent_id"].(string))["resumed_from"])

		wide := u.run("spawn", "--json", "--session", "shared", "--sandbox", "off", "--", "true").object(t)["subagent_id"]
		for name, c := range map[string]struct {
			args map[string]any
			code events.Code
		}{
			"a wider sandbox": {map[string]any{"resume_from": wide}, events.CodeForbidden},
			"nobody":          {map[string]any{"resume_from": events.NewID()}, events.CodeResumeNotFound},
			"another type":    {map[string]any{"resume_from": id, "subagent_type": "explore"}, events.CodeResumeType},
			"another command": {map[string]any{"resume_from": id, "command": []string{"ls"}}, events.CodeInvalidRequest},
		} {
			o, failed := p.call("spawn_subagent", c.args)
			require.True(t, failed, name)
			require.Equal(t, string(c.code), at(t, o, "error", "code"), name)
		}
		p.leave()
	})
}

// The real CLIs, resumed, still know the first conversation, in another directory as
