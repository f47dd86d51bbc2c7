package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/coordinator"
)

// A loop that turns feeds the watchdog, at rest too; one that does not turn lets
// it bite, though everything else of the daemon is well.
func TestWatchdogIsFedByTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 30 * time.Second
		signs := make(chan string, 100)
		d := &daemon{opts: Options{Watchdog: patience, Alive: func(status string) { signs <- status }}}
		d.coord = coordinator.New(coordinator.Config{}, coordinator.Deps{})
		stop := d.feedWatchdog()
		time.Sleep(3 * patience)
		require.Empty(t, signs, "it is never run")
		stop()

		d.coord = coordinator.New(coordinator.Config{}, coordinator.Deps{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.coord.Run(ctx, coordinator.Restore{}) }()
		stop = d.feedWatchdog()
		time.Sleep(2*patience + time.Second)
		require.Len(t, signs, 6)
		require.Equal(t, "0 active, 0 pending, 0 queued", <-signs)
		cancel()
		require.NoError(t, <-ended)
		for len(signs) > 0 {
			<-signs
		}
		time.Sleep(2 * patience)
		require.Empty(t, signs, "its loop has ended")
		stop()
	})
}

func TestNoWatchdog(t *testing.T) {
	(&daemon{}).feedWatchdog()()
	(&daemon{}).stopping()
	n := 0
	d := &daemon{opts: Options{Stopping: func() { n++ }}}
	d.stopping()
	d.stopping()
	require.Equal(t, 1, n)
}
