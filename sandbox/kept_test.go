//go:build linux && cgo

package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// What is kept for a child is written through its TMPDIR and nowhere else, under
// every profile; what lies beside it in our directory stays out of reach.
func TestConfinedKept(t *testing.T) {
	requireEnforceable(t)
	for _, profile := range []string{"workspace", "devbox", "read-only", "strict"} {
		t.Run(profile, func(t *testing.T) {
			w := newWorld(t)
			r := w.under(t, profile)
			home, place := filepath.Join(w.state, "home"), filepath.Join(r.TempDir, "home")
			for _, dir := range []string{home, place} {
				require.NoError(t, os.Mkdir(dir, 0o700))
			}
			put(t, home+"/settings", "{}")
			r.Kept = []Bind{{Source: home, Target: place}}
			inside := compile(t, r, Probe()).Inside(place)
			w.check(t, r, []expectation{
				may("read|%s/settings", inside), may("create|%s/new", inside),
				mayNot("read|"+home+"/settings", "ENOENT", "EACCES"), mayNot("read|"+w.state+"/secret", "ENOENT", "EACCES"),
			})
			require.FileExists(t, home+"/new")
			require.NoFileExists(t, place+"/new")
		})
	}
}

func TestCompileKept(t *testing.T) {
	w := newWorld(t)
	for name, b := range map[string]Bind{
		"outside":     {Source: w.state, Target: w.workspace},
		"TMPDIR":      {Source: w.state, Target: w.temp},
		"a file":      {Source: w.state + "/stdout.log", Target: w.temp},
		"not there":   {Source: w.state, Target: w.temp + "/none"},
		"to a parent": {Source: w.state, Target: w.temp + "/.."},
	} {
		r := w.request()
		r.Kept = []Bind{b}
		_, e := Compile(r, Probe())
		require.NotNil(t, e, name)
		require.Equal(t, events.CodeSandboxFailed, e.Code, name)
	}
}
