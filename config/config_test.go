package config

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// place is a set of directories with files in them.
type place struct {
	t *testing.T
	Sources
	env map[string]string
}

func newPlace(t *testing.T) *place {
	dir := t.TempDir()
	p := &place{t: t, env: map[string]string{}}
	p.Sources = Sources{
		SystemDir: filepath.Join(dir, "etc"), UserDir: filepath.Join(dir, "user"), ProjectDir: filepath.Join(dir, "project"),
		Trusted: func(string) bool { return true },
		Getenv:  func(name string) string { return p.env[name] },
	}
	return p
}

func (p *place) write(dir, name, text string) string {
	p.t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(p.t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

func (p *place) load() *Config {
	p.t.Helper()
	c, err := Load(p.Sources)
	require.NoError(p.t, err)
	return c
}

func (p *place) faults() []string {
	p.t.Helper()
	_, err := Load(p.Sources)
	var all *Error
	require.ErrorAs(p.t, err, &all)
	var out []string
	for _, f := range all.Faults {
		out = append(out, f.String())
	}
	return out
}

// Every key is described, has a sound default, and no two share a name, a
// variable or a flag of the same verb.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys {
		require.NotEmpty(t, k.About, k.Name)
		require.Equal(t, k, Find(k.Name))
		require.Equal(t, k.Flag == "", k.Verbs == "", k.Name)
		require.False(t, k.Scope == ScopeDaemon && k.Env != "", "%s: the daemon's environment must not count", k.Name)
		names := []string{k.Name}
		if k.Env != "" {
			names = append(names, "$"+k.Env)
		}
		if k.Flag != "" {
			names = append(names, "--"+k.Flag+" of "+k.Verbs)
		}
		for _, name := range names {
			require.False(t, seen[name], name)
			seen[name] = true
		}
	}
	c, err := Load(Sources{})
	require.NoError(t, err)
	for _, v := range c.Values() {
		require.Equal(t, v.Key.Default, v.Text, v.Key.Name)
		require.False(t, v.IsSet())
		require.Equal(t, "default", v.Origin.String())
	}
}

// Each place counts before the next; taking the strongest away uncovers it.
func TestPrecedence(t *testing.T) {
	p := newPlace(t)
	set := func(profile string) string { return "\n[sandbox]\nprofile = \"" + profile + "\"\n" }
	system := p.write(p.SystemDir, fileName, set("system"))
	user := p.write(p.UserDir, fileName, set("user"))
	project := p.write(p.ProjectDir, ProjectFile, set("project"))
	userPin := p.write(p.UserDir, pinName, set("user-pin"))
	pin := p.write(p.SystemDir, pinName, set("pin"))
	p.env["HAYWARD_SANDBOX"] = "environment"

	want := []struct{ value, origin, remove string }{
		{"pin", "pinned by " + pin + ":3", pin},
		{"user-pin", "pinned by " + userPin + ":3", userPin},
		{"flag", "flag --sandbox", "flag"},
		{"environment", "$HAYWARD_SANDBOX", "environment"},
		{"project", project + ":3", project},
		{"user", user + ":3", user},
		{"system", system + ":3", system},
		{"workspace", "default", ""},
	}
	flag := true
	for i, w := range want {
		c := p.load()
		if flag {
			require.NoError(t, c.SetFlag(SandboxProfile, "sandbox", "flag"))
		}
		v := c.Value(SandboxProfile)
		require.Equal(t, w.value, v.Text)
		require.Equal(t, w.value, c.String(SandboxProfile))
		require.Equal(t, w.origin, v.Origin.String())
		// Two pins are one layer, and the default is not overridden by anybody.
		require.Len(t, v.Overridden, max(0, len(want)-2-max(i, 1)), w.value)
		if i < 2 {
			require.Equal(t, []string{"--sandbox flag is not used: sandbox.profile is " + w.value + ", " + w.origin}, c.Warnings())
		} else {
			require.Empty(t, c.Warnings())
		}
		switch w.remove {
		case "flag":
			flag = false
		case "environment":
			delete(p.env, "HAYWARD_SANDBOX")
		case "":
		default:
			require.NoError(t, os.Remove(w.remove))
		}
	}
}

