// Package relay is the contract between hayward-child's listener on loopback and
// the coordinator's gateway: TCP connections of an agent inside, carried over the
// bus.
//
// Each side sends [Frame]s as requests, one at a time for each connection and
// direction, and goes on when the other one has answered: it has then handed the
// bytes on. So no side holds more than one frame of a connection, and whoever
// reads slowly slows the writer down. An empty answer is yes; [Gone] says that
// the other side does not know the connection, or not any more. Nobody who
// answers at all is a coordinator that is away.
package relay

import (
	"encoding/binary"
	"fmt"
)

// Kind is what a frame is for.
type Kind byte

// The kinds.
const (
	// Data are bytes of the connection. The first ones from the child open it.
	Data Kind = 1
	// Close: no more bytes come, in either direction.
	Close Kind = 2
	// Tail, to the child only, are bytes with which an answer under way has to end
	// if the coordinator goes away before it is complete.
	Tail Kind = 3
)

// MaxData is the most bytes of one frame.
const MaxData = 32 << 10

// headerSize is the kind and the number of the connection.
const headerSize = 1 + 8

// Frame is one message. Conn is the child's number for the connection, never used
// twice in a run.
type Frame struct {
	Kind Kind
	Conn uint64
	Data []byte
}

// Encode returns the wire form.
func (f Frame) Encode() []byte {
	b := make([]byte, headerSize, headerSize+len(f.Data))
	b[0] = byte(f.Kind)
	binary.BigEndian.PutUint64(b[1:], f.Conn)
	return append(b, f.Data...)
}

// Decode reads a frame; its Data is a part of b.
func Decode(b []byte) (Frame, error) {
	if len(b) < headerSize || len(b) > headerSize+MaxData {
		return Frame{}, fmt.Errorf("a frame of %d bytes", len(b))
	}
	f := Frame{Kind: Kind(b[0]), Conn: binary.BigEndian.Uint64(b[1:]), Data: b[headerSize:]}
	if f.Kind < Data || f.Kind > Tail {
		return Frame{}, fmt.Errorf("a frame of kind %d", f.Kind)
	}
	return f, nil
}

// Gone is the answer to a frame of a connection that is not known.
const Gone = "gone"
