//go:build unix

package rundir

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"unicode/utf8"

	"github.com/hayward-dev/hayward/events"
)

// Output returns a file as it travels: all of it when it has at most limit
// bytes, else its first head and last tail bytes around a mark that says how
// many bytes were left out. Text is cut between characters; what is not UTF-8 is
// cut where asked and encoded as base64, mark included. Head and tail together
// are at most limit; memory is bounded by it.
func (d *Dir) Output(name string, limit, head, tail int) (events.Output, error) {
	out := events.Output{Ref: d.id + "/" + name, Path: filepath.Join(d.path, name)}
	f, err := d.OpenRead(name)
	if err != nil {
		return events.Output{}, err
	}
	st, err := f.Stat()
	var part cut
	if err == nil {
		out.Bytes = st.Size()
		part, err = excerpt(f, out.Bytes, int64(max(limit, 0)), int64(max(head, 0)), int64(max(tail, 0)))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return events.Output{}, d.failed("read", name, err)
	}
	out.Text, out.Encoding, out.Truncated = part.render(out.Bytes)
	return out, nil
}

// cut is what was read of a file: all in head, or head and tail.
type cut struct {
	head, tail []byte
	whole      bool
}

func excerpt(f io.ReaderAt, size, limit, head, tail int64) (c cut, err error) {
	if c.whole = size <= limit; c.whole {
		c.head, err = readRange(f, 0, size)
		return c, err
	}
	head = min(head, limit)
	tail = min(tail, limit-head)
	if c.head, err = readRange(f, 0, head); err == nil {
		c.tail, err = readRange(f, size-tail, tail)
	}
	return c, err
}

// render joins the parts. size is that of the whole file.
func (c cut) render(size int64) (text, encoding string, truncated bool) {
	if c.whole {
		if utf8.Valid(c.head) {
			return string(c.head), "", false
		}
		return base64.StdEncoding.EncodeToString(c.head), "base64", false
	}
	head, tail := trimLast(c.head), trimFirst(c.tail)
	isText := utf8.Valid(head) && utf8.Valid(tail)
	if !isText {
		head, tail = c.head, c.tail
	}
	joined := bytes.Join([][]byte{head, tail}, []byte(Mark(size-int64(len(head))-int64(len(tail)))))
	if isText {
		return string(joined), "", true
	}
	return base64.StdEncoding.EncodeToString(joined), "base64", true
}

// Mark is what stands for n bytes that were left out.
func Mark(n int64) string { return fmt.Sprintf("\n[... %d bytes left out ...]\n", n) }

// trimLast drops a character that is cut short at the end of b.
func trimLast(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if rest := b[len(b)-i:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// trimFirst drops the rest of a character at the start of b, which may be all of
// b.
func trimFirst(b []byte) []byte {
	for i := 0; i < utf8.UTFMax && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	if len(b) < utf8.UTFMax {
		return nil
	}
	return b
}

// ReadAt returns at most most bytes from off on, at most [events.MaxChunk], and
// the file's size. Behind the end there are none.
func (d *Dir) ReadAt(name string, off int64, most int) (data []byte, size int64, err error) {
	if off < 0 {
		return nil, 0, d.failed("read", name, fmt.Errorf("offset %d is negative", off))
	}
	f, err := d.OpenRead(name)
	if err != nil {
		return nil, 0, err
	}
	if most <= 0 || most > events.MaxChunk {
		most = events.MaxChunk
	}
	st, err := f.Stat()
	if err == nil {
		size = st.Size()
		data, err = readRange(f, off, min(int64(most), max(size-off, 0)))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, 0, d.failed("read", name, err)
	}
	return data, size, nil
}

// TailOffset returns where the last lines of the file begin: 0 when it has
// fewer, its size when lines is not positive. The newline at the very end does
// not begin another line.
func (d *Dir) TailOffset(name string, lines int) (int64, error) {
	f, err := d.OpenRead(name)
	if err != nil {
		return 0, err
	}
	st, err := f.Stat()
	var off int64
	if err == nil {
		off, err = tailOffset(f, st.Size(), lines)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, d.failed("read", name, err)
	}
	return off, nil
}

// tailBlock is how much of a file is searched for newlines at a time.
const tailBlock = 64 << 10

func tailOffset(f io.ReaderAt, size int64, lines int) (int64, error) {
	if lines <= 0 || size == 0 {
		return size, nil
	}
	buf := make([]byte, min(tailBlock, size))
	// The last byte is the end of the last line, whatever it is.
	for end := size - 1; end > 0; {
		block := buf[:min(int64(len(buf)), end)]
		start := end - int64(len(block))
		if err := readFull(f, block, start); err != nil {
			return 0, err
		}
		for i := len(block); ; {
			if i = bytes.LastIndexByte(block[:i], '\n'); i < 0 {
				break
			}
			if lines--; lines == 0 {
				return start + int64(i) + 1, nil
			}
		}
		end = start
	}
	return 0, nil
}

func readRange(f io.ReaderAt, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	if err := readFull(f, b, off); err != nil {
		return nil, err
	}
	return b, nil
}

// readFull fills b. The files only grow, so an end before b is full is an error.
func readFull(f io.ReaderAt, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
