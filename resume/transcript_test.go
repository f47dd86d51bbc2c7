package resume

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

// transcriptOf writes items as a supervisor does, numbered.
func transcriptOf(t require.TestingT, items ...events.Item) []byte {
	var b bytes.Buffer
	for i := range items {
		items[i].Seq = uint64(i + 1)
		line, err := events.MarshalRecord(items[i])
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// itemsOf reads a transcript that has to be sound.
func itemsOf(t require.TestingT, transcript []byte) (items []events.Item) {
	torn, err := walk(bytes.NewReader(transcript), func(i events.Item) error {
		items = append(items, i)
		return nil
	})
	require.NoError(t, err)
	require.Zero(t, torn)
	return items
}

func call(id string) events.Item {
	return events.Item{Kind: events.ItemToolCall, Tool: "Bash", ToolID: id, Input: []byte(`{"command":"cat /w/f"}`)}
}

func answer(id string) events.Item {
	return events.Item{Kind: events.ItemToolResult, Tool: "Bash", ToolID: id, Text: "of " + id}
}

func TestScan(t *testing.T) {
	whole := transcriptOf(t,
		events.Item{Kind: events.ItemPrompt, Text: "12345678"},
		events.Item{Kind: events.ItemSession, SessionID: "first", Model: "m1"},
		events.Item{Kind: events.ItemMessage, Text: "1234"},
		events.Item{Kind: events.ItemSession, SessionID: "second"},
		call("a"),
	)
	s, err := Scan(bytes.NewReader(whole))
	require.NoError(t, err)
	require.Equal(t, Summary{Items: 5, Tokens: 2 + 1 + 5, SessionID: "second", Model: "m1", Unanswered: 1}, s)

	s, err = Scan(strings.NewReader(""))
	require.NoError(t, err)
	require.Zero(t, s)
	for name, damage := range map[string]func([]byte) []byte{
		"a line in the middle": func(b []byte) []byte { return bytes.Replace(b, []byte(`{"seq":3`), []byte(`{"seq"#3`), 1) },
		"a line that is gone": func(b []byte) []byte {
			lines := bytes.SplitAfter(b, []byte("\n"))
			return bytes.Join(append(lines[:2:2], lines[3:]...), nil)
		},
		"another numbering": func(b []byte) []byte { return bytes.Replace(b, []byte(`{"seq":1`), []byte(`{"seq":2`), 1) },
	} {
		_, err := Scan(bytes.NewReader(damage(bytes.Clone(whole))))
		require.Error(t, err, name)
	}
}

// However a transcript is cut, what is whole of it is taken up, every call has
// exactly one result, and the numbers have no gap. A copy of a copy changes nothing.
func TestCopyOfAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SampledFrom([]string{"a", "b", "c", ""})
		kinds := rapid.SampledFrom([]string{"call", "answer", "message"})
		var items []events.Item
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			switch kinds.Draw(t, "kind") {
			case "call":
				items = append(items, call(ids.Draw(t, "id")))
			case "answer":
				items = append(items, answer(ids.Draw(t, "id")))
			default:
				items = append(items, events.Item{Kind: events.ItemMessage, Text: rapid.String().Draw(t, "text")})
			}
		}
		whole := transcriptOf(t, items...)
		cut := whole[:rapid.IntRange(0, len(whole)).Draw(t, "cut")]

		var out bytes.Buffer
		s, err := CopyTranscript(&out, bytes.NewReader(cut), sourceID, nil)
		require.NoError(t, err)
		got := itemsOf(t, out.Bytes())
		require.Len(t, got, s.Items)
		open := map[string]int{}
		for i, item := range got {
			require.EqualValues(t, i+1, item.Seq)
			require.Equal(t, sourceID, item.From)
			switch item.Kind {
			case events.ItemToolCall:
				require.Zero(t, open[item.ToolID], "the call before is answered")
				open[item.ToolID]++
			case events.ItemToolResult:
				require.Equal(t, 1, open[item.ToolID])
				open[item.ToolID]--
			}
		}
		for id, n := range open {
			require.Zero(t, n, "call %q has no result", id)
		}
		var again bytes.Buffer
		_, err = CopyTranscript(&again, bytes.NewReader(out.Bytes()), "another", nil)
		require.NoError(t, err)
		require.Equal(t, out.String(), again.String())
	})
}

func TestCopyAnswersWhatACrashLeftOpen(t *testing.T) {
	var out bytes.Buffer
	cut := transcriptOf(t, call("a"), call("b"), call("c"), answer("b"), events.Item{Kind: events.ItemMessage, Text: "see /w/f"})
	s, err := CopyTranscript(&out, bytes.NewReader(append(cut, `{"seq":6,"at":"2026`...)), sourceID, NewPaths(Move{"/w", "/v"}))
	require.NoError(t, err)
	require.Equal(t, len(`{"seq":6,"at":"2026`), s.Torn)
	got := itemsOf(t, out.Bytes())
	require.Len(t, got, 7)
	require.JSONEq(t, `{"command":"cat /v/f"}`, string(got[0].Input))
	require.Equal(t, "see /v/f", got[4].Text)
	for i, id := range []string{"a", "c"} {
		made := got[5+i]
		require.Equal(t, events.ItemToolResult, made.Kind)
		require.Equal(t, id, made.ToolID)
		require.True(t, made.Synthetic)
		require.True(t, made.IsError)
	}
	require.False(t, got[3].Synthetic)
}

// long is a transcript of a size, made as it is read.
type long struct {
	left int
	seq  int
	line []byte
}

func (l *long) Read(p []byte) (int, error) {
	if len(l.line) == 0 {
		if l.left <= 0 {
			return 0, io.EOF
		}
		l.seq++
		l.line = fmt.Appendf(nil, `{"seq":%d,"at":"2026-01-02T03:04:05Z","kind":"message","text":"%s /w/f"}`+"\n", l.seq, strings.Repeat("x", 32<<10))
		l.left -= len(l.line)
	}
	n := copy(p, l.line)
	l.line = l.line[n:]
	return n, nil
}

// heap notes the most memory that is in use while it is written to.
type heap struct {
	written, next int
	most          uint64
}

func (h *heap) Write(p []byte) (int, error) {
	if h.written += len(p); h.written >= h.next {
		h.next = h.written + 4<<20
		h.note()
	}
	return len(p), nil
}

func (h *heap) note() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapAlloc)
}

// A transcript of 50 MiB is read and copied in the memory that one line takes.
func TestLongTranscriptTakesNoMemory(t *testing.T) {
	const size, allowed = 50 << 20, 4 << 20
	var before heap
	before.note()
	var h heap
	s, err := CopyTranscript(&h, &long{left: size}, sourceID, NewPaths(Move{"/w", "/v"}))
	require.NoError(t, err)
	require.Greater(t, h.written, size)
	require.Less(t, h.most, before.most+allowed)
	require.Greater(t, s.Tokens, int64(size/4-size/64))

	scanned, err := Scan(&long{left: size})
	require.NoError(t, err)
	require.Equal(t, s.Items, scanned.Items)
}

func TestLinesAreBounded(t *testing.T) {
	in := newLines(strings.NewReader("short\n" + strings.Repeat("x", 1<<20)))
	in.most = 1 << 16
	line, whole, err := in.next()
	require.NoError(t, err)
	require.True(t, whole)
	require.Equal(t, "short", string(line))
	_, _, err = in.next()
	require.ErrorContains(t, err, "line 2 has over 65536 bytes")
	require.Less(t, cap(in.buf), 1<<18)
}
