package spawner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// A confined subagent does not learn what there is where it may not look, and finds
// what it could find itself.
func TestReach(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(path string) string { return filepath.Join(top, path) }
	for _, dir := range []string{"w/sub", "secret/dir", "other/dir", "state/mine/in", "state/else"} {
		require.NoError(t, os.MkdirAll(at(dir), 0o755))
	}
	for _, file := range []string{"w/tool", "w/sub/tool", "secret/tool", "secret/dir/tool"} {
		require.NoError(t, os.WriteFile(at(file), []byte("#!/bin/sh\n"), 0o755))
	}
	require.NoError(t, os.WriteFile(at("w/text"), nil, 0o644))
	for link, target := range map[string]string{
		"w/there": "../secret/dir", "w/gone": "../secret/xxx",
		"w/through-there": "../secret/dir/../../w/sub", "w/through-gone": "../secret/xxx/../../w/sub",
		"w/abs-there": at("secret/dir"), "w/abs-gone": at("secret/xxx"),
		"w/run-there": "../secret/tool", "w/run-gone": "../secret/xool",
		"w/in": "sub", "w/abs-in": at("w/sub"), "w/loop": "loop", "w/proc": "/proc/self/cwd",
	} {
		require.NoError(t, os.Symlink(target, at(link)))
	}
	narrow := policy.Bounds{Readable: []string{"/usr", "/bin", "/lib"}, PrivateTemp: true}
	wide := policy.Bounds{ReadAll: true}
	for _, b := range []*policy.Bounds{&narrow, &wide} {
		b.Denied = []policy.Denied{{Path: at("secret")}}
		b.Writable = []string{at("w"), at("state/mine")}
		a := Asking{
			Spec: events.Spec{ID: events.NewID()}, Hidden: []string{at("state"), at("none")},
			Inheritance: Inheritance{Confined: true, Bounds: b, Tree: at("state/mine")},
		}
		ask := func(s events.Spawn) (events.Spawn, *events.Error) {
			if s.Cwd == "" {
				s.Cwd = at("w")
			}
			return a.Reach(s)
		}
		asDir := map[string]func(string) events.Spawn{
			"cwd":       func(p string) events.Spawn { return events.Spawn{Cwd: p} },
			"workspace": func(p string) events.Spawn { return events.Spawn{Workspace: p} },
			"add_dirs":  func(p string) events.Spawn { return events.Spawn{AddDirs: []string{at("w"), p}} },
		}
		asCommand := map[string]func(string) events.Spawn{
			"command": func(p string) events.Spawn { return events.Spawn{Command: []string{p}} },
			"PATH": func(p string) events.Spawn {
				return events.Spawn{Command: []string{filepath.Base(p)}, Env: map[string]string{"PATH": "relative:" + filepath.Dir(p)}}
			},
		}
		same := func(member string, of func(string) events.Spawn, there, gone string) {
			_, one := ask(of(there))
			_, other := ask(of(gone))
			require.NotNil(t, one, "%s %s", member, there)
			require.NotNil(t, other, "%s %s", member, gone)
			require.Equal(t, one.Code, other.Code)
			without := func(err *events.Error, path string) string {
				return strings.NewReplacer(path, "X", " "+filepath.Base(path)+":", " X:").Replace(err.Error())
			}
			require.Equal(t, without(one, there), without(other, gone), member)
		}
		for member, of := range asDir {
			for there, gone := range map[string]string{
				at("secret/dir"): at("secret/xxx"), at("w/there"): at("w/gone"), at("w/abs-there"): at("w/abs-gone"),
				at("w/through-there"): at("w/through-gone"), at("secret") + "/dir/../../w": at("secret") + "/xxx/../../w",
				at("state/else"): at("state/none"), at("state") + "/else/../mine": at("state") + "/none/../mine",
				at("secret"): at("w/none"), at("w/text"): at("w/loop"), at("w/proc"): "/proc/self/xxx",
			} {
				same(member, of, there, gone)
			}
			for _, path := range []string{at("w/sub"), at("w/in"), at("w/abs-in"), at("w") + "/in/../in/.//", at("w") + "/../w/sub"} {
				s, err := ask(of(path))
				require.Nil(t, err, path)
				got := map[string]string{"cwd": s.Cwd, "workspace": s.Workspace}[member]
				if member == "add_dirs" {
					got = s.AddDirs[1]
				}
				require.Equal(t, at("w/sub"), got, "%s %s", member, path)
			}
		}
		for member, of := range asCommand {
			for there, gone := range map[string]string{
				at("secret/tool"): at("secret/xool"), at("w/there/tool"): at("w/gone/tool"),
				at("secret/dir/tool"): at("secret/xxx/tool"),
			} {
				same(member, of, there, gone)
			}
			for _, path := range []string{at("w/tool"), at("w/in/tool"), "/bin/sh"} {
				_, err := ask(of(path))
				require.Nil(t, err, "%s %s", member, path)
			}
		}
		same("command", asCommand["command"], at("w/run-there"), at("w/run-gone"))
		_, err := ask(events.Spawn{Command: []string{"./in/tool"}})
		require.Nil(t, err)
		_, err = ask(events.Spawn{Command: []string{"sh"}})
		require.Nil(t, err)
		_, err = ask(events.Spawn{SubagentType: "worker", Command: []string{"what its definition says"}})
		require.Nil(t, err)
		_, err = ask(events.Spawn{Cwd: at("state/mine/in"), Workspace: at("state/mine")})
		require.Nil(t, err)
		_, err = ask(events.Spawn{Cwd: at("other/dir")})
		require.Equal(t, b.ReadAll, err == nil, "what is opened otherwise")
	}

	s := events.Spawn{Cwd: at("secret/dir"), Command: []string{"none"}}
	got, refused := Asking{}.Reach(s)
	require.Nil(t, refused)
	require.Equal(t, s, got, "one that is not confined")
}
