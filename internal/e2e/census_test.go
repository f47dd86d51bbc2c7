package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/testkit"
	"github.com/hayward-dev/hayward/load"
)

// census is a separate process that counts the user's supervisors and what runs
// below them in /proc, and knows nothing else of what goes on.
type census struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// censusCount is what it prints at its end.
type censusCount struct {
	Looks       int
	Supervisors []struct {
		identity
		Parent    int
		Processes []string
	}
	MostSupervisors int `json:"most_supervisors"`
	MostProcesses   int `json:"most_processes"`
	Left            []string
}

// identity names a process for ever.
type identity struct {
	PID   int
	Start uint64
}

// takeCensus begins to count. The user's state directory must be there.
func (u *user) takeCensus() *census {
	u.t.Helper()
	cmd := exec.Command(testkit.Census(u.t), "-state", filepath.Join(u.home, "state"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(u.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(u.t, err)
	require.NoError(u.t, cmd.Start())
	c := &census{t: u.t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	_, err = c.out.ReadString('\n')
	require.NoError(u.t, err)
	return c
}

// end takes the last look.
func (c *census) end() censusCount {
	c.t.Helper()
	require.NoError(c.t, c.in.Close())
	var n censusCount
	require.NoError(c.t, json.NewDecoder(c.out).Decode(&n))
	require.NoError(c.t, c.cmd.Wait())
	return n
}

// maxUnseen is of how many processes one may have lived between two looks. What was
// seen and is not in the ledger has no such allowance.
const maxUnseen = 20

// requireAgrees holds the ends of a load against what was counted. Every process
// that the ledger names was seen, except that one that was cancelled may have lived
// shorter than the time between two looks, and that on a machine that is too busy to
// look some others may have as well; every supervisor that was seen to run
// anything is in the ledger; as many lived at once as were allowed to; none is left.
// It returns how many processes both have.
func requireAgrees(t *testing.T, n censusCount, endsFile string, concurrency int) (both int) {
	t.Helper()
	f, err := os.Open(endsFile)
	require.NoError(t, err)
	defer f.Close()
	named := make(map[identity]load.End)
	for d := json.NewDecoder(f); ; {
		var end load.End
		if err := d.Decode(&end); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
		if end.PID != 0 {
			named[identity{end.PID, end.StartTime}] = end
		}
	}
	byPID := make(map[int]identity, len(named))
	for who := range named {
		byPID[who.PID] = who
	}
	missed, all := maps.Clone(named), len(named)
	for _, s := range n.Supervisors {
		who := s.identity
		_, ok := named[who]
		if maker, forked := byPID[s.Parent]; !ok && forked {
			// What a supervisor forks looks like one until it executes the command.
			t.Logf("%v was taken for a supervisor and is of %v", who, maker)
			who, ok = maker, true
		}
		if ok {
			both++
			delete(missed, who)
		}
		require.True(t, ok || len(s.Processes) == 0, "supervisor %v ran %v and is not in the ledger", s.identity, s.Processes)
	}
	unseen := 0
	for who, end := range missed {
		if end.Status != events.StatusCancelled {
			unseen++
			t.Logf("%s ended as %s, ran as %v and was not seen", end.DedupeID, end.Status, who)
		}
	}
	require.LessOrEqual(t, unseen, all/maxUnseen)
	require.LessOrEqual(t, n.MostSupervisors, concurrency)
	require.Empty(t, n.Left)
	return both
}
