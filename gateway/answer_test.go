package gateway

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// The usage stands at the end of an answer. It is read on when the agent has left.
func TestAgentLeavesAndIsCounted(t *testing.T) {
	gone := make(chan struct{})
	ledger := &memory{calls: map[string][]Call{}}
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, anthropicStream[:200])
		<-gone
		stream(w, anthropicStream[200:])
	}, func(o *Options) { o.Ledger = ledger })
	a := w.run(step{Body: "x", Leave: true})
	a.told(t)
	close(gone)
	w.counted(a)
	require.Len(t, ledger.calls[a.id], 1)
	call := ledger.calls[a.id][0]
	require.EqualValues(t, 42, call.Usage.OutputTokens)
	require.False(t, call.Unknown)
	require.EqualValues(t, 42, w.g.Forget(a.id).OutputTokens)
}

// leaves runs an agent that goes away before its answer begins, once it is asked for.
func leaves(t *testing.T, then func(w http.ResponseWriter, r *http.Request, gone <-chan struct{}), change func(*Options)) Call {
	gone := make(chan struct{})
	ledger := &memory{calls: map[string][]Call{}}
	pipe := filepath.Join(t.TempDir(), "leave")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil { // or the server does not see its client go
			t.Error(err)
		}
		if err := os.WriteFile(pipe, nil, 0o600); err != nil {
			t.Error(err)
		}
		then(w, r, gone)
	}, func(o *Options) { o.Ledger = ledger }, change)
	a := w.run(step{Body: `{"max_tokens":77}`, LeaveAt: pipe})
	require.Contains(t, a.told(t)[0].Err, "context canceled")
	close(gone)
	w.counted(a)
	require.Len(t, ledger.calls[a.id], 1)
	return ledger.calls[a.id][0]
}

func TestAgentLeavesBeforeTheAnswer(t *testing.T) {
	call := leaves(t, func(w http.ResponseWriter, _ *http.Request, gone <-chan struct{}) {
		<-gone
		stream(w, anthropicStream)
	}, func(*Options) {})
	require.Equal(t, 200, call.Status)
	require.EqualValues(t, 42, call.Usage.OutputTokens)
	require.False(t, call.Unknown)

	silent := func(_ http.ResponseWriter, r *http.Request, _ <-chan struct{}) { <-r.Context().Done() }
	soon := func(o *Options) { o.linger = 100 * time.Millisecond }
	call = leaves(t, silent, soon)
	require.Zero(t, call.Status)
	require.True(t, call.Unknown)
	require.Equal(t, events.Usage{}, call.Usage, "there is no budget")
	call = leaves(t, silent, func(o *Options) { soon(o); o.MaxTokens = 100 })
	require.True(t, call.Unknown)
	require.Equal(t, events.Usage{InputTokens: 17 / bytesPerToken, OutputTokens: 77}, call.Usage)
}

// Only so many answers of a subagent are read on.
func TestLingeringIsBounded(t *testing.T) {
	c := newCosts()
	for range maxLingering {
		x := &exchange{child: "a"}
		defer c.begin(x)()
		require.True(t, c.mayLinger(x))
	}
	x, other := &exchange{child: "a"}, &exchange{child: "b"}
	defer c.begin(x)()
	defer c.begin(other)()
	require.False(t, c.mayLinger(x))
	require.True(t, c.mayLinger(other))
}
