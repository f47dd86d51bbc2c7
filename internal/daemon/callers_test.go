package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/coordinator"
)

func TestCallersThatAreGone(t *testing.T) {
	there := map[string]bool{"a": true, "b": true, "c": true}
	c := newCallers(func(subject string) bool { return there[subject] }, nil)
	watched := map[string]*waitingCaller{}
	for subject := range there {
		watched[subject] = c.watch(responder{subject: subject}).(*waitingCaller)
	}
	require.Equal(t, responder{}, c.watch(responder{}), "who gave no reply subject is not waited for")
	require.Empty(t, c.look())

	there["a"], there["b"] = false, false
	require.Empty(t, c.look(), "it may be connecting again")
	there["b"] = true
	require.Equal(t, []*waitingCaller{watched["a"]}, c.look())
	require.Empty(t, c.look(), "once")
	there["b"] = false
	require.Empty(t, c.look(), "it was back, so it is counted anew")

	c.mu.Lock()
	delete(c.waiting, watched["b"])
	c.mu.Unlock()
	require.Empty(t, c.look(), "what was answered is not watched")
	require.Len(t, c.waiting, 1)
	var _ coordinator.Responder = watched["a"]
}
