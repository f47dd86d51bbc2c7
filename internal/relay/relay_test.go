package relay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzDecode(f *testing.F) {
	f.Add(Frame{Kind: Data, Conn: 1, Data: []byte("GET / HTTP/1.1\r\n")}.Encode())
	f.Add(Frame{Kind: Close, Conn: 1 << 60}.Encode())
	f.Add([]byte{9, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := Decode(b)
		if err == nil {
			require.Equal(t, b, frame.Encode())
		}
	})
}

func TestTooMuch(t *testing.T) {
	_, err := Decode(Frame{Kind: Data, Data: make([]byte, MaxData)}.Encode())
	require.NoError(t, err)
	_, err = Decode(Frame{Kind: Data, Data: make([]byte, MaxData+1)}.Encode())
	require.Error(t, err)
}
