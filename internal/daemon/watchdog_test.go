package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	logged "go.uber.org/zap/zaptest/observer"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

// A loop that has work and does not turn is noticed and said, again and again;
// one that has no work, or had a moment only, is not.
func TestWedgedLoopIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, said := logged.New(zap.ErrorLevel)
		// It is never run, so its loop does not turn.
		d := &daemon{coord: coordinator.New(coordinator.Config{}, coordinator.Deps{}), log: zap.New(core)}
		time.Sleep(2 * loopPatience)
		d.watchLoop()
		require.Zero(t, said.Len(), "it has no work")

		d.coord = coordinator.New(coordinator.Config{}, coordinator.Deps{})
		answer := make(responseChannel, 1)
		require.Nil(t, d.coord.Submit(coordinator.Request{Event: events.ListActive{}, Responder: answer}))
		d.watchLoop()
		require.Zero(t, said.Len(), "it had no time yet")

		time.Sleep(loopPatience + time.Second)
		for n := 1; n <= 2; n++ {
			d.watchLoop()
			require.Equal(t, n, said.Len())
		}
		entry := said.All()[0]
		require.Equal(t, "the drain loop does not turn", entry.Message)
		require.Equal(t, int64(1), entry.ContextMap()["backlog"])
		require.Equal(t, loopPatience+time.Second, entry.ContextMap()["for"])
	})
}
