package spawner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unicode/utf8"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/internal/memfd"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// supervisorLog is the supervisor's own stderr: what it says when it crashes.
const supervisorLog = "supervisor.log"

// maxPromptFile bounds what is read of a prompt file.
const maxPromptFile = 64 << 20

// fork makes the child's process, which blocks on its start pipe, and learns
// its identity.
func (c *child) fork() *events.Error {
	failed := func(what string, err error) *events.Error {
		return events.Errorf(events.CodeStartFailed, events.LayerCoordinator, "start %s: %s: %w", c.spec.ID, what, err)
	}
	prompt, promptErr := c.prompt()
	if promptErr != nil {
		return promptErr
	}
	files, err := c.openFiles(prompt)
	defer files.close()
	if err != nil {
		return failed("open what the child gets", err)
	}
	attr := c.plan.SysProcAttr()
	ownPIDs := attr.Cloneflags&unix.CLONE_NEWPID != 0
	if err := c.makeGroups(ownPIDs); err != nil {
		return failed("prepare its control groups", err)
	}

	pidfd := -1
	attr.PidFD = &pidfd
	c.tree.place(attr)
	pid, err := syscall.ForkExec(c.s.cfg.ChildBinary, []string{"hayward-child"}, &syscall.ProcAttr{
		Dir:   "/",
		Env:   handoff.Environment(),
		Files: files.descriptors(),
		Sys:   attr,
	})
	if err != nil {
		if attr.Cloneflags != 0 && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL)) {
			return events.Errorf(events.CodeSandboxUnavailable, events.LayerSandbox,
				"start %s: fork into the namespaces of profile %s: %w", c.spec.ID, c.plan.Profile().Name(), err).
				WithRemedy("see hayward doctor; allow user namespaces, or use --sandbox-best-effort, or --sandbox off")
		}
		return failed("fork", err)
	}
	c.proc, err = newProcess(pid, pidfd, true)
	if err != nil {
		return failed("watch the child", err)
	}
	c.onUndo(func() { c.proc.close() })
	// It is ours and blocks on its start pipe: end it before anybody knows it.
	end := func() {
		c.closeStart()
		c.proc.kill()
		c.proc.waitGone(c.s.cfg.Deadlines.KillProof)
	}
	if err := c.bounds.join(pid); err != nil {
		end()
		return failed("bound the child", err)
	}
	if err := c.proc.identify(); err != nil {
		end()
		return failed("identify the child", err)
	}
	c.proc.identity.CgroupPath = c.tree.path()
	c.bounds.record(&c.proc.identity)
	return nil
}

// makeGroups makes the control groups that the child is ended and bounded by.
func (c *child) makeGroups(pidNamespace bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.s.cfg.Deadlines.KillProof)
	defer cancel()
	c.tree = newTree(ctx, c.spec.ID, pidNamespace)
	c.onUndo(c.closeTree)
	var memory int64
	if limit := c.spec.Request.MaxMemoryBytes; limit != nil {
		memory = *limit
	}
	var err error
	c.bounds, err = makeBounds(ctx, c.spec.ID, memory, pidNamespace, c.tree.path())
	c.onUndo(c.closeBounds)
	return err
}

func (c *child) closeTree()   { c.closeGroups("tree", c.tree.close) }
func (c *child) closeBounds() { c.closeGroups("bounds", c.bounds.close) }

// closeGroups removes control groups of a child that has ended. What cannot be
// removed bounds nothing any more, so it is logged and not told.
func (c *child) closeGroups(what string, closeAll func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.s.cfg.Deadlines.KillProof)
	defer cancel()
	if err := closeAll(ctx); err != nil {
		c.log.Error("control groups not removed", zap.String("of", what), zap.Error(err))
	}
}

// prompt returns what the command gets on stdin.
func (c *child) prompt() (string, *events.Error) {
	path := c.spec.Request.PromptFile
	if path == "" {
		return c.spec.Request.Prompt, nil
	}
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(f, maxPromptFile+1)); err == nil && len(b) > maxPromptFile {
			err = fmt.Errorf("it has more than %d bytes", maxPromptFile)
		}
		if err == nil && !utf8.Valid(b) {
			err = errors.New("it is not UTF-8")
		}
		if err == nil {
			return string(b), nil
		}
	}
	return "", events.Errorf(events.CodePromptFile, events.LayerWorkspace, "start %s: prompt_file %s: %w", c.spec.ID, path, err)
}

// childFiles are the descriptors on their way into the child, by number.
type childFiles struct {
	table [handoff.FDLast + 1]*os.File
	// own are those of the table that this process closes after the fork.
	own []*os.File
}

func (f *childFiles) close() {
	for _, file := range f.own {
		file.Close()
	}
}

func (f *childFiles) descriptors() []uintptr {
	list := make([]uintptr, len(f.table))
	for i, file := range f.table {
		list[i] = file.Fd()
	}
	return list
}

// openFiles opens what the child gets. The parent's ends of the two pipes stay
// in c. The result is to be closed even on an error.
func (c *child) openFiles(prompt string) (*childFiles, error) {
	f := &childFiles{}
	open := func(number int, file *os.File, err error) error {
		if err != nil {
			return fmt.Errorf("descriptor %d: %w", number, err)
		}
		f.own = append(f.own, file)
		f.table[number] = file
		return nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err := open(0, null, err); err != nil {
		return f, err
	}
	f.table[1] = null
	for number, name := range map[int]string{
		2:                    supervisorLog,
		handoff.FDReport:     rundir.ReportFile,
		handoff.FDStdout:     rundir.StdoutFile,
		handoff.FDStderr:     rundir.StderrFile,
		handoff.FDTranscript: rundir.TranscriptFile,
	} {
		file, err := c.dir.OpenAppend(name)
		if err := open(number, file, err); err != nil {
			return f, fmt.Errorf("%s: %w", name, err)
		}
		if err := reserve(file, name); err != nil {
			return f, fmt.Errorf("%s: reserve space: %w", name, err)
		}
	}
	body, err := events.MarshalRecord(c.childSpec(prompt))
	if err != nil {
		return f, err
	}
	spec, err := memfd.SealedBytes("hayward-spec", body)
	if err := open(handoff.FDSpec, spec, err); err != nil {
		return f, err
	}
	startRead, startWrite, err := pipe()
	if err := open(handoff.FDStart, startRead, err); err != nil {
		return f, err
	}
	c.start = startWrite
	c.onUndo(c.closeStart)
	statusRead, statusWrite, err := pipe()
	if err := open(handoff.FDStatus, statusWrite, err); err != nil {
		return f, err
	}
	if c.status, err = pollable(statusRead); err != nil {
		return f, err
	}
	c.onUndo(func() { c.status.Close() })

	f.table[handoff.FDPlan] = c.plan.PlanFile
	f.table[handoff.FDRuleset] = c.plan.RulesetFile
	f.table[handoff.FDFilter] = c.plan.FilterFile
	f.table[handoff.FDBus] = c.s.cfg.Bus
	return f, nil
}

// pipe makes a close-on-exec pipe. The child's end must be blocking: it is
// given to a process that is no Go program yet.
func pipe() (r, w *os.File, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	return os.NewFile(uintptr(p[0]), "pipe"), os.NewFile(uintptr(p[1]), "pipe"), nil
}

// pollable returns the same pipe end as a file whose reads the runtime's poller
// waits for: no thread is held, and Close ends a read.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("duplicate a pipe: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make a pipe non-blocking: %w", err)
	}
	return os.NewFile(uintptr(fd), "pipe"), nil
}

func readFull(f *os.File, b []byte) (int, error) { return io.ReadFull(f, b) }
