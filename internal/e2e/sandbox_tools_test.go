package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// toolPath is where real tools are looked for: not where a version manager in
// somebody's home puts its own in front.
const toolPath = "/usr/local/go/bin:/usr/lib/go/bin:/usr/local/bin:/usr/bin:/bin"

// tool returns a program of toolPath, or empty.
func tool(name string) string {
	for _, dir := range filepath.SplitList(toolPath) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// Real tools work where a profile means them to.
func TestSandboxRealTools(t *testing.T) {
	checks := []struct{ name, needs, script string }{
		{"git", "git", `
			export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
			cd repository && echo 1 > a && git add a && git commit -qm one && git checkout -qb topic && echo 2 > b && git add b && git commit -qm two &&
			git checkout -q - && echo 3 > c && git add c && git commit -qm three && git checkout -q topic && git rebase -q - && git gc -q && git stash list &&
			test "$(git log --oneline | wc -l)" = 3`},
		{"go", "go", `cd module && export GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0 && go build ./... && go test -vet=off . && test -n "$(ls "$GOCACHE")"`},
		{"python multiprocessing", "python3", `python3 -c '
import multiprocessing as m
def double(x): return 2 * x
if __name__ == "__main__":
    with m.Lock(): pass
    with m.Pool(2) as p: assert p.map(double, [1, 2, 3]) == [2, 4, 6]
'`},
		{"sqlite", "python3", `python3 -c '
import sqlite3
c = sqlite3.connect("db"); c.execute("pragma journal_mode=wal"); c.execute("create table t(a)"); c.execute("insert into t values (1)"); c.commit()
assert c.execute("select count(*) from t").fetchone() == (1,)
'`},
		{"pseudo terminal", "python3", `python3 -c 'import os; os.openpty()' && mktemp -d`},
		{"C", "cc", `printf '#include <stdio.h>\nint main(void){puts("hi");return 0;}\n' > m.c && cc -o m m.c && test "$(./m)" = hi`},
		{"node", "node", `node -e 'const c = require("child_process").spawnSync("true"); if (c.error || c.status) throw c.error; require("os").tmpdir(); require("fs").renameSync("from/f", "to/f")'`},
		{"npm", "npm", `cd npm && tar czf dep.tgz package && npm install --no-audit --no-fund --offline ./dep.tgz && node -e 'if (require("dep") !== 7) throw 1'`},
	}
	asUsers(t, func(t *testing.T, u *user) {
		for i, kv := range u.env {
			if strings.HasPrefix(kv, "PATH=") {
				u.env[i] = "PATH=" + toolPath
			}
		}
		profiles := []string{"strict"} // each kind of user under one profile: they take their time
		if u.uid == 0 {
			profiles = []string{"workspace"}
		}
		if os.Getenv(allToolsVariable) != "" {
			profiles = []string{"workspace", "strict"}
		}
		for _, profile := range profiles {
			for _, c := range checks {
				t.Run(profile+"/"+c.name, func(t *testing.T) {
					if tool(c.needs) == "" {
						t.Skipf("needs %s", c.needs)
					}
					u.toolWorkspace(t)
					if c.needs == "go" {
						u.seedGoCache(t)
					}
					r := u.sandboxed(profile, "--", "sh", "-ec", c.script)
					require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
				})
			}
		}
	})
}

// seedGoCache puts what a test of the module needs of the standard library into the
// user's cache root, compiled: compiling it inside would take its time. What is
// there is taken from the cache of who runs these tests.
func (u *user) seedGoCache(t *testing.T) {
	t.Helper()
	from, names, err := goCacheSeed(filepath.Join(u.work, "module"))
	require.NoError(t, err)
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(from, name))
		require.NoError(t, err)
		to := filepath.Join(u.home, "cache", "hayward", "go-build", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, b, 0o644))
	}
	u.own()
}

// seed is what [goCacheSeed] found the first time: looking takes a while.
var seed struct {
	once  sync.Once
	from  string
	names []string
	err   error
}

// goCacheSeed compiles what a test of the module needs, and returns the cache of
// whoever runs these tests with the names of that in it.
func goCacheSeed(module string) (string, []string, error) {
	seed.once.Do(func() { seed.from, seed.names, seed.err = findGoCacheSeed(module) })
	return seed.from, seed.names, seed.err
}

func findGoCacheSeed(module string) (from string, names []string, err error) {
	command := func(args ...string) string {
		cmd := exec.Command(tool("go"), args...)
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=")
		out, runErr := cmd.Output()
		err = errors.Join(err, runErr)
		return strings.TrimSpace(string(out))
	}
	compiled := strings.Fields(command("list", "-export", "-deps", "-test", "-f", "{{.Export}}", "."))
	from = command("env", "GOCACHE")
	actions, globErr := filepath.Glob(filepath.Join(from, "??", "*-a"))
	if err = errors.Join(err, globErr); err != nil {
		return from, nil, err
	}
	needed := make(map[string]bool) // by output id
	for _, file := range compiled {
		name := filepath.Base(file)
		needed[strings.TrimSuffix(name, "-d")] = true
		names = append(names, filepath.Join(name[:2], name))
	}
	for _, path := range actions {
		b, readErr := os.ReadFile(path)
		if errors.Is(readErr, os.ErrNotExist) {
			continue // trimmed meanwhile
		}
		err = errors.Join(err, readErr)
		if fields := strings.Fields(string(b)); len(fields) > 2 && needed[fields[2]] { // "v1 ACTION OUTPUT ..."
			names = append(names, filepath.Join(fields[1][:2], fields[1]+"-a"))
		}
	}
	return from, names, err
}

// allToolsVariable asks for every tool under both profiles.
const allToolsVariable = "HAYWARD_TEST_ALL_TOOLS"

// toolWorkspace puts what the checks work on into a fresh workspace.
func (u *user) toolWorkspace(t *testing.T) {
	t.Helper()
	require.NoError(t, os.RemoveAll(u.work))
	for path, text := range map[string]string{
		"module/go.mod":            "module example.org/m\n\ngo 1.21\n",
		"module/m.go":              "package m\n\n// Two is two.\nconst Two = 2\n",
		"module/m_test.go":         "package m\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two != 2 {\n\t\tt.Fatal(Two)\n\t}\n}\n",
		"npm/package.json":         `{"name": "x", "version": "1.0.0"}`,
		"npm/package/package.json": `{"name": "dep", "version": "1.0.0", "main": "index.js"}`,
		"npm/package/index.js":     "module.exports = 7\n",
		"from/f":                   "",
		"to/g":                     "",
		"repository/.keep":         "",
	} {
		path = filepath.Join(u.work, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	if git := tool("git"); git != "" {
		out, err := exec.Command(git, "init", "-q", filepath.Join(u.work, "repository")).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	u.own()
}
