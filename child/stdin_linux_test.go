package child

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// A client that is silent for stdinIdle is taken for gone; any message of it,
// an empty one too, starts the time anew.
func TestSilentClientClosesStdin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer r.Close()
		box := newOutbox()
		f := newFeed(events.ChildSpec{Stdin: events.StdinStream}, w, box)
		ask := func() (reply events.ControlReply) {
			replied := make(chan events.ControlReply, 1)
			f.put(events.Control{Kind: events.ControlStdin}, func(r events.ControlReply) { replied <- r })
			return <-replied
		}
		time.Sleep(stdinIdle - time.Second)
		require.Equal(t, events.ControlReply{OK: true}, ask())
		time.Sleep(stdinIdle - time.Second)
		require.Equal(t, events.ControlReply{OK: true}, ask())
		time.Sleep(stdinIdle + time.Second)
		require.Equal(t, events.ControlReply{OK: true, Closed: true}, ask())
		f.close()
		notes := box.take(true)
		require.Len(t, notes, 1)
		require.Contains(t, notes[0].Text, "no message from the client")
	})
}
