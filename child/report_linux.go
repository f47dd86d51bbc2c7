package child

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// reportSchema is the version written into report.json.
const reportSchema = 1

func newReport(spec events.ChildSpec, e *events.Error) events.Report {
	return events.Report{Schema: reportSchema, ID: spec.ID, Run: spec.Run, At: time.Now().UTC(), Error: e}
}

// writeReport makes r durable. One write: a reader sees all of it or, after a
// crash, a torn line that does not decode.
func writeReport(f *os.File, r events.Report) error {
	b, err := encodeRecord(r)
	if err != nil {
		return fmt.Errorf("report %s: %w", r.ID, err)
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("report %s: %w", r.ID, err)
	}
	// A report in a pipe or on a device cannot be synced and needs not be.
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("report %s: %w", r.ID, err)
	}
	return nil
}

// exitOf translates how the runner's process ended.
func exitOf(state *os.ProcessState) *events.Exit {
	exit := &events.Exit{}
	if status, ok := state.Sys().(syscall.WaitStatus); ok {
		if status.Signaled() {
			exit.Signal = signalName(status.Signal())
		} else {
			code := status.ExitStatus()
			exit.Code = &code
		}
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		exit.UserMS = time.Duration(usage.Utime.Nano()).Milliseconds()
		exit.SystemMS = time.Duration(usage.Stime.Nano()).Milliseconds()
		exit.MaxRSSKiB = usage.Maxrss
	}
	return exit
}

// signalName returns a signal's name; real-time signals are counted from
// SIGRTMIN as glibc does.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	const sigrtmin = 34
	if sig >= sigrtmin {
		return fmt.Sprintf("SIGRTMIN+%d", int(sig)-sigrtmin)
	}
	return fmt.Sprintf("SIG%d", int(sig))
}

// storageError is the error of a run whose output could not be kept: a result
// with a part missing is not a success.
func storageError(id string, err error) *events.Error {
	code := events.CodeStorageFailed
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		code = events.CodeStorageFull
	}
	return events.Errorf(code, events.LayerWorkspace, "keep the output of %s: %w", id, err).
		WithRemedy("free space in the state directory and run it again; what was written until then is kept")
}

// syncFile flushes what was written; files that cannot be synced need not be.
func syncFile(f *os.File) error {
	if err := unix.Fdatasync(int(f.Fd())); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("sync %s: %w", f.Name(), err)
	}
	return nil
}
