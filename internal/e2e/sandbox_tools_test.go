package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
		// A library without imports: a whole program would compile the standard
		// library into the fresh cache first.
		{"go", "go", `cd module && export GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0 && go build ./... && go vet . && test -n "$(ls "$GOCACHE")"`},
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
		profile := "strict" // each kind of user under one profile: they take their time
		if u.uid == 0 {
			profile = "workspace"
		}
		for _, c := range checks {
			t.Run(profile+"/"+c.name, func(t *testing.T) {
				if tool(c.needs) == "" {
					t.Skipf("needs %s", c.needs)
				}
				u.toolWorkspace(t)
				r := u.sandboxed(profile, "--", "sh", "-ec", c.script)
				require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
			})
		}
	})
}

// toolWorkspace puts what the checks work on into a fresh workspace.
func (u *user) toolWorkspace(t *testing.T) {
	t.Helper()
	require.NoError(t, os.RemoveAll(u.work))
	for path, text := range map[string]string{
		"module/go.mod":            "module example.org/m\n\ngo 1.21\n",
		"module/m.go":              "package m\n\n// Two is two.\nconst Two = 2\n",
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
