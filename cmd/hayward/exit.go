package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// The exit codes. A foreground spawn of a command returns the command's own
// beside them, 128+n when signal n ended it.
const (
	exitDone        = 0   // done
	exitSubagent    = 1   // some subagent failed or was cancelled
	exitUsage       = 2   // usage or bad input
	exitUnknown     = 4   // unknown id
	exitDeadline    = 124 // a deadline passed
	exitOwn         = 125 // our own error or a typed refusal
	exitSandbox     = 126 // the sandbox, or a command that is not executable
	exitNotFound    = 127 // the command does not exist
	exitSignal      = 128 // plus the signal: 129 detached by SIGHUP, 141 stdout closed, 143 SIGTERM
	exitInterrupted = exitSignal + int(syscall.SIGINT)
)

// exitHelp is shown in the root's help.
const exitHelp = `Exit codes:
  0    done
  1    some subagent failed or was cancelled
  2    usage or bad input
  4    unknown id
  124  a deadline passed
  125  an error of hayward itself or a refusal
  126  the sandbox could not be applied, or the command is not executable
  127  the command does not exist
  130  interrupted
  A foreground spawn returns the command's own code, 128+n for signal n.`

// exitStatus ends the program with a code and without a message.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// status returns nil for 0.
func status(code int) error {
	if code == exitDone {
		return nil
	}
	return exitStatus(code)
}

// interruption is the cause of a context that a signal ended.
type interruption struct{ signal syscall.Signal }

func (i *interruption) Error() string { return "interrupted by " + unix.SignalName(i.signal) }

// exitCode is the code of an error.
func exitCode(err error) int {
	var s exitStatus
	var stopped *interruption
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &s):
		return int(s)
	case errors.As(err, &stopped):
		return exitSignal + int(stopped.signal)
	case errors.Is(err, context.DeadlineExceeded):
		return exitDeadline
	case errors.Is(err, syscall.EPIPE):
		return exitSignal + int(syscall.SIGPIPE)
	}
	return errorExit(events.AsError(err))
}

// errorExit is the code of a typed error.
func errorExit(e *events.Error) int {
	switch e.Code {
	case events.CodeInvalidRequest, events.CodeTooLarge, events.CodeInvalidID, events.CodeAmbiguousID,
		events.CodeUnknownType, events.CodeUnknownProfile, events.CodeMissingCommand, events.CodeCwdMissing,
		events.CodePromptFile, events.CodeInputMissing:
		return exitUsage
	case events.CodeUnknownID:
		return exitUnknown
	case events.CodeTimeout:
		return exitDeadline
	case events.CodeCommandNotFound:
		return exitNotFound
	case events.CodeCommandNotExec, events.CodeSandboxUnavailable, events.CodeSandboxFailed:
		return exitSandbox
	}
	if e.Layer == events.LayerSandbox {
		return exitSandbox
	}
	return exitOwn
}

// snapshotExit is the code of a foreground spawn that ended.
func snapshotExit(s events.Snapshot) int {
	switch {
	case s.Status == events.StatusCompleted:
		return exitDone
	case s.Reason == events.ReasonDeadline || s.Reason == events.ReasonIdle:
		return exitDeadline
	case s.ExitCode != nil && *s.ExitCode != 0:
		return *s.ExitCode
	case s.Signal != "":
		if n := unix.SignalNum(s.Signal); n > 0 {
			return exitSignal + int(n)
		}
		return exitSubagent
	case s.Reason == events.ReasonSandbox:
		return exitSandbox
	case s.Agent != nil && s.ExitCode != nil: // it ran, exited with 0 and did not succeed
		return exitSubagent
	case s.Error != nil:
		return max(errorExit(s.Error), exitSubagent)
	case s.Reason == events.ReasonCrash || s.Reason == events.ReasonStart || s.Reason == events.ReasonLimit:
		return exitOwn
	}
	return exitSubagent
}

// interruptible returns a context that SIGINT or SIGTERM ends, with the signal
// as its cause.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			cancel(&interruption{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}
