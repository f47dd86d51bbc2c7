package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/config"
)

func TestMCPUsage(t *testing.T) {
	b := newIdleBench(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--call-limit", "1ms"}, "between 1s and 10m"},
		{[]string{"--session", "not a session"}, "is not a session"},
		{[]string{"--add-dir", ""}, "--add-dir"},
		{[]string{"positional"}, "unknown command"},
	} {
		r := b.run(append([]string{"mcp"}, c.args...)...)
		require.Equal(t, 2, r.code, c.args)
		require.Empty(t, r.stdout, "stdout carries protocol only")
		require.Contains(t, r.stderr, c.says)
	}
}

// A session is the connection's own, unless who starts it names one; a file does not,
// because then every connection would be in it.
func TestMCPSession(t *testing.T) {
	for name, c := range map[string]struct {
		env    []string
		file   string
		flag   string
		want   string
		minted bool
	}{
		"own":         {minted: true},
		"environment": {env: []string{"HAYWARD_SESSION=e"}, want: "e"},
		"flag":        {env: []string{"HAYWARD_SESSION=e"}, flag: "f", want: "f"},
		"file":        {file: "session = \"x\"\n", minted: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newIdleBench(t)
			b.configure("config.toml", c.file)
			a := &app{environ: append(b.env, c.env...)}
			s, err := a.sources("")
			require.NoError(t, err)
			a.settings, err = config.Load(s)
			require.NoError(t, err)
			session, minted := a.mcpSession(c.flag)
			require.Equal(t, c.minted, minted)
			if minted {
				require.Regexp(t, "^mcp-[0-9a-f-]{36}$", session)
				return
			}
			require.Equal(t, c.want, session)
		})
	}
}
