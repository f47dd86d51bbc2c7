package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// pump moves one output stream from the command's pipe to its file and tells
// the others of it. One buffer is all it holds, so memory does not grow with
// the output; the command waits while the disk does.
type pump struct {
	stream stream
	pipe   *os.File
	file   *os.File
	out    *outbox
	live   *progress

	// written is how much of the stream is in the file.
	written atomic.Int64
	done    chan struct{}

	// The following belong to run, and to everybody once done is closed.
	err error // the first failure to keep output; what follows it is dropped
	cut bool  // the pipe was not at its end when its bound passed
}

// pumpBuffer is the capacity of a pipe: one read empties it.
const pumpBuffer = 64 << 10

func newPump(s stream, pipe, file *os.File, out *outbox, live *progress) *pump {
	return &pump{stream: s, pipe: pipe, file: file, out: out, live: live, done: make(chan struct{})}
}

// run moves output until the end of the pipe, or until drain's bound.
func (p *pump) run() {
	defer close(p.done)
	buf := make([]byte, pumpBuffer)
	for {
		n, err := p.pipe.Read(buf)
		if n > 0 {
			p.take(buf[:n])
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			p.cut = true
			return
		default:
			p.fail(err)
			return
		}
	}
}

func (p *pump) take(b []byte) {
	if p.err != nil {
		// The command is still read, so that it can go on and end; but nothing is
		// kept behind a gap.
		return
	}
	offset := p.written.Load()
	n, err := p.file.Write(b)
	if n > 0 {
		p.written.Add(int64(n))
		p.live.write(p.stream, b[:n])
		p.out.output(p.stream, offset, b[:n])
	}
	if err != nil {
		p.fail(err)
	}
}

func (p *pump) fail(err error) {
	p.err = fmt.Errorf("%s after %d bytes: %w", p.stream, p.written.Load(), err)
	p.out.note("output is lost: " + p.err.Error())
}

// drain lets the pump read on until the pipe's end, but not beyond bound: a
// process out of reach may hold the other end for ever. It returns once the pump
// has ended.
func (p *pump) drain(bound time.Time) error {
	err := p.pipe.SetReadDeadline(bound)
	if err != nil {
		// Without a deadline closing is what ends the read.
		err = errors.Join(err, p.pipe.Close())
	}
	<-p.done
	return err
}
