package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// hookTimeout is how long one on_done may take before it is killed.
	hookTimeout = 30 * time.Second
	// hookDrain is how long its output may be held open by what it left behind.
	hookDrain = time.Second
	// hookOutput is how much of the end of its output is kept, in bytes.
	hookOutput = 4 << 10
	// maxHooks bounds those that run at once.
	maxHooks = 4
)

// HookResult is how an on_done ended.
type HookResult struct {
	Command []string `json:"command"`
	// ExitCode is null when there is none.
	ExitCode *int   `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	// Error says why it did not start or was killed.
	Error      string `json:"error,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	// Output is the end of what it wrote to stdout and stderr.
	Output string `json:"output,omitempty"`
}

// Failed reports whether the hook ended otherwise than with exit code 0.
func (h HookResult) Failed() bool { return h.ExitCode == nil || *h.ExitCode != 0 || h.Error != "" }

// String says in a few words how it ended.
func (h HookResult) String() string {
	switch {
	case h.Error != "":
		return h.Error
	case h.Signal != "":
		return h.Signal
	case h.ExitCode != nil:
		return "exit " + strconv.Itoa(*h.ExitCode)
	}
	return "its end is not known"
}

// hooked is the end of an on_done of node i. The attempt it was for need not be
// the node's last.
type hooked struct {
	i       int
	attempt Result
	result  HookResult
}

// hook runs the on_done of node i for the end in res. A hook runs beside the
// run: what depends on the subagent does not wait for it.
func (r *run) hook(i int, res Result) {
	sub := r.nodes[i].sub
	if len(sub.OnDone) == 0 {
		return
	}
	r.hooksLeft++
	env := append(append([]string(nil), r.options.Environ...), hookEnvironment(r.options.RunID, r.plan.Name, res)...)
	r.workers.Go(func() {
		r.hooks <- struct{}{} // each of them has a deadline
		result := runHook(r.hooking, hookTimeout, sub.OnDone, r.plan.Dir, env)
		<-r.hooks
		r.hooked <- hooked{i, res, result} // the loop takes as many as it began
	})
}

// owedHooks runs those that an earlier execution died before.
func (r *run) owedHooks() {
	for i := range r.nodes {
		for _, res := range r.options.Earlier[r.nodes[i].sub.Name].Owed {
			r.hook(i, res)
		}
	}
}

func (r *run) endHook(h hooked) {
	r.hooksLeft--
	n := &r.nodes[h.i]
	h.attempt.OnDone = &h.result
	r.keep(h.attempt)
	if n.result.Attempt == h.attempt.Attempt {
		n.result.OnDone = &h.result
	}
	if !h.result.Failed() {
		return
	}
	r.hookFailures++
	if r.options.Observer != nil {
		r.options.Observer.HookFailed(n.sub.Name, h.result)
	}
}

// hookEnvironment is what an entry's on_done is told, beside the environment of
// the run. It goes by variables alone: nothing of it is put into the command.
func hookEnvironment(run, plan string, res Result) []string {
	exit := ""
	if res.ExitCode != nil {
		exit = strconv.Itoa(*res.ExitCode)
	}
	return []string{
		"HAYWARD_RUN=" + run, "HAYWARD_PLAN=" + plan,
		"HAYWARD_ID=" + res.SubagentID, "HAYWARD_NAME=" + res.Name, "HAYWARD_ATTEMPT=" + strconv.Itoa(res.Attempt),
		"HAYWARD_STATUS=" + string(res.Status), "HAYWARD_REASON=" + string(res.Reason),
		"HAYWARD_EXIT_CODE=" + exit, "HAYWARD_SIGNAL=" + res.Signal, "HAYWARD_OUTPUT=" + res.OutputPath,
	}
}

// planEnvironment is what the plan's own on_done is told. summary is the path of
// the summary as JSON, if there is one.
func planEnvironment(s Summary, status, summary string) []string {
	return []string{
		"HAYWARD_RUN=" + s.RunID, "HAYWARD_PLAN=" + s.Plan, "HAYWARD_STATUS=" + status,
		"HAYWARD_COMPLETED=" + strconv.Itoa(s.Counts.Completed), "HAYWARD_FAILED=" + strconv.Itoa(s.Counts.Failed),
		"HAYWARD_CANCELLED=" + strconv.Itoa(s.Counts.Cancelled), "HAYWARD_SKIPPED=" + strconv.Itoa(s.Counts.Skipped),
		"HAYWARD_SUMMARY=" + summary,
	}
}

// runHook runs one on_done to its end, its timeout or the end of ctx. At the
// latter two its whole process group is killed.
func runHook(ctx context.Context, timeout time.Duration, argv []string, dir string, env []string) HookResult {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	started := time.Now()
	output := &lastBytes{most: hookOutput}
	cmd := exec.CommandContext(limited, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, output, output
	// A group of its own: a Ctrl-C at the terminal is for the run to judge.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = hookDrain
	err := cmd.Run()
	h := HookResult{Command: argv, DurationMS: time.Since(started).Milliseconds(), Output: output.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		h.Error = "killed: the run was interrupted"
	case limited.Err() != nil:
		h.Error = fmt.Sprintf("killed: it took longer than %v", timeout)
	case errors.Is(err, exec.ErrWaitDelay):
		h.Error = "what it started in the background holds its output open"
	case err != nil && !errors.As(err, &exit):
		h.Error = err.Error()
	}
	if state := cmd.ProcessState; state != nil {
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			h.Signal = unix.SignalName(status.Signal())
		} else if code := state.ExitCode(); code >= 0 {
			h.ExitCode = &code
		}
	}
	return h
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	most int
	kept []byte
}

func (b *lastBytes) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p...)
	if over := len(b.kept) - b.most; over > 0 {
		b.kept = append(b.kept[:0], b.kept[over:]...)
	}
	return len(p), nil
}

func (b *lastBytes) String() string {
	return strings.ToValidUTF8(string(bytes.TrimSpace(b.kept)), "\ufffd")
}
