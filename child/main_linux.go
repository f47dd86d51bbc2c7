package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
)

// Main supervises the subagent described by the inherited descriptors and
// returns the process's exit status.
func Main(cfg Config) int {
	sigchld := catchSignals()
	if !cfg.Confined() {
		return refuseUnconfined()
	}
	fds, err := takeDescriptors()
	if err != nil {
		fmt.Fprintf(os.Stderr, "hayward-child: %v\n", err)
		return ExitRefused
	}
	spec, refusal := readSpec(fds.spec, cfg)
	if refusal != nil {
		fds.refuse(spec, refusal)
		return ExitRefused
	}
	fds.send(handoff.Record{Step: handoff.StepMain})
	if spec.Direct {
		return runDirect(cfg, spec, fds, sigchld)
	}
	return newSupervisor(cfg, spec, fds, sigchld).run()
}

// refuseUnconfined ends a process whose constructor did not run. Whoever started
// it may have given it no descriptors or quite other ones, so none is touched
// but a pipe where the status pipe belongs.
func refuseUnconfined() int {
	fmt.Fprintln(os.Stderr, "hayward-child: not started by hayward: the constructor found no plan, so nothing is run")
	var st unix.Stat_t
	if unix.Fstat(handoff.FDStatus, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
		b := handoff.Record{Step: handoff.StepRefused, Errno: int32(unix.EPERM)}.Encode()
		// The exit status says the same to whoever does not read.
		_, _ = unix.Write(handoff.FDStatus, b[:])
	}
	return ExitRefused
}

// descriptors are the inherited files that the supervisor keeps.
type descriptors struct {
	spec, report, stdout, stderr, transcript *os.File
	// status is nil once it was closed.
	status *os.File
}

// takeDescriptors closes what only the constructor needed and keeps the rest
// from the command. The constructor has closed everything above.
func takeDescriptors() (*descriptors, error) {
	for _, fd := range []int{handoff.FDPlan, handoff.FDStart, handoff.FDRuleset, handoff.FDFilter} {
		if err := unix.Close(fd); err != nil {
			return nil, fmt.Errorf("close descriptor %d: %w", fd, err)
		}
	}
	for fd := handoff.FDStatus; fd <= handoff.FDTranscript; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			return nil, fmt.Errorf("keep descriptor %d from the command: %w", fd, err)
		}
	}
	return &descriptors{
		spec:       os.NewFile(handoff.FDSpec, "spec"),
		report:     os.NewFile(handoff.FDReport, "report.json"),
		stdout:     os.NewFile(handoff.FDStdout, "stdout.log"),
		stderr:     os.NewFile(handoff.FDStderr, "stderr.log"),
		transcript: os.NewFile(handoff.FDTranscript, "transcript.jsonl"),
		status:     os.NewFile(handoff.FDStatus, "status"),
	}, nil
}

// send writes one status record. The spawner may be gone, and the run goes on
// without it, so a broken pipe is not an error of this run.
func (d *descriptors) send(r handoff.Record) {
	if d.status == nil {
		return
	}
	b := r.Encode()
	if _, err := d.status.Write(b[:]); err != nil {
		d.closeStatus()
	}
}

func (d *descriptors) closeStatus() {
	if d.status != nil {
		// Nothing is buffered: closing a pipe has nothing to lose.
		_ = d.status.Close()
		d.status = nil
	}
}

// refuse reports a start that did not happen: first report.json, then the
// status record that points to it.
func (d *descriptors) refuse(spec events.ChildSpec, e *events.Error) {
	err := writeReport(d.report, newReport(spec, e))
	if err != nil {
		fmt.Fprintf(os.Stderr, "hayward-child: %v; the report was: %v\n", err, e)
	}
	record := handoff.Record{Step: handoff.StepRefused, Errno: int32(unix.ECANCELED)}
	var errno syscall.Errno
	if errors.As(e, &errno) {
		record.Errno = int32(errno)
	}
	d.send(record)
	d.closeStatus()
}

// maxSpec bounds the spec: a prompt from a file, argv and environment.
const maxSpec = 64 << 20

// readSpec reads the spec and checks it against what the constructor did. The
// spec is returned as far as it was understood.
func readSpec(f *os.File, cfg Config) (events.ChildSpec, *events.Error) {
	var spec events.ChildSpec
	// The descriptor's offset is shared with whoever wrote it: read at offsets.
	body, err := io.ReadAll(io.NewSectionReader(f, 0, maxSpec))
	// The spec holds the bus credential; nothing needs the descriptor again.
	err = errors.Join(err, f.Close())
	if err == nil {
		err = events.DecodeRecord(body, &spec)
	}
	switch {
	case err != nil:
		return spec, events.Errorf(events.CodeStartFailed, events.LayerCoordinator, "read the child's spec: %w", err)
	case spec.Enforced != cfg.PlanEnforced():
		return spec, events.Errorf(events.CodeSandboxFailed, events.LayerSandbox,
			"start %s: the spec says enforced %v and the plan says %v", spec.ID, spec.Enforced, cfg.PlanEnforced())
	case !events.ValidID(spec.ID):
		return spec, events.Errorf(events.CodeStartFailed, events.LayerCoordinator, "start: the spec's id %q is not valid", spec.ID)
	case len(spec.Argv) == 0 || spec.Argv[0] == "":
		return spec, events.Errorf(events.CodeMissingCommand, events.LayerGate, "start %s: there is no command", spec.ID)
	}
	return spec, nil
}