func TestTypes(t *testing.T) {
	p := newPlace(t)
	p.write(p.UserDir, fileName, `session = "s"
sandbox = { best_effort = true }
[spawn]
max_runtime = "1h30m"
max_memory = "1536M"
[daemon]
tcp = ""
[limits]
per_session = 7
[limits.per_type]
command = 4
agent = 2
`)
	c := p.load()
	require.Equal(t, "s", c.String(Session))
	require.True(t, c.Bool(SandboxBestEffort))
	require.Equal(t, 7, c.Int(LimitPerSession))
	require.Equal(t, 90*time.Minute, c.Duration(SpawnMaxRuntime))
	require.Equal(t, "1h30m", c.Value(SpawnMaxRuntime).Text)
	require.Equal(t, map[string]int{"command": 4, "agent": 2}, c.Counts(LimitPerType))
	require.Equal(t, "agent=2,command=4", c.Value(LimitPerType).Text)
	require.Equal(t, 10, c.Value(LimitPerType).Origin.Line)
	require.EqualValues(t, 1536<<20, c.Bytes(SpawnMaxMemory))
	require.Equal(t, "1536M", c.Value(SpawnMaxMemory).Text)
	require.Equal(t, "100000001", Size(100000001))
	require.Equal(t, "3T", Size(3<<40))
	require.Zero(t, c.Duration(SpawnIdleTimeout), "without a default")
	require.Equal(t, 9, c.Value(LimitPerSession).Origin.Line)
	require.True(t, c.Value(DaemonTCP).IsSet())
}

// Everything that is wrong is told at once, each with its line.
func TestFaults(t *testing.T) {
	p := newPlace(t)
	file := p.write(p.UserDir, fileName, `sesion = "x"
[sandbox]
profile = 3
profil = "strict"
[limits]
per_session = 0
total = "many"
depth = 1.5
max_memory = 4096
[limits.per_type]
agent = 1
command = 0
[daemon]
tcp = "127.0.0.1:70000"
[deadlines]
grace = 10
start_timeout = "soon"
kill_proof = "-1s"
heartbeat = "99999999h"
max_runtime = "10000h"
[bus]
sync = "sometimes"
[nonsense]
a = 1
`)
	p.env["HAYWARD_MAX_RUNTIME"] = "-1s"
	project := p.write(p.ProjectDir, ProjectFile, "daemon = 1\n[limits]\ntotal = 1\n")
	require.Equal(t, []string{
		project + ":1: daemon: is a whole number and should be a table: [daemon]",
		project + ":3: limits.total: belongs to the daemon, which serves all projects; set it in the user's config.toml",
		file + ":1: sesion: unknown key; there are session, [sandbox], [spawn], [limits], [retention], [worktree], [daemon], [metrics], [tracing], [bus], [resume], [agents], [gateway], [deadlines]",
		file + ":3: sandbox.profile: is a whole number and should be a string",
		file + ":4: sandbox.profil: unknown key; [sandbox] has profile, best_effort",
		file + ":6: limits.per_session: 0 is less than 1",
		file + ":7: limits.total: is a string and should be a whole number",
		file + ":8: limits.depth: is a number with a fraction and should be a whole number",
		file + ":9: limits.max_memory: 4K is neither 0 nor between 16M and 1024T",
		file + ":12: limits.per_type: command: 0 is less than 1",
		file + `:14: daemon.tcp: "127.0.0.1:70000" names no port between 0 and 65535`,
		file + `:16: deadlines.grace: is a whole number and should be a duration in quotation marks, such as "90s"`,
		file + `:17: deadlines.start_timeout: "soon" is not a duration such as "90s", "10m" or "1h30m"`,
		file + ":18: deadlines.kill_proof: -1s is less than 1ms",
		file + `:19: deadlines.heartbeat: "99999999h" is out of the range of a duration`,
		file + ":20: deadlines.max_runtime: 10000h0m0s is over a year",
		file + `:22: bus.sync: "sometimes" is not one of interval, always`,
		file + ":23: nonsense: unknown key; there are session, [sandbox], [spawn], [limits], [retention], [worktree], [daemon], [metrics], [tracing], [bus], [resume], [agents], [gateway], [deadlines]",
		"$HAYWARD_MAX_RUNTIME: spawn.max_runtime: -1s is less than 1ms",
	}, p.faults())
}

