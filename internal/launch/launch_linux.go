// Package launch runs one command under a sandbox plan without a coordinator:
// nothing is recorded, the command has the caller's stdin, stdout and stderr.
package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/internal/memfd"
	"github.com/hayward-dev/hayward/sandbox"
)

// Command is what to run.
type Command struct {
	// Argv, Env ("K=V" each) and Cwd are the command's own.
	Argv, Env []string
	Cwd       string
	// ChildBinary is the path of hayward-child.
	ChildBinary string
	// Stdin, Stdout and Stderr are the command's own.
	Stdin, Stdout, Stderr *os.File
	// Done ends the command when it is closed. Where it is set, signals to this
	// process are not passed on.
	Done <-chan struct{}
	// Ready is called once the sandbox is applied, before the command is waited
	// for. It may be nil.
	Ready func(events.SandboxReport)
	// Quarantined is called at the end with what was moved aside, if anything was;
	// see [sandbox.Quarantine]. It may be nil.
	Quarantined func(paths []string, err error)
}

// Run runs the command under the plan to its end, with signals that this process
// gets passed on to it. The error is a typed one if the command was not run.
func Run(plan *sandbox.Plan, c Command) (events.Exit, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &run{plan: plan, command: c}
	defer r.close()
	if err := r.start(); err != nil {
		return events.Exit{}, fmt.Errorf("start hayward-child: %w", err)
	}
	exit, err := r.wait()
	if moved, moveErr := sandbox.Quarantine(plan.Required().Absent, r.id); c.Quarantined != nil && (len(moved) > 0 || moveErr != nil) {
		c.Quarantined(moved, moveErr)
	}
	return exit, err
}

// run is one command. Its files are closed by close.
type run struct {
	plan    *sandbox.Plan
	command Command
	id      string
	process *os.Process
	// start, status and report are this process's ends of pipes.
	startPipe, status, report *os.File
	opened                    []*os.File
}

func (r *run) close() {
	for _, f := range r.opened {
		f.Close() // pipes and memory files: nothing is lost
	}
}

func (r *run) pipe() (read, write *os.File, err error) {
	if read, write, err = os.Pipe(); err == nil {
		r.opened = append(r.opened, read, write)
	}
	return read, write, err
}

// start forks hayward-child and lets it go.
func (r *run) start() error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	r.id = id.String()
	body, err := events.MarshalRecord(events.ChildSpec{
		ID: r.id, Argv: r.command.Argv, Env: r.command.Env, Cwd: r.command.Cwd, Direct: true,
		Profile: r.plan.Profile().Name(), Enforced: r.plan.Profile().Enforced(),
	})
	if err != nil {
		return err
	}
	spec, err := memfd.SealedBytes("hayward-spec", body)
	if err != nil {
		return err
	}
	r.opened = append(r.opened, spec)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	r.opened = append(r.opened, null)
	startRead, startWrite, err1 := r.pipe()
	statusRead, statusWrite, err2 := r.pipe()
	reportRead, reportWrite, err3 := r.pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	r.startPipe, r.status, r.report = startWrite, statusRead, reportRead
	files := make([]*os.File, handoff.FDLast+1)
	for i := range files {
		files[i] = null
	}
	files[0], files[1], files[2] = r.command.Stdin, r.command.Stdout, r.command.Stderr
	files[handoff.FDPlan], files[handoff.FDRuleset], files[handoff.FDFilter] = r.plan.PlanFile, r.plan.RulesetFile, r.plan.FilterFile
	files[handoff.FDStart], files[handoff.FDStatus], files[handoff.FDSpec] = startRead, statusWrite, spec
	files[handoff.FDReport] = reportWrite
	attr := r.plan.SysProcAttr()
	// Nobody is left to pass signals on once this process is gone. It is the death
	// of the thread that counts, which Run holds on to.
	attr.Pdeathsig = unix.SIGKILL
	r.process, err = os.StartProcess(r.command.ChildBinary, []string{"hayward-child"},
		&os.ProcAttr{Dir: "/", Env: handoff.Environment(), Files: files, Sys: attr})
	for _, f := range []*os.File{startRead, statusWrite, reportWrite} {
		f.Close() // the child's ends; an end of file must come when it is gone
	}
	if err != nil {
		if attr.Cloneflags != 0 {
			return events.Errorf(events.CodeSandboxUnavailable, events.LayerSandbox,
				"fork into the namespaces of profile %s: %w", r.plan.Profile().Name(), err).WithRemedy("see hayward doctor")
		}
		return err
	}
	// EPIPE: the constructor refused the plan; its records say why.
	if _, err := startWrite.Write([]byte{1}); err != nil && !errors.Is(err, unix.EPIPE) {
		return errors.Join(err, r.process.Kill())
	}
	return startWrite.Close()
}

// wait passes signals on, reads what the child says, and waits for its end.
func (r *run) wait() (events.Exit, error) {
	signals := make(chan os.Signal, 16)
	if r.command.Done == nil {
		signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case s := <-signals:
				// It may have ended meanwhile, which is what is waited for.
				_ = r.process.Signal(s)
			case <-r.command.Done:
				_ = r.process.Kill()
				return
			case <-done:
				return
			}
		}
	})
	refusal := r.readStatus()
	if refusal != nil {
		// It ended by itself, or must not go on.
		_ = r.process.Kill()
	}
	body, readErr := io.ReadAll(io.LimitReader(r.report, 1<<20))
	state, waitErr := r.process.Wait()
	signal.Stop(signals)
	close(done)
	wg.Wait()
	if refusal != nil {
		return events.Exit{}, refusal
	}
	if err := errors.Join(readErr, waitErr); err != nil {
		return events.Exit{}, fmt.Errorf("wait for hayward-child: %w", err)
	}
	var report events.Report
	if err := events.DecodeRecord(body, &report); err != nil {
		return events.Exit{}, events.Errorf(events.CodeChildCrashed, events.LayerCoordinator,
			"hayward-child ended without a report (%v): %w", state, err)
	}
	if report.Error != nil {
		return events.Exit{}, report.Error
	}
	if report.Exit == nil {
		return events.Exit{}, events.Errorf(events.CodeChildCrashed, events.LayerCoordinator, "hayward-child reported no exit (%v)", state)
	}
	return *report.Exit, nil
}

// readStatus reads the records up to the command's start and judges the sandbox.
func (r *run) readStatus() *events.Error {
	var records []handoff.Record
	for {
		var b [handoff.RecordSize]byte
		if _, err := io.ReadFull(r.status, b[:]); err != nil {
			break
		}
		records = append(records, handoff.Decode(b[:]))
	}
	report, err := r.plan.Report(records)
	if err == nil && r.command.Ready != nil {
		r.command.Ready(report)
	}
	return err
}

// Code is the exit code of a shell for an exit: 128 and the signal's number.
func Code(e events.Exit) int {
	if e.Code != nil {
		return *e.Code
	}
	if n := unix.SignalNum(e.Signal); n > 0 {
		return 128 + int(n)
	}
	return 128 + int(syscall.SIGKILL)
}
