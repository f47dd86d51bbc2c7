package main

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// interruptibleReader reads a file that is not ours alone: Close ends a Read
// that is in flight and leaves the file open, and the file's flags, which other
// processes share, are left as they are.
type interruptibleReader struct {
	f *os.File
	// woken becomes readable when wake is closed. It stays open as long as the
	// reader, because a Read may be polling it.
	woken *os.File

	mu   sync.Mutex
	wake *os.File // guarded by mu, nil once closed
	err  error    // why there are no such files
}

func newInterruptibleReader(f *os.File) *interruptibleReader {
	r := &interruptibleReader{f: f}
	r.woken, r.wake, r.err = os.Pipe()
	return r
}

// Read implements io.Reader.
func (r *interruptibleReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if err := r.awaitInput(); err != nil {
		return 0, err
	}
	return r.f.Read(p)
}

// awaitInput returns nil when there is something to read, the end included, and
// os.ErrClosed after Close.
func (r *interruptibleReader) awaitInput() error {
	input, err := descriptor(r.f)
	if err != nil {
		return err
	}
	woken, err := descriptor(r.woken)
	if err != nil {
		return err
	}
	fds := []unix.PollFd{{Fd: input, Events: unix.POLLIN}, {Fd: woken, Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return os.ErrClosed
		default:
			return nil
		}
	}
}

// descriptor is f's number. Unlike Fd it leaves the mode of f alone.
func descriptor(f *os.File) (int32, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	var n int32
	err = raw.Control(func(fd uintptr) { n = int32(fd) })
	return n, err
}

// Close implements io.Closer. The file itself is not closed.
func (r *interruptibleReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wake == nil {
		return nil
	}
	err := r.wake.Close()
	r.wake = nil
	return err
}
