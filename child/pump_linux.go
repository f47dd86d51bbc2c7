package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/diskspace"
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
	agent  *agent // set for the stdout of an agent

	// written is how much of the stream is in the file.
	written atomic.Int64
	done    chan struct{}

	room int // how much may be written before the next look at the disk; run's own

	// The following belong to run, and to everybody once done is closed.
	err error // the first failure to keep output; what follows it is dropped
	cut bool  // the pipe was not at its end when its bound passed
}

const (
	// pumpBuffer is the capacity of a pipe: one read empties it.
	pumpBuffer = 64 << 10
	// maxRoom bounds what is written between two looks at the free space. Where the
	// disk is nearly full it is one in roomShare of what may still be written, for
	// other writers take of that as well.
	maxRoom   = 1 << 20
	roomShare = 16
)

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
	if err := p.space(len(b)); err != nil {
		p.fail(err)
		return
	}
	offset := p.written.Load()
	n, err := p.file.Write(b)
	if n > 0 {
		p.written.Add(int64(n))
		p.live.write(p.stream, b[:n])
		if p.agent != nil {
			p.agent.write(b[:n])
		} else {
			p.out.output(p.stream, offset, b[:n])
		}
	}
	if err != nil {
		p.fail(err)
	}
}

// space fails as a full disk does once output has left of the disk what is not
// for output.
func (p *pump) space(n int) error {
	if p.room >= n {
		p.room -= n
		return nil
	}
	free, size, err := diskspace.Free(int(p.file.Fd()))
	if err != nil {
		// Then the write itself is what finds the end of the disk.
		p.room = maxRoom
		return nil
	}
	reserve := diskspace.Output(size)
	if free < reserve {
		return fmt.Errorf("%d bytes are free and %d have to stay free: %w", free, reserve, unix.ENOSPC)
	}
	p.room = int(min(maxRoom, (free-reserve)/roomShare))
	return nil
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
