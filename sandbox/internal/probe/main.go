//go:build linux && cgo

// Command probe is the child of the sandbox's tests. Launched like
// hayward-child it plays the supervisor, which runs itself once more as the
// command; both try actions and print what the kernel said, one JSON object a
// line.
//
//	probe supervise ACTION…   (through a plan)
//	probe act ACTION…         (a command)
//
// An action is a word and its arguments, separated by "|". Actions that begin
// with "supervisor:" are tried by the supervisor itself.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/sandbox/early"
)

// Result is what one action gave: "ok", optionally with a value, or the name of
// the errno.
type Result struct {
	Action string `json:"action"`
	Result string `json:"result"`
	Value  string `json:"value,omitempty"`
}

const supervisorPrefix = "supervisor:"

// commandPrefix names the program to run as the command: a profile may not open
// the supervisor's own.
const commandPrefix = "command:"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: probe supervise|act ACTION…")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "supervise":
		err = supervise(os.Args[2:])
	case "act":
		err = act(os.Args[2:])
	default:
		err = fmt.Errorf("unknown role %q", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func supervise(actions []string) error {
	if !early.Confined() {
		return errors.New("not confined")
	}
	status := os.NewFile(handoff.FDStatus, "status")
	enforced := uint64(0)
	if early.PlanEnforced() {
		enforced = 1
	}
	record := handoff.Record{Step: handoff.StepMain, Value: enforced}.Encode()
	if _, err := status.Write(record[:]); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	var inside []string
	self := "/proc/self/exe"
	for _, a := range actions {
		if path, ok := strings.CutPrefix(a, commandPrefix); ok {
			self = path
			continue
		}
		if own, ok := strings.CutPrefix(a, supervisorPrefix); ok {
			if err := report(a, try(own)); err != nil {
				return err
			}
			continue
		}
		inside = append(inside, a)
	}
	if len(inside) == 0 {
		return nil
	}
	if inside[0] == stackAction {
		return stack(self, inside[1:])
	}
	cmd := exec.Command(self, append([]string{"act"}, inside...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	return cmd.Run()
}

// stackAction as the first one applies a second plan within the first: the one of
// which the three files are where hayward-child has its spec and its logs.
const stackAction = "stack"

// stack runs the actions under the second plan.
func stack(self string, actions []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := w.Write([]byte{1}); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	files := make([]*os.File, handoff.FDLast+1)
	for i := range files {
		files[i] = null
	}
	files[1], files[2], files[handoff.FDStart] = os.Stdout, os.Stderr, r
	for to, from := range map[int]uintptr{
		handoff.FDPlan: handoff.FDSpec, handoff.FDRuleset: handoff.FDStdout, handoff.FDFilter: handoff.FDStderr,
	} {
		files[to] = os.NewFile(from, "second")
	}
	child, err := os.StartProcess(self, append([]string{"probe", "supervise", commandPrefix + self}, actions...),
		&os.ProcAttr{Files: files, Env: []string{}, Dir: "/"})
	if err != nil {
		return err
	}
	state, err := child.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("under the second plan: %v", state)
	}
	return err
}

func act(actions []string) error {
	for _, a := range actions {
		if err := report(a, try(a)); err != nil {
			return err
		}
	}
	return nil
}

func report(action string, o outcome) error {
	r := Result{Action: action, Result: "ok", Value: o.value}
	var errno syscall.Errno
	switch {
	case errors.As(o.err, &errno):
		if r.Result = unix.ErrnoName(errno); r.Result == "" {
			r.Result = fmt.Sprint(int(errno))
		}
	case o.err != nil:
		r.Result = o.err.Error()
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(line, '\n'))
	return err
}

type outcome struct {
	value string
	err   error
}

func try(action string) outcome {
	words := strings.Split(action, "|")
	f, ok := table[words[0]]
	if !ok {
		return outcome{err: fmt.Errorf("unknown action %q", words[0])}
	}
	args := words[1:]
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{ppid}", fmt.Sprint(os.Getppid()))
	}
	if len(args) < f.args {
		return outcome{err: fmt.Errorf("action %q wants %d arguments", words[0], f.args)}
	}
	value, err := f.run(args)
	return outcome{value, err}
}
