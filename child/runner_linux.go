package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// runner is the command's process and our ends of its pipes.
type runner struct {
	process *os.Process
	// exited is closed when the process has ended; it is not reaped before wait,
	// so until then its pid and group are its own.
	exited <-chan struct{}

	stdin          *os.File // nil when the command reads /dev/null
	stdout, stderr *os.File
}

// startRunner starts the command of spec. On an error nothing is left behind.
func startRunner(spec events.ChildSpec, reaper *reaper) (*runner, *events.Error) {
	// The supervisor enters the directory itself, so that an error of the exec
	// below can only be about the program, and leaves it again, so that it does
	// not keep a file system busy.
	if err := os.Chdir(spec.Cwd); err != nil {
		return nil, events.Errorf(events.CodeCwdMissing, events.LayerGate, "start %s: enter the working directory: %w", spec.ID, err).
			WithDetail("cwd", spec.Cwd)
	}
	path, refusal := resolve(spec)
	if refusal != nil {
		return nil, refusal
	}
	r := &runner{}
	inner, err := r.openPipes(spec)
	if err != nil {
		return nil, events.Errorf(events.CodeStartFailed, events.LayerSandbox, "start %s: %w", spec.ID, err)
	}
	err = reaper.spare(func() (pid int, err error) {
		r.process, err = os.StartProcess(path, spec.Argv, &os.ProcAttr{
			Env:   append([]string{}, spec.Env...), // nil would mean ours
			Files: inner,
			// A session of its own, not only a group: no terminal can stop or
			// interrupt the command, and TIOCSTI finds none to write to.
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			return 0, err
		}
		return r.process.Pid, nil
	})
	closeAll(inner...)
	// Staying there would only keep the file system busy.
	_ = os.Chdir("/")
	if err != nil {
		closeAll(r.stdin, r.stdout, r.stderr)
		return nil, execError(spec, path, err)
	}
	r.exited = watchExit(r.process)
	return r, nil
}

// wait reaps the ended process.
func (r *runner) wait() (*os.ProcessState, error) { return r.process.Wait() }

// openPipes makes the three pipes and returns the command's ends. Only our own
// ends are non-blocking: programs do not expect that of theirs.
func (r *runner) openPipes(spec events.ChildSpec) (inner []*os.File, err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			closeAll(opened...)
		}
	}()
	pipe := func(name string, ours int) (own, other *os.File, err error) {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return nil, nil, fmt.Errorf("make the pipe for %s: %w", name, err)
		}
		if err := unix.SetNonblock(fds[ours], true); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("make the pipe for %s: %w", name, err), unix.Close(fds[0]), unix.Close(fds[1]))
		}
		own, other = os.NewFile(uintptr(fds[ours]), name), os.NewFile(uintptr(fds[1-ours]), name)
		opened = append(opened, own, other)
		return own, other, nil
	}
	const read, write = 0, 1
	var in, out, errs *os.File
	if spec.Stdin == events.StdinStream || spec.Prompt != "" {
		r.stdin, in, err = pipe("stdin", write)
	} else {
		// Not an empty pipe: some programs prefer a pipe to their arguments.
		in, err = os.Open(os.DevNull)
		opened = append(opened, in)
	}
	if err != nil {
		return nil, err
	}
	if r.stdout, out, err = pipe("stdout", read); err != nil {
		return nil, err
	}
	if r.stderr, errs, err = pipe("stderr", read); err != nil {
		return nil, err
	}
	return []*os.File{in, out, errs}, nil
}

// closeAll closes pipe ends that hold nothing to lose.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// defaultPath is searched when the command's environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// resolve finds the program as execvp does, in the command's own PATH and
// working directory.
func resolve(spec events.ChildSpec) (string, *events.Error) {
	name := spec.Argv[0]
	if strings.Contains(name, "/") {
		if err := executable(name); err != nil {
			return "", execError(spec, name, err)
		}
		return name, nil
	}
	path := defaultPath
	for _, kv := range spec.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	found := error(unix.ENOENT)
	at := name
	for _, dir := range strings.Split(path, ":") {
		candidate := filepath.Join(dir, name)
		if dir == "" {
			candidate = "./" + name
		}
		// What cannot be looked at is not there, as for a shell: an entry of PATH may
		// be another user's, or hidden by the sandbox.
		if err := unix.Stat(candidate, new(unix.Stat_t)); err != nil {
			continue
		}
		err := executable(candidate)
		if err == nil {
			return candidate, nil
		}
		if missing(found) {
			found, at = err, candidate
		}
	}
	return "", execError(spec, at, found)
}

func executable(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.EACCES
	}
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}

func missing(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// execError says why the program could not be started.
func execError(spec events.ChildSpec, path string, err error) *events.Error {
	fail := func(code events.Code, layer events.ErrorLayer) *events.Error {
		return events.Errorf(code, layer, "start %s: run %s: %w", spec.ID, path, err).WithDetail("command", spec.Argv[0])
	}
	switch {
	case missing(err) && executable(path) == nil:
		return fail(events.CodeCommandNotExec, events.LayerGate).
			WithRemedy("the interpreter in its first line, or its dynamic loader, does not exist")
	case missing(err):
		return fail(events.CodeCommandNotFound, events.LayerGate).WithRemedy("name a program by its path, or one that is in PATH")
	case errors.Is(err, unix.ENOEXEC):
		return fail(events.CodeCommandNotExec, events.LayerGate).
			WithRemedy("a script needs a first line such as #!/bin/sh, a program must be built for this machine")
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ETXTBSY):
		return fail(events.CodeCommandNotExec, events.LayerGate).
			WithRemedy("it must be a regular file with its execute permission set, on a file system that allows it")
	}
	return fail(events.CodeStartFailed, events.LayerSandbox)
}
