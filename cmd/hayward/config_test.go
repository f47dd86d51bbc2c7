package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/deadlines"
)

// configure writes the user's configuration, or another file of its directory.
func (b *bench) configure(name, text string) string {
	b.t.Helper()
	file := filepath.Join(b.dir, ".config", "hayward", name)
	require.NoError(b.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(b.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

const everything = `session = "configured"
[sandbox]
profile = "strict"
best_effort = true
[spawn]
max_runtime = "1m"
idle_timeout = "2s"
isolation = "worktree"
max_memory = "64M"
`

// A spawn takes what neither it nor the environment says from the configuration.
func TestSpawnTakesDefaultsFromTheConfiguration(t *testing.T) {
	b := newBench(t)
	b.configure("config.toml", everything)
	spawned := func(args ...string) events.Spawn {
		t.Helper()
		r := b.run(append(append([]string{"spawn", "-d"}, args...), "--", "gentle")...)
		require.Zero(t, r.code, r.stderr)
		return b.coord.Agent(r.stdout[:len(r.stdout)-1]).Spawn
	}
	s := spawned()
	require.Equal(t, "configured", s.ParentSessionID)
	require.Equal(t, "strict", s.Sandbox)
	require.True(t, s.SandboxBestEffort)
	require.EqualValues(t, 60000, *s.MaxRuntimeMS)
	require.EqualValues(t, 2000, *s.IdleTimeoutMS)
	require.Equal(t, "worktree", s.Isolation)
	require.EqualValues(t, 64<<20, *s.MaxMemoryBytes)

	b.env = append(b.env, "HAYWARD_SANDBOX=off", "HAYWARD_SESSION=mine", "HAYWARD_MAX_RUNTIME=3s")
	s = spawned("--sandbox-best-effort=false")
	require.Equal(t, "off", s.Sandbox)
	require.Equal(t, "mine", s.ParentSessionID)
	require.EqualValues(t, 3000, *s.MaxRuntimeMS)
	require.False(t, s.SandboxBestEffort)

	require.EqualValues(t, 0, *spawned("--max-memory", "0").MaxMemoryBytes, "no bound")
	require.EqualValues(t, 32<<20, *spawned("--max-memory", "32M").MaxMemoryBytes)
	s = spawned("--sandbox", "read-only", "--session", "S", "--max-runtime", "4s", "--isolation", "none")
	require.Equal(t, "read-only", s.Sandbox)
	require.Equal(t, "S", s.ParentSessionID)
	require.EqualValues(t, 4000, *s.MaxRuntimeMS)
	require.Equal(t, "none", s.Isolation)

	file := b.configure("requirements.toml", "[sandbox]\nprofile = \"strict\"\n")
	r := b.run("spawn", "-d", "--sandbox", "off", "--name", "pinned", "--", "gentle")
	require.Zero(t, r.code)
	require.Equal(t, "hayward spawn: warning: --sandbox off is not used: sandbox.profile is strict, pinned by "+file+":2\n", r.stderr)
	require.Equal(t, "strict", b.coord.Agent("pinned").Spawn.Sandbox)
}

// A run gives its subagents the sandbox of the environment, unless the plan does.
func TestRunTakesTheSandboxFromTheEnvironment(t *testing.T) {
	b := newBench(t)
	b.env = append(b.env, "HAYWARD_SANDBOX=off")
	file := filepath.Join(b.dir, "plan.toml")
	require.NoError(t, os.WriteFile(file, []byte(`[[subagent]]
name = "open"
command = ["echo"]
[[subagent]]
name = "named"
command = ["echo"]
sandbox = "strict"
`), 0o600))
	r := b.run("run", file)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "off", b.coord.Agent("open").Spawn.Sandbox)
	require.Equal(t, "strict", b.coord.Agent("named").Spawn.Sandbox)
}

// A faulty configuration stops what it matters for, before anything is started.
func TestFaultyConfiguration(t *testing.T) {
	b := newIdleBench(t)
	file := b.configure("config.toml", "[limits]\nper_session = 8\nper_sesion = 9\n[sandbox]\nprofile = 1\n")
	for _, args := range [][]string{{"spawn", "--", "echo"}, {"completions"}, {"outstanding", "--parent-prompt", "p"}, {"serve"}, {"config", "show"}} {
		r := b.run(args...)
		require.Equal(t, 2, r.code, args)
		require.Contains(t, r.stderr, file+":3: limits.per_sesion: unknown key; [limits] has per_session, total, queue_length, depth, per_type, at_limit, max_memory (and 1 more) (see: hayward config check)")
	}
	r := b.run("config", "check")
	require.Equal(t, 2, r.code)
	require.Equal(t, file+":3: limits.per_sesion: unknown key; [limits] has per_session, total, queue_length, depth, per_type, at_limit, max_memory\n"+
		file+":5: sandbox.profile: is a whole number and should be a string\n", r.stdout)
	require.Contains(t, b.run("config", "check", "--json").stdout, `{"file":"`+file+`","line":5,"key":"sandbox.profile","message":"is a whole number and should be a string"}`)
	require.Contains(t, b.run("config", "path").stdout, "bad     "+file)
	r = b.run("doctor")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "MISSING  configuration")
	require.NoDirExists(t, filepath.Join(b.dir, "state"))

	b.configure("config.toml", "")
	b.env = append(b.env, "HAYWARD_IDLE_TIMEOUT=soon")
	require.Contains(t, b.run("config", "check").stdout, "$HAYWARD_IDLE_TIMEOUT: spawn.idle_timeout: ")
}

// Each fault of a sandbox.toml has a line of its own, and the remedy is not the
// command that was run.
func TestFaultySandboxProfiles(t *testing.T) {
	b := newIdleBench(t)
	file := b.configure("sandbox.toml", "[profiles.a]\nextends = 1\ndeny = ['{.env,secrets}']\n")
	r := b.run("sandbox", "list", "--workspace", t.TempDir())
	require.Equal(t, 2, r.code)
	require.Equal(t, "hayward sandbox list: "+file+":2: extends is not a string\n"+
		"hayward sandbox list: "+file+":3: an entry of deny \"{.env,secrets}\" holds \"{\", which patterns do not have: "+
		"write one entry for each name; one that really holds it is covered by naming its directory (correct "+file+")\n", r.stderr)
	require.Empty(t, r.stdout)
	b.configure("sandbox.toml", "[profiles.a]\nextends = 1\n")
	r = b.run("sandbox", "list", "--workspace", t.TempDir())
	require.Equal(t, "hayward sandbox list: "+file+":2: extends is not a string (correct "+file+")\n", r.stderr)
}

// The refusal of a profile says where its name came from.
func TestUnknownProfileNamesItsOrigin(t *testing.T) {
	b := newBench(t)
	refuse := func(name string) {
		b.s.Handle(events.RequestSubject(events.KindSpawn), refuser(events.Errorf(events.CodeUnknownProfile, events.LayerGate, "no sandbox profile is called %q", name)))
	}
	file := b.configure("config.toml", "[sandbox]\nprofile = \"nonsense\"\n")
	refuse("nonsense")
	for _, args := range [][]string{{"spawn", "--", "echo"}, {"spawn", "-d", "--", "echo"}} {
		r := b.run(args...)
		require.Equal(t, 2, r.code)
		require.Equal(t, "hayward spawn: no sandbox profile is called \"nonsense\"; from: "+file+":2\n", r.stderr)
	}
	require.NotContains(t, b.run("spawn", "--sandbox", "other", "--", "echo").stderr, "from")
}

func TestConfigShow(t *testing.T) {
	b := newIdleBench(t)
	file := b.configure("config.toml", "session = \"s\"\n[limits]\nper_session = 8\n")
	b.env = append(b.env, "HAYWARD_SESSION=mine")
	r := b.run("config", "show", "--origin", "session", "limits.per_session", "limits.total", "spawn.max_runtime")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, `session = "mine"                  # $HAYWARD_SESSION; over "s" of `+file+`:1
limits.per_session = 8            # `+file+`:3
limits.total = 256                # default
# spawn.max_runtime has no value  # default
`, r.stdout)
	require.Equal(t, `session = "mine"`+"\n", b.run("config", "show", "session").stdout)
	require.Equal(t, 2, b.run("config", "show", "sesion").code)

	// What is shown is a configuration with the same values.
	all := b.run("config", "show").stdout
	b.env = b.env[:len(b.env)-1]
	b.configure("config.toml", all)
	require.Equal(t, all, b.run("config", "show").stdout)

	r = b.run("config", "show", "--json", "limits.total")
	require.Contains(t, r.stdout, `{"values":[{"key":"limits.total","type":"integer","scope":"daemon","value":"256","origin":{"layer":"user","file":"`+file+`"`)
	r = b.run("config", "path")
	require.Contains(t, r.stdout, "user   used    "+file)
	require.Equal(t, 2, b.run("config", "nonsense").code)
}

