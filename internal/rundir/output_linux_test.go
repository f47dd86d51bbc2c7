package rundir

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

func TestOutput(t *testing.T) {
	d := create(t, openRoot(t))
	put(t, d, StdoutFile, "héllo wörld")
	out, err := d.Output(StdoutFile, 100, 10, 10)
	require.NoError(t, err)
	require.Equal(t, events.Output{Text: "héllo wörld", Bytes: 13, Ref: d.ID() + "/stdout.log", Path: filepath.Join(d.Path(), StdoutFile)}, out)

	// Both cuts fall into a character: é is at 1 and 2, ö at 8 and 9.
	out, err = d.Output(StdoutFile, 6, 2, 4)
	require.NoError(t, err)
	require.Equal(t, "h"+Mark(9)+"rld", out.Text)
	require.True(t, out.Truncated)
	require.Empty(t, out.Encoding)

	put(t, d, StdoutFile, "\xff\x00binary")
	out, err = d.Output(StdoutFile, 100, 10, 10)
	require.NoError(t, err)
	require.Equal(t, "base64", out.Encoding)
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("\xff\x00binary")), out.Text)

	put(t, d, StdoutFile, "")
	out, err = d.Output(StdoutFile, 0, 0, 0)
	require.NoError(t, err)
	require.False(t, out.Truncated)
	require.Zero(t, out.Text)
}

// checkCut holds an output against the file it is of.
func checkCut(t require.TestingT, content []byte, out events.Output, limit, head, tail int) {
	require.EqualValues(t, len(content), out.Bytes)
	require.Equal(t, len(content) > limit, out.Truncated)
	text := []byte(out.Text)
	if out.Encoding != "" {
		require.Equal(t, "base64", out.Encoding)
		var err error
		text, err = base64.StdEncoding.DecodeString(out.Text)
		require.NoError(t, err)
	} else {
		require.True(t, utf8.Valid(text))
	}
	if !out.Truncated {
		require.Equal(t, string(content), string(text))
		require.Equal(t, utf8.Valid(content), out.Encoding == "")
		return
	}
	head = min(head, limit)
	tail = min(tail, limit-head)
	lost := 0 // of a character at either cut
	if out.Encoding == "" {
		lost = utf8.UTFMax - 1
	}
	// Find the cut: the mark names how many bytes it stands for.
	for h := head; h >= max(0, head-lost); h-- {
		for n := tail; n >= max(0, tail-lost); n-- {
			want := string(content[:h]) + Mark(int64(len(content)-h-n)) + string(content[len(content)-n:])
			if want == string(text) {
				return
			}
		}
	}
	require.Failf(t, "not a cut of the file", "limit %d head %d tail %d, file %q, text %q", limit, head, tail, content, text)
}

func cutOf(content []byte, limit, head, tail int) events.Output {
	f := bytes.NewReader(content)
	c, err := excerpt(f, int64(len(content)), int64(limit), int64(head), int64(tail))
	if err != nil {
		panic(err)
	}
	out := events.Output{Bytes: int64(len(content))}
	out.Text, out.Encoding, out.Truncated = c.render(out.Bytes)
	return out
}

func TestOutputCutsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Bool().Draw(t, "text")
		var content []byte
		if text {
			content = []byte(rapid.String().Draw(t, "content"))
		} else {
			content = rapid.SliceOf(rapid.Byte()).Draw(t, "content")
		}
		limit := rapid.IntRange(0, 64).Draw(t, "limit")
		head := rapid.IntRange(0, 64).Draw(t, "head")
		tail := rapid.IntRange(0, 64).Draw(t, "tail")
		out := cutOf(content, limit, head, tail)
		if text {
			require.Empty(t, out.Encoding, "text stays text wherever it is cut")
		}
		checkCut(t, content, out, limit, head, tail)
	})
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("héllo wörld"), 6, 2, 4)
	f.Add([]byte("\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), 5, 3, 2)
	f.Add([]byte("\xff\xfe\x80\x80"), 3, 1, 2)
	f.Fuzz(func(t *testing.T, content []byte, limit, head, tail int) {
		for _, n := range []*int{&limit, &head, &tail} {
			*n &= 0xffff
		}
		checkCut(t, content, cutOf(content, limit, head, tail), limit, head, tail)
	})
}

// naiveTail is the plain meaning of [Dir.TailOffset].
func naiveTail(content []byte, lines int) int64 {
	if lines <= 0 {
		return int64(len(content))
	}
	all := bytes.SplitAfter(content, []byte("\n"))
	if len(all) > 0 && len(all[len(all)-1]) == 0 {
		all = all[:len(all)-1]
	}
	off := len(content)
	for i := len(all) - 1; i >= 0 && lines > 0; i-- {
		off -= len(all[i])
		lines--
	}
	return int64(off)
}

func TestTailOffset(t *testing.T) {
	d := create(t, openRoot(t))
	long := strings.Repeat("x", 3*tailBlock)
	for _, content := range []string{
		"", "\n", "\n\n", "a", "a\n", "a\nb", "a\nb\n", "\na\n\nb\n\n", long, long + "\n" + long, long + "\n" + long + "\n",
		strings.Repeat("\n", 3*tailBlock), strings.Repeat("x", tailBlock-1) + "\n" + strings.Repeat("y", tailBlock),
	} {
		put(t, d, StdoutFile, content)
		for lines := -1; lines < 5; lines++ {
			off, err := d.TailOffset(StdoutFile, lines)
			require.NoError(t, err)
			require.Equalf(t, naiveTail([]byte(content), lines), off, "%d lines of %.20q", lines, content)
		}
	}
}

func FuzzTailOffset(f *testing.F) {
	f.Add([]byte("a\nb\n"), 1, 3)
	f.Add([]byte("\n\n\nx"), 2, 1)
	f.Fuzz(func(t *testing.T, piece []byte, lines, times int) {
		content := bytes.Repeat(piece, max(1, times&0xff))
		off, err := tailOffset(bytes.NewReader(content), int64(len(content)), lines)
		require.NoError(t, err)
		require.Equal(t, naiveTail(content, lines), off)
	})
}

// A large file is read with bounded memory, and what is read is right.
func TestLargeOutput(t *testing.T) {
	const size = 100 << 20
	d := create(t, openRoot(t))
	f, err := d.OpenAppend(StdoutFile)
	require.NoError(t, err)
	block := bytes.Repeat([]byte("0123456789abcde\n"), 64<<10)
	for written := 0; written < size; written += len(block) {
		_, err := f.Write(block)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	block = nil

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err := d.Output(StdoutFile, events.MaxReplyOutput, events.ReplyOutputHead, events.ReplyOutputTail)
	require.NoError(t, err)
	off, err := d.TailOffset(StdoutFile, 1_000_000)
	require.NoError(t, err)
	data, n, err := d.ReadAt(StdoutFile, off, size)
	require.NoError(t, err)
	runtime.ReadMemStats(&after)

	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "all that was allocated, freed or not")
	require.EqualValues(t, size, out.Bytes)
	require.EqualValues(t, size, n)
	require.True(t, out.Truncated)
	require.Len(t, out.Text, events.MaxReplyOutput+len(Mark(size-events.MaxReplyOutput)))
	require.True(t, strings.HasPrefix(out.Text, "0123456789abcde\n") && strings.HasSuffix(out.Text, "0123456789abcde\n"))
	require.EqualValues(t, size-16*1_000_000, off)
	require.Len(t, data, events.MaxChunk)
	require.NoError(t, os.Remove(filepath.Join(d.Path(), StdoutFile)))
}
