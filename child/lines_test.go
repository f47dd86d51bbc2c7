package child

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestLastLine(t *testing.T) {
	for name, c := range map[string]struct {
		writes []string
		want   string
	}{
		"nothing":              {nil, ""},
		"one":                  {[]string{"a\n"}, "a"},
		"the last of several":  {[]string{"a\nb\nc\n"}, "c"},
		"under way":            {[]string{"a\nb"}, "b"},
		"in pieces":            {[]string{"a\nhel", "lo", " you\n"}, "hello you"},
		"blank lines":          {[]string{"a\n\n  \n\n"}, "a"},
		"blank line under way": {[]string{"a\n", "  "}, "a"},
		"only blank":           {[]string{"\n \n"}, ""},
		"blank after pieces":   {[]string{"hel", "lo\n\n\n"}, "hello"},
		"carriage returns":     {[]string{"10%\r50%\r100%\r"}, "100%"},
		"dos lines":            {[]string{"a\r\nb\r\n"}, "b"},
		"colors":               {[]string{"\x1b[1;31mred\x1b[0m text\n"}, "red text"},
		"controls":             {[]string{"a\tb\x07c\x00\n"}, "a bc"},
		"an escape at the end": {[]string{"x\x1b"}, "x"},
		"not UTF-8":            {[]string{"a\xffb\n"}, "a\ufffdb"},
		"long":                 {[]string{strings.Repeat("ä", 5000) + "\n"}, strings.Repeat("ä", events.MaxLastLine/2)},
		"long in pieces":       {[]string{strings.Repeat("x", 5000), "tail\n"}, strings.Repeat("x", events.MaxLastLine)},
		"after a long one":     {[]string{strings.Repeat("x", 5000), "\nend"}, "end"},
	} {
		t.Run(name, func(t *testing.T) {
			var l lineTracker
			for _, w := range c.writes {
				l.write([]byte(w))
			}
			require.Equal(t, c.want, l.line())
		})
	}
}

// The pieces in which a stream comes do not matter, memory is bounded, and what
// is shown is fit to be shown.
func TestLineTrackerAndTailInPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "bc", "\n", "\r", " ", "ä", "\xff", "\x1b[1m", strings.Repeat("long", 300), "€"}
	for range 2000 {
		var text []byte
		for range rng.IntN(30) {
			text = append(text, alphabet[rng.IntN(len(alphabet))]...)
		}
		var whole, pieces lineTracker
		var tails tail
		whole.write(text)
		for rest := text; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			pieces.write(rest[:n])
			tails.write(rest[:n])
			require.LessOrEqual(t, len(pieces.partial), maxLineKept)
			require.LessOrEqual(t, len(tails.kept), maxTailKept)
			rest = rest[n:]
		}
		require.Equal(t, whole.line(), pieces.line(), "%q", text)
		require.True(t, utf8.ValidString(whole.line()))
		require.LessOrEqual(t, len(whole.line()), events.MaxLastLine)

		got := tails.text()
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), events.MaxStderrTail)
		if len(text) <= maxTailKept {
			require.True(t, strings.HasSuffix(strings.ToValidUTF8(string(text), "\ufffd"), got))
		}
	}
}

func TestTailBeginsWithALine(t *testing.T) {
	var l tail
	l.write([]byte("short\n"))
	require.Equal(t, "short\n", l.text())
	for i := range 1000 {
		l.write(bytes.Repeat([]byte{byte('a' + i%26)}, 99))
		l.write([]byte("\n"))
	}
	got := l.text()
	require.LessOrEqual(t, len(got), events.MaxStderrTail)
	require.Greater(t, len(got), events.MaxStderrTail-200)
	for line := range strings.Lines(got) {
		require.Len(t, line, 100)
	}
	var one tail
	one.write([]byte(strings.Repeat("€", 3000)))
	require.Equal(t, strings.Repeat("€", events.MaxStderrTail/3), one.text(), "one long line keeps its end")
}
