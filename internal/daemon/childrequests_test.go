package daemon

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	logged "go.uber.org/zap/zaptest/observer"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/spawner"
)

// answers is a responder that keeps what it is told.
type answers chan coordinator.Answer

func (a answers) Answer(answer coordinator.Answer) { a <- answer }

// The requests of a subagent count until they are answered, once each.
func TestChildRequests(t *testing.T) {
	c := newChildRequests()
	id, other := events.NewID(), events.NewID()
	told := make(answers, 2*maxChildRequests)
	var open []*childAnswer
	for range maxChildRequests {
		a, err := c.begin(id, told)
		require.Nil(t, err)
		open = append(open, a)
	}
	_, err := c.begin(id, told)
	require.Equal(t, events.CodeBusy, err.Code)
	require.Equal(t, strconv.Itoa(maxChildRequests), err.Details["depth"])
	a, err := c.begin(other, told)
	require.Nil(t, err, "others are not held up")
	require.NotSame(t, open[0].of, a.of)
	a.Answer(coordinator.Answer{})
	open[0].Answer(coordinator.Answer{})
	open[0].Answer(coordinator.Answer{})
	_, err = c.begin(id, told)
	require.Nil(t, err)
	_, err = c.begin(id, told)
	require.NotNil(t, err, "an answer counts once")
	open[0].Answer(coordinator.Answer{}) // in the place of the new one
	for _, a := range open[1:] {
		a.Answer(coordinator.Answer{})
	}
	require.Len(t, c.open, 1)
	require.Equal(t, 1, c.open[id].open)
}

// A subagent that acknowledges for ever fills neither the intake nor the log.
func TestAcknowledgementsOfOneSubagent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, said := logged.New(zap.DebugLevel)
		const intake = ackBurst + 10
		s := newService(nil, coordinator.New(coordinator.Config{Intake: intake}, coordinator.Deps{}), nil, nil, nil, zap.New(core))
		defer s.cancel(nil)
		r := newRPC(s, rundir.Root{})
		id := events.NewID()
		ack := func(by, token string) { r.take(&nats.Msg{Subject: events.RPCAckSubject(by, token)}) }
		token := events.NewID() + "-1a"
		for range 10_000 {
			ack(id, token)
			ack(id, "x")
			ack(id, events.NewID()+"-")
			ack(id, "x-1")
		}
		const lines = 20 // of a limited logger at once
		require.Equal(t, lines, said.Len())
		for range intake - ackBurst {
			require.Nil(t, s.coord.Ack("of a client"), "there is room for others")
		}
		require.NotNil(t, s.coord.Ack("of a client"), "and no more than that")

		// Later it may again; that the intake is full now is said, but not for ever.
		for range 5 {
			time.Sleep(ackBurst * time.Second / time.Duration(ackRate))
			for range ackBurst {
				ack(id, token)
			}
		}
		require.Equal(t, lines, said.FilterMessageSnippet("not taken").Len())
	})
}

// Those that say nothing any more are forgotten.
func TestAckRatesAreForgotten(t *testing.T) {
	a, now := newAckRates(), time.Unix(0, 0)
	busy := events.NewID()
	for range 100 * minSwept {
		require.True(t, a.allow(events.NewID(), now))
		a.allow(busy, now)
		now = now.Add(time.Second)
	}
	require.LessOrEqual(t, len(a.of), minSwept+1)
	for range ackBurst {
		a.allow(busy, now)
	}
	require.False(t, a.allow(busy, now))
	// All at once: none of them is as new, and each is remembered.
	for range 3 * minSwept {
		require.True(t, a.allow(events.NewID(), now))
	}
	require.False(t, a.allow(busy, now))
	require.Greater(t, len(a.of), 3*minSwept)
}