// A project's file counts only for those who trust it, and nobody can yet.
func TestProjectConfiguration(t *testing.T) {
	b := newBench(t)
	project := filepath.Join(b.dir, "project")
	file := filepath.Join(project, config.ProjectFile)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("[sandbox]\nprofile = \"off\"\n"), 0o600))
	r := b.run("spawn", "-d", "--name", "n", "--cwd", project, "--", "gentle")
	require.Zero(t, r.code)
	require.Equal(t, "hayward spawn: warning: "+file+" is not used: this project is not trusted (hayward trust)\n", r.stderr)
	require.Empty(t, b.coord.Agent("n").Spawn.Sandbox)

	t.Chdir(b.dir)
	r = b.run("spawn", "-d", "--cwd", "project", "--", "gentle")
	require.Contains(t, r.stderr, file+" is not used")
	t.Chdir(project)
	r = b.run("config", "show")
	require.Contains(t, r.stdout, "# Not used, because this project is not trusted: "+file+"\n# sandbox.profile = \"off\"\n")
	require.Contains(t, r.stdout, "sandbox.profile = \"workspace\"\n")
}

// A daemon is configured by its files and flags, not by its environment.
func TestDaemonOptions(t *testing.T) {
	b := newIdleBench(t)
	file := b.configure("config.toml", "[limits]\nper_session = 3\n[deadlines]\ngrace = \"7s\"\n[bus]\nsync = \"always\"\n")
	a := &app{environ: b.env}
	cmd := a.serveCommand()
	require.NoError(t, cmd.ParseFlags([]string{"--max-total", "9", "--max-per-session", "0"}))
	s, err := a.sources("")
	require.NoError(t, err)
	a.settings, err = config.Load(s)
	require.NoError(t, err)
	require.NoError(t, a.takeFlags(cmd, config.ScopeDaemon))
	o := a.daemonOptions()
	require.Equal(t, 3, o.Limits.PerSession, "0 is not given")
	require.Equal(t, 9, o.Limits.Total)
	require.Equal(t, 4096, o.Limits.QueueLength)
	require.True(t, o.SyncAlways)
	want := deadlines.Default()
	want.Grace = 7e9
	require.Equal(t, want, o.Deadlines)
	require.Equal(t, file+":2", o.Origins["per_session"])
	require.Equal(t, "flag --max-total", o.Origins["total"])
	require.Equal(t, file+":4", o.Origins["grace_ms"])
	require.Equal(t, "default", o.Origins["max_runtime_ms"])
	require.Equal(t, 2, b.run("serve", "--grace", "-1s").code)
	require.Equal(t, 2, b.run("serve", "--max-depth", "-1").code)
	require.Equal(t, 2, b.run("serve", "--log-level", "loud").code)
}

