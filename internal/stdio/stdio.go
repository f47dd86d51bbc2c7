// Package stdio tells which of the descriptors 0, 1 and 2 were closed when the
// program was started. The Go runtime puts /dev/null in their place before any
// Go code runs, so that output which has nowhere to go looks as if it had
// arrived; a C constructor looks before that. In builds without cgo nothing is
// known, and nothing counts as closed.
package stdio

import (
	"io"
	"os"
)

// Closed reports whether descriptor fd, 0 to 2, was closed at the start.
func Closed(fd int) bool { return fd >= 0 && fd <= 2 && closedAtStart(fd) }

// Writer returns f, or when its descriptor was closed at the start a writer that
// fails as a closed file does.
func Writer(f *os.File) io.Writer {
	if Closed(int(f.Fd())) {
		return closedFile{f.Name()}
	}
	return f
}

type closedFile struct{ name string }

// Write implements [io.Writer].
func (c closedFile) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: c.name, Err: os.ErrClosed}
}
