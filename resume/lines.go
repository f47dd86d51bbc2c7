package resume

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

const (
	// maxLine bounds a line of a transcript or a session. A prompt from a file is the
	// longest there may be.
	maxLine = 64 << 20
	// maxIdle bounds the buffer that is kept for the next line.
	maxIdle = 1 << 20
)

// lines reads a file line by line in bounded memory.
type lines struct {
	r      *bufio.Reader
	buf    []byte
	number int
	most   int // bytes of a line
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10), most: maxLine} }

// next returns the next line without its end; it holds until the next call. whole
// tells whether the line had an end. After the last line it returns [io.EOF].
func (l *lines) next() (line []byte, whole bool, err error) {
	if cap(l.buf) > maxIdle {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		if len(l.buf) > l.most {
			return nil, false, fmt.Errorf("line %d has over %d bytes", l.number+1, l.most)
		}
		switch {
		case err == nil:
			l.number++
			return l.buf[:len(l.buf)-1], true, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			l.number++
			return l.buf, false, nil
		default:
			return nil, false, err
		}
	}
}
