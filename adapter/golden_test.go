package adapter

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// play reads a recording in pieces of a size.
func play(c recording, stdout []byte, size int) ([]events.Item, Outcome) {
	r := NewReader(events.AdapterSpec{Agent: c.agent})
	var items []events.Item
	for begin := 0; begin < len(stdout); begin += size {
		items = append(items, r.Write(stdout[begin:min(begin+size, len(stdout))])...)
	}
	last, out := r.End("x", &c.exit, c.ended)
	return append(items, last...), out
}

// TestRecordings reads what the real CLIs printed.
func TestRecordings(t *testing.T) {
	for _, c := range recordings {
		t.Run(c.name, func(t *testing.T) {
			stdout, err := os.ReadFile(filepath.Join("testdata", c.name+".jsonl"))
			require.NoError(t, err)
			items, out := play(c, stdout, len(stdout))
			c.check(t, out)

			// The items name the lines that they are of.
			var golden bytes.Buffer
			for _, i := range items {
				line := stdout[i.Offset : i.Offset+i.Bytes]
				require.True(t, jsontext.Value(line).IsValid(), "%s", line)
				i.At = time.Time{}
				b, err := events.MarshalRecord(i)
				require.NoError(t, err)
				golden.Write(append(b, '\n'))
			}
			b, err := events.MarshalRecord(out.Result)
			require.NoError(t, err)
			golden.Write(append(b, '\n'))
			path := filepath.Join("testdata", c.name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(path, golden.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), golden.String())

			// It does not matter in what pieces it comes, nor whether the last line ends.
			for _, size := range []int{1, 7, 4096} {
				again, outAgain := play(c, bytes.TrimSuffix(stdout, []byte("\n")), size)
				require.Equal(t, items, again)
				require.Equal(t, out, outAgain)
			}
		})
	}
}

// A stream that is cut anywhere before its terminal event is a failure, whatever
// the exit code is.
func TestCutStreams(t *testing.T) {
	for _, c := range recordings {
		if c.stop != events.StopEnd {
			continue
		}
		stdout, err := os.ReadFile(filepath.Join("testdata", c.name+".jsonl"))
		require.NoError(t, err)
		end := bytes.LastIndexByte(bytes.TrimSuffix(stdout, []byte("\n")), '\n')
		for n := 0; n <= end+1; n++ {
			_, out := play(c, stdout[:n], 4096)
			require.NotNil(t, out.Error, "%s cut at %d", c.name, n)
			require.Equal(t, events.CodeAgentIncomplete, out.Error.Code)
			require.Equal(t, events.StopCut, out.Result.StopReason)
			require.True(t, out.Result.UsageIncomplete)
		}
		// Half of the terminal event is none.
		_, out := play(c, stdout[:len(stdout)-3], 4096)
		require.NotNil(t, out.Error, c.name)
	}
}
