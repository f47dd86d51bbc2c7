package spawner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestResolveRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"), 0o600))
	for name, c := range map[string]struct {
		spawn events.Spawn
		code  events.Code
	}{
		"unknown type":              {events.Spawn{SubagentType: "wizard", Command: []string{"true"}, Cwd: dir}, events.CodeUnknownType},
		"no command":                {events.Spawn{Cwd: dir}, events.CodeMissingCommand},
		"no directory":              {events.Spawn{Command: []string{"true"}}, events.CodeCwdMissing},
		"cwd that does not exist":   {events.Spawn{Command: []string{"true"}, Cwd: filepath.Join(dir, "nope")}, events.CodeCwdMissing},
		"cwd that is a file":        {events.Spawn{Command: []string{"true"}, Cwd: file}, events.CodeCwdMissing},
		"added directory missing":   {events.Spawn{Command: []string{"true"}, Cwd: dir, AddDirs: []string{"/nope"}}, events.CodeCwdMissing},
		"command not in PATH":       {events.Spawn{Command: []string{"no-such-program"}, Cwd: dir}, events.CodeCommandNotFound},
		"command path missing":      {events.Spawn{Command: []string{"./nope"}, Cwd: dir}, events.CodeCommandNotFound},
		"command not executable":    {events.Spawn{Command: []string{"./file"}, Cwd: dir}, events.CodeCommandNotExec},
		"relative PATH is not used": {events.Spawn{Command: []string{"file"}, Cwd: dir, Env: map[string]string{"PATH": "."}}, events.CodeCommandNotFound},
		"unknown profile":           {events.Spawn{Command: []string{"true"}, Cwd: dir, Sandbox: "fortress"}, events.CodeUnknownProfile},
		"worktree":                  {events.Spawn{Command: []string{"true"}, Cwd: dir, Isolation: "worktree"}, events.CodeNotRepository},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Resolve(t.Context(), c.spawn, nil, "")
			require.NotNil(t, err)
			require.Equal(t, c.code, err.Code, err)
		})
	}
}

func TestResolveFillsIn(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(top, ".git"), 0o700))
	s, err := Resolve(t.Context(), events.Spawn{Command: []string{"true"}, Cwd: below + "/."}, nil, "")
	require.Nil(t, err)
	require.Equal(t, TypeCommand, s.SubagentType)
	require.Equal(t, below, s.Cwd)
	require.Equal(t, top, s.Workspace, "the repository's top is the workspace")
	require.Equal(t, "workspace", s.Sandbox)
	require.Equal(t, "none", s.Isolation)
	require.Equal(t, events.StdinPrompt, s.Stdin)

	s, err = Resolve(t.Context(), events.Spawn{Command: []string{"true"}, Workspace: below, Sandbox: "Off"}, nil, "")
	require.Nil(t, err)
	require.Equal(t, below, s.Cwd, "the workspace is the default cwd")
	require.Equal(t, "off", s.Sandbox)
}
