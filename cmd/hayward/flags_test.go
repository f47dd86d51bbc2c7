package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlainFlagError(t *testing.T) {
	for text, want := range map[string]string{
		`invalid argument "abc" for "--tail" flag: strconv.ParseInt: parsing "abc": invalid syntax`:                       `invalid argument "abc" for "--tail" flag: it is not a whole number`,
		`invalid argument "9e99" for "--tail" flag: strconv.ParseInt: parsing "99999999999999999999": value out of range`: `invalid argument "9e99" for "--tail" flag: it is too large`,
		`invalid argument "x" for "--json" flag: strconv.ParseBool: parsing "x": invalid syntax`:                          `invalid argument "x" for "--json" flag: it is neither true nor false`,
		`unknown flag: --strconv`: `unknown flag: --strconv`,
	} {
		require.Equal(t, want, plainFlagError(text))
	}
}

// An empty session is refused by each verb that takes one, without a daemon.
func TestEmptySession(t *testing.T) {
	b := newIdleBench(t)
	for _, args := range [][]string{{"ps"}, {"inspect", "x"}, {"spawn", "--", "true"}, {"cancel", "x"}} {
		r := b.run(append([]string{args[0], "--session", ""}, args[1:]...)...)
		require.Equal(t, exitUsage, r.code, "%v %s", args, r.stderr)
		require.Contains(t, r.stderr, "--session is empty")
	}
}

// And so is an empty name of anything that decides what runs and how.
func TestEmptyNames(t *testing.T) {
	b := newIdleBench(t)
	for _, flag := range []string{"--sandbox", "--output-schema", "--type", "--cwd", "--workspace", "--isolation", "--name", "--parent-prompt"} {
		r := b.run("spawn", flag, "", "--", "true")
		require.Equal(t, exitUsage, r.code, "%s %s", flag, r.stderr)
		require.Contains(t, r.stderr, flag+" is empty")
	}
	require.Contains(t, b.run("sandbox", "exec", "--profile", "", "--", "true").stderr, "--profile is empty")
}