// Pins hold for requests of every client.
func TestPinsAreEnforcedByTheDaemon(t *testing.T) {
	b := newIdleBench(t)
	file := b.configure("requirements.toml", "[sandbox]\nprofile = \"Workspace\"\nbest_effort = false\n[spawn]\nisolation = \"none\"\n")
	a := &app{environ: b.env}
	s, err := a.sources("")
	require.NoError(t, err)
	a.settings, err = config.Load(s)
	require.NoError(t, err)
	pins := enforcePins(a.settings)
	for _, ok := range []events.Spawn{{}, {Sandbox: "workspace"}, {Sandbox: "WORKSPACE", Isolation: "none"}} {
		require.Nil(t, pins(&ok))
		require.Equal(t, "Workspace", ok.Sandbox)
		require.Equal(t, "none", ok.Isolation)
	}
	require.True(t, sameProfile("My_Own", "my-own"))
	require.False(t, sameProfile("mine", "other"))
	for _, bad := range []events.Spawn{{Sandbox: "off"}, {SandboxBestEffort: true}, {Isolation: "worktree"}} {
		refusal := pins(&bad)
		require.NotNil(t, refusal)
		require.Equal(t, events.CodeForbidden, refusal.Code)
		require.Contains(t, refusal.Message, "pinned by "+file)
	}
	require.NoError(t, os.Remove(file))
	a.settings, err = config.Load(s)
	require.NoError(t, err)
	require.Nil(t, enforcePins(a.settings)(&events.Spawn{Sandbox: "off"}))
}

// Doctor tells the limits of the daemon that runs or, without one, of the next.
func TestDoctorTellsLimits(t *testing.T) {
	idle := newIdleBench(t)
	file := idle.configure("config.toml", "[limits]\nper_session = 3\n")
	r := idle.run("doctor")
	require.Regexp(t, `limit per_session +3 \(`+file+`:2\)`, r.stdout)
	require.Regexp(t, `limit grace_ms +10s \(default\)`, r.stdout)
	require.Regexp(t, `sandbox.profile +workspace \(default\)`, r.stdout)

	b := newBench(t)
	file = b.configure("config.toml", "[limits]\nper_session = 3\n")
	r = b.run("doctor")
	require.Regexp(t, `less +limit per_session +32 \(default\), and now configured as 3 \(`+file+`:2\)`, r.stdout)
}
