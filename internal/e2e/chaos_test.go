package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

const (
	// chaosVariable asks for more rounds than those of every test run.
	chaosVariable = "HAYWARD_CHAOS_ROUNDS"
	chaosRounds   = 3
	// chaosHome is how many rounds share a home, so that restarts stay quick.
	chaosHome     = 20
	chaosChildren = 50
)

// Rounds of random kills of coordinator and supervisors during 50 concurrent
// subagents: none is lost, none runs twice, no process is left.
func TestRandomKills(t *testing.T) {
	rounds := chaosRounds
	if v := os.Getenv(chaosVariable); v != "" {
		var err error
		rounds, err = strconv.Atoi(v)
		require.NoError(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var total tally
	for first := 0; first < rounds; first += chaosHome {
		t.Run(fmt.Sprintf("from round %d", first), func(t *testing.T) {
			uid := os.Getuid()
			if uid == 0 && first/chaosHome%2 == 1 {
				uid = ordinaryUID
			}
			c := newChaos(t, newUser(t, uid), random)
			for round := first; round < min(first+chaosHome, rounds); round++ {
				c.round(round)
			}
			total.add(c.tally)
		})
	}
	t.Logf("%d rounds: %+v", rounds, total)
}

// tally counts what happened.
type tally struct {
	Accepted, Refused, Completed, Crashed, CoordinatorsKilled, SupervisorsKilled int
}

func (a *tally) add(b tally) {
	a.Accepted += b.Accepted
	a.Refused += b.Refused
	a.Completed += b.Completed
	a.Crashed += b.Crashed
	a.CoordinatorsKilled += b.CoordinatorsKilled
	a.SupervisorsKilled += b.SupervisorsKilled
}

// chaos is a coordinator that is killed again and again, and its client.
type chaos struct {
	t      *testing.T
	u      *user
	random *rand.Rand
	daemon *coordinator
	client *client.Client
	tally
}

func newChaos(t *testing.T, u *user, random *rand.Rand) *chaos {
	c := &chaos{t: t, u: u, random: random}
	c.start()
	var err error
	c.client, err = client.Connect(t.Context(), client.Options{
		Socket:    filepath.Join(u.home, "state/run/bus.sock"),
		TokenFile: filepath.Join(u.home, "state/run/client.token"),
		Environ:   u.env,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.client.Close()) })
	return c
}

func (c *chaos) start() {
	c.daemon = c.u.serve(nil, "--max-per-session", strconv.Itoa(chaosChildren), "--start-timeout", "2m")
}

// round spawns, kills meanwhile, and judges.
func (c *chaos) round(number int) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*deadline)
	defer cancel()
	dir := fmt.Sprintf("round-%d", number)
	require.NoError(c.t, os.Mkdir(filepath.Join(c.u.work, dir), 0o700))
	require.NoError(c.t, os.Chown(filepath.Join(c.u.work, dir), c.u.uid, c.u.uid))
	ids := make([]string, chaosChildren)
	errs := make([]error, chaosChildren)
	var spawning sync.WaitGroup
	for n := range ids {
		ids[n] = events.NewID()
		spawning.Go(func() { errs[n] = c.spawn(ctx, ids[n], dir, n) })
	}
	killed := 0
	// While spawns are under way and after.
	for range 1 + c.random.IntN(3) {
		// Any moment will do: before, while and after they start, run and end.
		time.Sleep(time.Duration(c.random.IntN(400)) * time.Millisecond)
		killed += c.killSupervisors(c.random.IntN(4))
		if c.random.IntN(2) == 0 {
			c.daemon.crash()
			c.CoordinatorsKilled++
			killed += c.killSupervisors(c.random.IntN(3))
			c.start()
		}
	}
	spawning.Wait()
	accepted := make(map[string]int, len(ids)) // by id its number
	for n, id := range ids {
		switch err := errs[n]; {
		case err == nil:
			accepted[id] = n
		case events.HasCode(err, events.CodeStorageFailed):
			// The disk was too busy for the deadline of a write: it was refused.
			c.Refused++
			require.Empty(c.t, c.u.lines(fmt.Sprintf("%s/%d", dir, n)), "%s was refused and ran: %v", id, err)
		default:
			require.NoError(c.t, err, "round %d", number)
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { _, ok := accepted[id]; return !ok })
	c.Accepted += len(ids)
	c.SupervisorsKilled += killed

	reply, err := c.client.Wait(ctx, events.Query{ParentSessionID: "chaos", IDs: ids}, 0)
	require.NoError(c.t, err, "round %d", number)
	require.Len(c.t, reply.Value.Snapshots, len(ids), "lost in round %d: %v", number, reply.Value.Unknown)
	crashed := 0
	var why []string
	for n, s := range reply.Value.Snapshots {
		require.Equal(c.t, ids[n], s.SubagentID)
		if c.judge(s, dir, accepted[s.SubagentID]) {
			crashed++
			why = append(why, s.SubagentID+": "+s.Error.Error())
		}
	}
	require.LessOrEqual(c.t, crashed, killed, "round %d: subagents crashed that nobody killed:\n%s", number, strings.Join(why, "\n"))
	c.Crashed += crashed
	c.Completed += len(ids) - crashed
	require.True(c.t, c.u.eventually(func() bool { return len(c.u.subagentProcesses()) == 0 }),
		"left after round %d: %v", number, c.u.subagentProcesses())
	for _, id := range ids {
		require.NoDirExists(c.t, c.u.tempDir(id))
		require.DirExists(c.t, filepath.Join(c.u.home, "state", "subagents", id))
	}
	kept := len(c.u.runDirectories())
	require.True(c.t, c.Accepted <= kept && kept <= c.Accepted+c.Refused, "%d run directories: %+v", kept, c.tally)
}

