package child

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// Whatever is put in comes out once and in order: as text, or as a number of
// bytes where the reader was slow.
func TestOutboxCoversEveryByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		box := newOutbox()
		var wrote [streams][]byte
		var next [streams]int64
		take := func(final bool) {
			for _, item := range box.take(final) {
				s := stdout
				if item.Stream == stderr.String() {
					s = stderr
				}
				require.Equal(t, next[s], item.Offset)
				require.LessOrEqual(t, len(item.Text), events.MaxItemText)
				part := wrote[s][item.Offset : item.Offset+item.Bytes]
				switch {
				case item.TextOmitted:
					require.Empty(t, item.Text)
				case item.Encoding == "base64":
					decoded, err := base64.StdEncoding.DecodeString(item.Text)
					require.NoError(t, err)
					require.True(t, bytes.Equal(part, decoded))
				default:
					require.Equal(t, string(part), item.Text)
				}
				next[s] += item.Bytes
			}
		}
		for range 1 + rng.IntN(20) {
			s := stream(rng.IntN(int(streams)))
			chunk := []byte(strings.Repeat([]string{"x", "ä€", "\xff\xc3", "line\n"}[rng.IntN(4)], rng.IntN(20_000)))
			// A cut in the middle of a character.
			chunk = chunk[:max(len(chunk)-rng.IntN(3), 0)]
			at := int64(len(wrote[s]))
			wrote[s] = append(wrote[s], chunk...)
			box.output(s, at, chunk)
			require.LessOrEqual(t, len(box.pending[s].text), maxPendingText)
			if rng.IntN(2) == 0 {
				take(false)
			}
		}
		take(true)
		for s := range streams {
			require.EqualValues(t, len(wrote[s]), next[s])
		}
	}
}

func TestOutboxDoesNotCutCharacters(t *testing.T) {
	box := newOutbox()
	box.output(stdout, 0, []byte("a\xe2\x82"))
	require.Equal(t, "a", box.take(false)[0].Text)
	require.Empty(t, box.take(false), "the rest waits")
	box.output(stdout, 3, []byte("\xac!"))
	items := box.take(false)
	require.Len(t, items, 1)
	require.Equal(t, "€!", items[0].Text)
	require.EqualValues(t, 1, items[0].Offset)

	long := strings.Repeat("€", events.MaxItemText)
	box.output(stdout, 5, []byte(long))
	for _, item := range box.take(false) {
		require.Empty(t, item.Encoding)
	}
}

// What an agent says while nobody takes it is told by its place once it is too much;
// the places leave no gap.
func TestOutboxBoundsWhatAnAgentSays(t *testing.T) {
	box := newOutbox()
	text := strings.Repeat("x", 64<<10)
	const said = 200
	for n := range int64(said) {
		box.said([]events.Item{{Kind: events.ItemMessage, Stream: "stdout", Offset: n * 100, Bytes: 100, Text: text}})
	}
	items := box.take(false)
	size, next := 0, int64(0)
	for _, i := range items {
		require.Equal(t, next, i.Offset)
		next += i.Bytes
		size += len(i.Text)
	}
	require.EqualValues(t, said*100, next)
	require.LessOrEqual(t, size, maxPendingSaid)
	require.True(t, items[len(items)-1].TextOmitted)

	box.said([]events.Item{{Kind: events.ItemMessage, Text: text}})
	require.Equal(t, text, box.take(false)[0].Text, "it has room again")
}
