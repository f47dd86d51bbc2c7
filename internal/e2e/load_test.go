package e2e

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A load with all there is: nothing is lost, doubled or left, as its own ledger
// says and the process table shows.
func TestLoad(t *testing.T) {
	asUsers(t, func(t *testing.T, u *user) {
		u.serve(nil)
		picture := filepath.Join(u.home, "load.svg")
		r := u.run("load", "--json", "--children", "40", "--concurrency", "16", "--clients", "2", "--picture", picture,
			"--fail", "10", "--crash", "10", "--fork", "20", "--flood", "3", "--output", "10", "--cancel-storm", "1", "--kill-coordinator", "1")
		require.Zero(t, r.code, r.stdout+r.stderr)
		var o struct {
			Accepted, Refused, Delivered, Lost, Duplicated, Wrong, Left int
			Kills                                                       int                            `json:"coordinator_kills"`
			Storms                                                      int                            `json:"cancel_storms"`
			Latency                                                     map[string]struct{ Count int } `json:"latency_ms"`
		}
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &o))
		require.Equal(t, 40, o.Accepted+o.Refused)
		require.Equal(t, o.Accepted, o.Delivered)
		require.Zero(t, o.Lost+o.Duplicated+o.Wrong+o.Left)
		require.Equal(t, []int{1, 1}, []int{o.Kills, o.Storms})
		require.Equal(t, o.Delivered, o.Latency["read"].Count)
		require.Empty(t, u.subagentProcesses())
		requireXML(t, picture)
	})
}

// A load that is ended leaves nothing behind either.
func TestLoadEnded(t *testing.T) {
	u := newUser(t, os.Getuid())
	u.serve(nil)
	r := u.run("load", "--children", "8", "--clients", "2", "--hold", "655s", "--timeout", "2s")
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, "was not over within 2s")
	require.Zero(t, u.running("sleep\x00655"))
	require.Empty(t, u.subagentProcesses())
}

func requireXML(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for d := xml.NewDecoder(f); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else {
			require.NoError(t, err)
		}
	}
}
