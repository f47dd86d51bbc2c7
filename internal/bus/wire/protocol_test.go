package wire

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestReader(t *testing.T) {
	const said = "INFO {\"max_payload\":8}\r\nPING\r\n+OK\r\n" +
		"MSG a.b 2 5\r\nhe\r\no\r\nMSG a 3 in.1 0\r\n\r\nHMSG in.2 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n" +
		"HMSG a 1 in.3 12 14\r\nNATS/1.0\r\n\r\nhi\r\n-ERR 'Stale Connection'\r\nPONG\r\n"
	want := []op{
		{kind: opInfo, data: []byte(`{"max_payload":8}`)},
		{kind: opPing},
		{kind: opOK},
		{kind: opMsg, subject: "a.b", sid: 2, header: []byte{}, data: []byte("he\r\no")},
		{kind: opMsg, subject: "a", sid: 3, reply: "in.1", header: []byte{}, data: []byte{}},
		{kind: opMsg, subject: "in.2", sid: 1, header: []byte("NATS/1.0 503\r\n\r\n"), data: []byte{}},
		{kind: opMsg, subject: "a", sid: 1, reply: "in.3", header: []byte("NATS/1.0\r\n\r\n"), data: []byte("hi")},
		{kind: opErr, data: []byte("'Stale Connection'")},
		{kind: opPong},
	}
	for _, r := range []io.Reader{strings.NewReader(said), iotest.OneByteReader(strings.NewReader(said))} {
		in := newReader(r)
		for _, w := range want {
			o, err := in.next()
			require.NoError(t, err)
			require.Equal(t, w, o)
			require.Equal(t, o.subject == "in.2", o.noResponders())
		}
		_, err := in.next()
		require.ErrorIs(t, err, io.EOF)
	}
}

func TestReaderRefuses(t *testing.T) {
	for _, said := range []string{
		"\r\n", "HELLO\r\n", "MSG\r\n", "MSG a\r\n", "MSG a 1\r\n", "MSG a x 1\r\nb\r\n", "MSG a 1 -1\r\n\r\n",
		"MSG a 1 b c 1\r\nb\r\n", "MSG a 1 99999999999\r\n", "MSG a 1 100000000\r\n", "MSG a 1 2\r\nabcd\r\n",
		"HMSG a 1 2\r\nab\r\n", "HMSG a 1 3 2\r\nab\r\n", "HMSG a 1 x 2\r\nab\r\n",
		"INFO " + strings.Repeat("x", 1<<17) + "\r\n",
	} {
		_, err := newReader(strings.NewReader(said)).next()
		require.Error(t, err, "%.60q", said)
		require.NotErrorIs(t, err, io.EOF, "%.60q", said)
	}
	// What is cut off is not taken for whole.
	for _, said := range []string{"PIN", "MSG a 1 5\r\nhel", "MSG a 1 5\r\nhello"} {
		_, err := newReader(strings.NewReader(said)).next()
		require.Error(t, err)
	}
}

// Whatever a server says, each op is one that its bytes hold, and memory follows
// what came.
func FuzzReader(f *testing.F) {
	f.Add("MSG a.b 2 5\r\nhello\r\nPING\r\n")
	f.Add("HMSG a 1 in.3 12 14\r\nNATS/1.0\r\n\r\nhi\r\n")
	f.Add("MSG a 1 60000000\r\nx")
	f.Fuzz(func(t *testing.T, said string) {
		in := newReader(strings.NewReader(said))
		read := 0
		for {
			o, err := in.next()
			if err != nil {
				return
			}
			read += len(o.header) + len(o.data)
			require.LessOrEqual(t, read, len(said))
			require.Contains(t, said, string(o.data))
		}
	})
}
