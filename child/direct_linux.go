package child

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
)

// forwarded are the signals that a direct run passes on to its command.
var forwarded = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP,
}

// ends reports whether a signal asks a command to end.
func ends(s os.Signal) bool { return s == unix.SIGINT || s == unix.SIGTERM || s == unix.SIGHUP }

// runDirect runs the command with the supervisor's own descriptors 0, 1 and 2 and
// reports its end. Nothing is recorded and no bus is there. In a PID namespace
// whatever the command left ends with the supervisor. The second signal that asks
// for the end kills: the command may ignore the first.
func runDirect(cfg Config, spec events.ChildSpec, fds *descriptors, sigchld <-chan os.Signal) int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	namespace, err := becomeReaper()
	if err != nil {
		fds.refuse(spec, events.Errorf(events.CodeStartFailed, events.LayerSandbox, "start %s: %w", spec.ID, err))
		return ExitRefused
	}
	reaper := newReaper(sigchld, cfg.slack())
	go reaper.run()
	defer reaper.close()
	r, refusal := startDirect(spec, reaper)
	if refusal != nil {
		fds.refuse(spec, refusal)
		return ExitReported
	}
	fds.send(handoff.Record{Step: handoff.StepRunner, Value: uint64(r.process.Pid)})
	fds.closeStatus()
	t := tree{namespace: namespace, group: r.process.Pid}
	var asked bool
	var killed syscall.Signal // the signal that was answered with a kill
	for running := true; running; {
		select {
		case <-r.exited:
			running = false
		case s := <-signals:
			if ends(s) {
				if asked {
					// As below.
					killed = s.(syscall.Signal)
					_ = t.kill()
					continue
				}
				asked = true
			}
			// Whoever sent it sees what became of it by the end of the command.
			_ = t.signalGroup(s.(syscall.Signal))
		}
	}
	signal.Stop(signals)
	report := newReport(spec, nil)
	state, err := r.wait()
	reaper.forget()
	if err != nil {
		report.Error = events.Errorf(events.CodeStartFailed, events.LayerSandbox, "wait for %s: %w", spec.ID, err)
	} else {
		report.Exit = exitOf(state)
		if killed != 0 && report.Exit.Signal == signalName(unix.SIGKILL) {
			report.Exit.Signal = signalName(killed)
		}
	}
	if killed != 0 && !namespace {
		ctx, cancel := context.WithTimeout(context.Background(), drainBound)
		if err := sweep(ctx, os.Getpid()); err != nil {
			fmt.Fprintf(os.Stderr, "hayward-child: kill what the command left: %v\n", err)
		}
		cancel()
	}
	if err := writeReport(fds.report, report); err != nil {
		fmt.Fprintf(os.Stderr, "hayward-child: %v\n", err)
		return ExitRefused
	}
	return ExitReported
}

// startDirect starts the command as startRunner does, on our own descriptors.
func startDirect(spec events.ChildSpec, reaper *reaper) (*runner, *events.Error) {
	if err := os.Chdir(spec.Cwd); err != nil {
		return nil, events.Errorf(events.CodeCwdMissing, events.LayerGate, "enter the working directory: %w", err)
	}
	path, refusal := resolve(spec)
	if refusal != nil {
		return nil, refusal
	}
	r := &runner{}
	err := reaper.spare(func() (pid int, err error) {
		r.process, err = os.StartProcess(path, spec.Argv, &os.ProcAttr{
			Env: append([]string{}, spec.Env...), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
			// A session of its own: TIOCSTI finds no terminal to write to.
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			return 0, err
		}
		return r.process.Pid, nil
	})
	if err != nil {
		return nil, execError(spec, path, err)
	}
	r.exited = watchExit(r.process)
	return r, nil
}
