package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/paths"
)

const (
	// pollPause is how often a lock or a socket of another process is tried again.
	pollPause = 20 * time.Millisecond
	// readyLine is what a daemon writes to its readiness pipe; anything else is
	// the error that it could not start with.
	readyLine = "ready\n"
	// maxStartError bounds what is read of such an error, or of the log's end.
	maxStartError = 16 << 10
)

// startDaemon makes sure that a daemon serves p: it starts one in the
// background unless somebody else just did.
func (a *app) startDaemon(ctx context.Context, p paths.Paths) error {
	late := events.Errorf(events.CodeTimeout, events.LayerCoordinator, "the daemon did not start within %v", startTimeout).
		WithRemedy("its log is %s", p.Log())
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, late)
	defer cancel()
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return stateError("make the state directory", err)
	}
	// The lock orders programs that would start a daemon; the daemon has its own.
	lock, err := lockFile(ctx, filepath.Join(p.State, "start.lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	for {
		if client.Listening(p.ClientSocket()) {
			return nil
		}
		if !locked(p.Lock()) {
			err := a.launch(ctx, p)
			if err == nil || !locked(p.Lock()) {
				return err
			}
		}
		// A daemon holds the state and does not listen: it is starting or leaving.
		if err := sleep(ctx, pollPause); err != nil {
			return err
		}
	}
}

func stateError(what string, err error) error {
	return events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "%s: %w", what, err).
		WithRemedy("the state directory must be writable; HAYWARD_STATE_DIR names another one")
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lockFile waits for the lock of a file. Closing the file frees it.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, stateError("lock the state directory", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, stateError("lock "+path, err)
		}
		if err := sleep(ctx, pollPause); err != nil {
			f.Close()
			return nil, err
		}
	}
}

// locked reports whether another process holds the lock of a file.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // no daemon ever was here, or the one to start will say why not
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// launch starts a daemon of its own session and waits until it is ready.
func (a *app) launch(ctx context.Context, p paths.Paths) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	log, err := os.OpenFile(p.Log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return stateError("open the daemon's log", err)
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return stateError("open the daemon's log", err)
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	defer ready.Close()

	cmd := exec.Command(exe, "serve", "--on-demand", "--ready-fd", "3")
	cmd.Dir = "/" // so that it holds no file system
	cmd.Env = a.environ
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	said, err := readReady(ctx, ready)
	if err == nil && said == readyLine {
		if err := cmd.Process.Release(); err != nil {
			return fmt.Errorf("start the daemon: %w", err)
		}
		return nil
	}
	if err != nil { // the deadline, or an interrupt: it is of no use any more
		_ = cmd.Process.Kill() // it may have ended meanwhile
	}
	waitErr := cmd.Wait()
	if err != nil {
		return err
	}
	return startError(said, waitErr, p.Log(), begin)
}

// readReady reads the readiness pipe until the daemon closes it or is ready.
func readReady(ctx context.Context, pipe *os.File) (string, error) {
	stop := context.AfterFunc(ctx, func() {
		_ = pipe.SetReadDeadline(time.Now()) // a pipe of ours takes deadlines
	})
	defer stop()
	r := bufio.NewReader(io.LimitReader(pipe, maxStartError))
	line, err := r.ReadString('\n')
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", context.Cause(ctx)
	}
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("start the daemon: %w", err)
	}
	return line, nil
}

// startError is why a daemon did not start: what it said through the pipe, else
// the last line of its log.
func startError(said string, waitErr error, logFile string, begin int64) error {
	var e events.Error
	if said != "" && events.DecodeRecord([]byte(said), &e) == nil && e.Code != "" {
		e.Message = "the daemon did not start: " + e.Message
		return &e
	}
	failed := events.Errorf(events.CodeInternal, events.LayerCoordinator, "the daemon did not start: %s", lastLine(logFile, begin))
	if waitErr != nil {
		failed.WithDetail("process", waitErr.Error())
	}
	return failed.WithRemedy("its log is %s", logFile)
}

// lastLine is the last line that was written to a log behind an offset.
func lastLine(file string, begin int64) string {
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		begin = max(begin, info.Size()-maxStartError)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, begin, maxStartError))
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	if last := strings.TrimSpace(printable(string(lines[len(lines)-1]))); last != "" {
		return last
	}
	return "it said nothing"
}