func (c *chaos) spawn(ctx context.Context, id, dir string, n int) error {
	profile := "workspace"
	if n%5 == 0 {
		profile = "off"
	}
	script := fmt.Sprintf("echo run >> %s/%d; seq 1 100; sleep 0.%d; seq 101 200", dir, n, n%10)
	_, err := c.client.Spawn(ctx, events.Spawn{
		ID: id, ParentSessionID: "chaos", Command: []string{"sh", "-c", script}, Cwd: c.u.work,
		Sandbox: profile, RunInBackground: true,
	})
	return err
}

// killSupervisors sends SIGKILL to at most n of the living.
func (c *chaos) killSupervisors(n int) (killed int) {
	if n == 0 {
		return 0
	}
	pids := c.u.supervisors()
	c.random.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	for _, pid := range pids[:min(n, len(pids))] {
		switch err := syscall.Kill(pid, syscall.SIGKILL); {
		case err == nil:
			killed++
		case !errors.Is(err, syscall.ESRCH):
			require.NoError(c.t, err)
		}
	}
	return killed
}

// judge compares one end with what was seen from outside, and reports whether
// it is that of a killed supervisor.
func (c *chaos) judge(s events.Snapshot, dir string, n int) (crashed bool) {
	c.t.Helper()
	ran := len(c.u.lines(fmt.Sprintf("%s/%d", dir, n)))
	require.LessOrEqual(c.t, ran, 1, "%s ran twice", s.SubagentID)
	output, err := os.ReadFile(filepath.Join(c.u.home, "state", "subagents", s.SubagentID, "stdout.log"))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(c.t, err)
	}
	if s.Status == events.StatusCompleted {
		require.Equal(c.t, 1, ran, "%s completed and did not run", s.SubagentID)
		require.Equal(c.t, seq(200), string(output), s.SubagentID)
		require.Equal(c.t, seq(200), s.Text, s.SubagentID)
		return false
	}
	require.Equal(c.t, events.StatusFailed, s.Status, "%s: %v", s.SubagentID, s.Error)
	require.Contains(c.t, []events.Reason{events.ReasonCrash, events.ReasonStart}, s.Reason, "%s: %v", s.SubagentID, s.Error)
	require.True(c.t, strings.HasPrefix(seq(200), string(output)), s.SubagentID)
	return true
}
