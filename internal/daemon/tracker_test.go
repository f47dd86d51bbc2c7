package daemon

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func report(t *testing.T, v any) []byte {
	t.Helper()
	b, err := events.Marshal(v)
	require.NoError(t, err)
	return b
}

func TestTrackerKeepsTheLatest(t *testing.T) {
	tr := newTracker(time.Hour, zap.NewNop())
	const id = "0192f0c1-0000-7000-8000-000000000001"
	require.NoError(t, tr.onItem(id, report(t, events.Item{Kind: events.ItemOutput, Stream: "stdout", Bytes: 3, Text: "hi\n"})))
	require.EqualValues(t, 1, tr.late.Load(), "a report of what does not live is late")
	require.Nil(t, tr.progress(id))

	tr.begin(id)
	require.Nil(t, tr.progress(id), "nothing was reported yet")
	require.NoError(t, tr.onItem(id, report(t, events.Item{Kind: events.ItemOutput, Stream: "stdout", Bytes: 6, Text: "a\nlast\n"})))
	require.NoError(t, tr.onItem(id, report(t, events.Item{Kind: events.ItemOutput, Stream: "stderr", Bytes: 2, Text: "\n\n"})))
	p := tr.progress(id)
	require.Equal(t, "last", p.LastLine)
	require.EqualValues(t, 6, p.StdoutBytes)
	require.EqualValues(t, 2, p.StderrBytes)

	require.NoError(t, tr.onHeartbeat(id, report(t, events.Heartbeat{ID: id, Progress: events.Progress{LastLine: "beat", StdoutBytes: 9}})))
	require.Equal(t, "beat", tr.progress(id).LastLine)

	tr.onFeed(events.FeedEvent{SubagentID: id, State: events.StateCompleted})
	require.Nil(t, tr.progress(id))
	require.NoError(t, tr.onHeartbeat(id, report(t, events.Heartbeat{ID: id})))
	require.EqualValues(t, 2, tr.late.Load())
	require.Error(t, tr.onItem(id, []byte("no JSON")))
}

// A follower is woken by each change, and keeps no entry alive behind itself.
func TestTrackerFollow(t *testing.T) {
	tr := newTracker(time.Hour, zap.NewNop())
	const id = "0192f0c1-0000-7000-8000-000000000002"
	changed, release := tr.follow(id) // before it was ever started
	for name, change := range map[string]func(){
		"it starts": func() { tr.begin(id) },
		"an item": func() {
			require.NoError(t, tr.onItem(id, report(t, events.Item{Kind: events.ItemOutput, Stream: "stdout", Bytes: 1, Text: "x"})))
		},
		"a state": func() { tr.onFeed(events.FeedEvent{SubagentID: id, State: events.StateActive}) },
	} {
		if name != "it starts" {
			tr.begin(id)
		}
		wake := changed()
		select {
		case <-wake:
			t.Fatal("woken without a change")
		default:
		}
		change()
		select {
		case <-wake:
		default:
			t.Fatalf("not woken: %s", name)
		}
	}
	wake := changed()
	tr.onFeed(events.FeedEvent{SubagentID: id, State: events.StateCompleted})
	<-wake
	require.Len(t, tr.children, 1, "somebody follows it")
	release()
	require.Empty(t, tr.children)
}

// Whatever a child prints, what a terminal is shown holds no control characters.
func TestLastLineIsHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		line := lastLine(text)
		require.True(t, utf8.ValidString(line))
		require.LessOrEqual(t, len(line), events.MaxLastLine)
		require.Equal(t, -1, strings.IndexFunc(line, unicode.IsControl))
	})
	for text, want := range map[string]string{
		"": "", "a": "a", "a\nb\n": "b", "a\nb\n\n  \n": "b", "10%\r20%\r": "20%", "\x1b[31mred\x1b[0m": "[31mred[0m",
		strings.Repeat("é", 200): strings.Repeat("é", 100),
	} {
		require.Equal(t, want, lastLine(text))
	}
}