// A file that is there is used or is an error, whatever it is.
func TestFilesThatCannotBeRead(t *testing.T) {
	p := newPlace(t)
	file := p.write(p.UserDir, fileName, "a = \n")
	require.Contains(t, p.faults()[0], file+":1: ")
	p.write(p.UserDir, fileName, "\xff")
	require.Equal(t, []string{file + ": is not UTF-8"}, p.faults())
	require.NoError(t, os.Remove(file))
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	require.Equal(t, []string{file + ": is not a regular file"}, p.faults())
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	require.Equal(t, []string{file + ": is not a regular file"}, p.faults())
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Symlink(file, file))
	require.Equal(t, []string{file + ": open: too many levels of symbolic links"}, p.faults())

	_, err := Load(p.Sources)
	var all *Error
	require.True(t, errors.As(err, &all))
	require.Equal(t, all.Faults[0].String(), err.Error())
}

// What a project that is not trusted has is shown and does not count, not even
// its faults.
func TestUntrustedProject(t *testing.T) {
	p := newPlace(t)
	var asked []string
	p.Trusted = func(dir string) bool { asked = append(asked, dir); return false }
	file := p.write(p.ProjectDir, ProjectFile, "nonsense = 1\n[sandbox]\nprofile = \"off\"\n")
	c := p.load()
	require.Equal(t, []string{p.ProjectDir}, asked)
	require.Equal(t, "workspace", c.String(SandboxProfile))
	require.Equal(t, []string{file + " is not used: this project is not trusted (hayward trust)"}, c.Warnings())
	for _, f := range c.Files() {
		if f.Layer == LayerProject {
			require.Equal(t, FileUntrusted, f.State)
			require.Equal(t, "off", f.Ignored[SandboxProfile.Name].Text)
			continue
		}
		require.Equal(t, FileAbsent, f.State, f.Path)
	}
	p.Trusted = nil
	require.Equal(t, "workspace", p.load().String(SandboxProfile), "nobody is trusted unless somebody says so")
}

func TestFindProject(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	repo := filepath.Join(home, "repo")
	deep := filepath.Join(repo, "a", "b")
	require.NoError(t, os.MkdirAll(filepath.Join(repo, ".git"), 0o755))
	require.NoError(t, os.MkdirAll(deep, 0o755))
	file := func(dir string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, ".hayward"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, ProjectFile), nil, 0o644))
	}
	file(home)
	require.Empty(t, FindProject(deep, home), "neither beyond the repository nor in the home")
	file(repo)
	require.Equal(t, repo, FindProject(deep, home))
	file(filepath.Join(repo, "a"))
	require.Equal(t, filepath.Join(repo, "a"), FindProject(deep, home), "the nearest")
	require.Empty(t, FindProject("/", home))
}

// A service whose configuration directory is the system's reads it once.
func TestServiceDirectory(t *testing.T) {
	p := newPlace(t)
	p.UserDir = p.SystemDir
	p.write(p.SystemDir, fileName, "limits.total = 5\n")
	c := p.load()
	require.Equal(t, LayerSystem, c.Value(LimitTotal).Origin.Layer)
	require.Empty(t, c.Value(LimitTotal).Overridden)
}

func TestFlags(t *testing.T) {
	c := newPlace(t).load()
	require.NoError(t, c.SetFlag(BusSync, "sync-always", SyncAlways))
	require.Equal(t, "flag --sync-always", c.Value(BusSync).Origin.String())
	require.EqualError(t, c.SetFlag(LimitTotal, "max-total", "-1"), "--max-total: -1 is less than 1")
}