// spawning is a subagent with a run directory that may spawn what spawns says, and
// the requests of subagents. places is asked for the agent types of each spawn.
func spawning(t *testing.T, spawns *events.Spawns, places func(string) (agents.Places, error)) (r *rpc, id string) {
	t.Helper()
	root, err := rundir.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	id = events.NewID()
	dir, err := root.Create(id)
	require.NoError(t, err)
	spec := events.Spec{Schema: events.RecordSchema, ID: id, Run: 1, Spawns: spawns}
	spec.Request = events.Spawn{ID: id, ParentSessionID: "s", Command: []string{"true"}}
	require.NoError(t, dir.WriteSpec(spec))
	require.NoError(t, dir.WriteBounds(spawner.Inheritance{ID: id, Run: 1, Cwd: "/", Workspace: "/", Definitions: "/"}))
	require.NoError(t, dir.Close())
	coord := coordinator.New(coordinator.Config{}, coordinator.Deps{})
	s := newService(nil, coord, nil, &admin{}, nil, zap.NewNop())
	s.agents = spawner.Agents{Places: places}
	t.Cleanup(func() { s.cancel(os.ErrClosed); s.wg.Wait() })
	return newRPC(s, root), id
}

// What a subagent may not spawn is refused before anything is read for it, as the
// state would refuse it.
func TestSpawnOfAnotherTypeReadsNothing(t *testing.T) {
	for _, c := range []struct {
		may    []string
		typ    string
		remedy string
	}{
		{nil, "explore", "may_spawn (--may-spawn)"},
		{[]string{"worker"}, "explore", "name a type that it may spawn"},
		{[]string{"worker"}, "", "name a type that it may spawn"},
	} {
		read := false
		r, id := spawning(t, events.SpawnsOf(c.may), func(string) (agents.Places, error) {
			read = true
			return agents.Places{}, os.ErrInvalid
		})
		a, refused := r.asks.begin(id, make(answers, 1))
		require.Nil(t, refused)
		for range maxInsideResolving {
			r.asks.resolving <- struct{}{} // it does not even need a turn
		}
		_, err := r.checked(id, events.Spawn{SubagentType: c.typ, Command: []string{"true"}}, a.of)
		require.NotNil(t, err)
		require.Equal(t, events.CodeSpawnNotAllowed, err.Code)
		require.Equal(t, events.LayerPermission, err.Layer)
		require.Contains(t, err.Remedy, c.remedy)
		require.Contains(t, err.Message, "spawn: subagent "+id+" may not spawn type ")
		require.False(t, read)
		require.Empty(t, a.of.resolving)
	}
}

// One subagent whose spawns take for ever to be read has few of them read at once:
// neither clients nor other subagents are told to come later.
func TestSpawnsOfOneSubagentBeingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reading, goOn := make(chan struct{}, maxChildRequests), make(chan struct{})
		r, id := spawning(t, events.SpawnsOf([]string{"*"}), func(string) (agents.Places, error) {
			reading <- struct{}{}
			<-goOn
			return agents.Places{}, os.ErrInvalid
		})
		told := make(answers, maxChildRequests)
		var asked []*childAnswer
		for range maxChildRequests {
			a, err := r.asks.begin(id, told)
			require.Nil(t, err)
			asked = append(asked, a)
			r.wg.Go(func() {
				_, err := r.checked(id, events.Spawn{SubagentType: "explore"}, a.of)
				a.Answer(coordinator.Answer{Error: err})
			})
		}
		synctest.Wait()
		require.Len(t, reading, maxChildResolving, "the others wait")
		require.Len(t, asked[0].of.resolving, maxChildResolving)
		require.Len(t, r.asks.resolving, maxChildResolving)
		require.Empty(t, r.resolving, "clients have tokens of their own")
		close(goOn)
		for range maxChildRequests {
			a := <-told
			require.Equal(t, events.CodeCwdMissing, a.Error.Code, "each had its turn")
		}
		r.wg.Wait()
		require.Empty(t, r.asks.resolving)
		require.Empty(t, r.asks.open)

		// One that waits for its turn when the service ends is told so.
		a, refused := r.asks.begin(id, told)
		require.Nil(t, refused)
		for range maxChildResolving {
			a.of.resolving <- struct{}{}
		}
		r.cancel(os.ErrClosed)
		_, err := r.checked(id, events.Spawn{SubagentType: "explore"}, a.of)
		require.Equal(t, events.CodeShuttingDown, err.Code)
	})
}
