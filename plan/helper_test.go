package plan

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// The tests of what happens to a real process run this test binary again as the
// verb, on a runner that starts real commands without a coordinator.
const (
	helperVariable = "HAYWARD_PLAN_TEST_HELPER"
	// helperPlan names the plan file, helperDir where commands' output and the
	// verb's exit code go.
	helperPlan = "HAYWARD_PLAN_TEST_FILE"
	helperDir  = "HAYWARD_PLAN_TEST_DIR"
)

func helper() int {
	dir := os.Getenv(helperDir)
	r := &localRunner{dir: dir, jobs: make(map[string]*localJob)}
	code := Command(context.Background(), Flags{
		Path: os.Getenv(helperPlan), Env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")},
	}, connectTo(r), Stdio{os.Stdout, os.Stderr})
	r.all.Wait()
	if err := os.WriteFile(filepath.Join(dir, "exit"), fmt.Append(nil, code), 0o600); err != nil {
		return 99
	}
	return code
}

// localRunner starts each subagent as a process group of this process.
type localRunner struct {
	dir string
	all sync.WaitGroup

	mu   sync.Mutex
	jobs map[string]*localJob // guarded by mu
}

type localJob struct {
	spawn   events.Spawn
	command *exec.Cmd
	started time.Time
	done    chan struct{}
	// What follows is written before done is closed.
	ended     time.Time
	code      int
	cancelled bool
}

func (r *localRunner) output(id string) string { return filepath.Join(r.dir, id+".stdout") }

func (r *localRunner) Spawn(_ context.Context, s events.Spawn) (events.SpawnReply, error) {
	if err := s.Validate(); err != nil {
		return events.SpawnReply{}, err
	}
	stdout, err := os.OpenFile(r.output(s.ID), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return events.SpawnReply{}, events.Errorf(events.CodeStartFailed, events.LayerGate, "spawn: %w", err)
	}
	defer stdout.Close()
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Cwd, stdout, stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for k, v := range s.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	for name, id := range s.Inputs {
		cmd.Env = append(cmd.Env, "HAYWARD_INPUT_"+name+"="+r.output(id))
	}
	if err := cmd.Start(); err != nil {
		return events.SpawnReply{}, events.Errorf(events.CodeStartFailed, events.LayerGate, "spawn: %w", err)
	}
	j := &localJob{spawn: s, command: cmd, started: time.Now(), done: make(chan struct{})}
	r.mu.Lock()
	r.jobs[s.ID] = j
	r.mu.Unlock()
	r.all.Go(func() {
		// A failure is in the exit code.
		_ = cmd.Wait()
		r.mu.Lock()
		j.ended, j.code = time.Now(), cmd.ProcessState.ExitCode()
		r.mu.Unlock()
		close(j.done)
	})
	return events.SpawnReply{Accepted: true, Backgrounded: true}, nil
}

func (r *localRunner) snapshot(j *localJob) events.Snapshot {
	s := events.Snapshot{
		SubagentID: j.spawn.ID, Name: j.spawn.Name, State: events.StateActive, Status: events.StatusRunning,
		StartedAt: &j.started, Progress: &events.Progress{LastLine: fmt.Sprintf("pid %d", j.command.Process.Pid)},
	}
	if j.ended.IsZero() {
		return s
	}
	s.State, s.EndedAt, s.DurationMS = events.StateCompleted, &j.ended, j.ended.Sub(j.started).Milliseconds()
	s.Output.Path = r.output(j.spawn.ID)
	switch {
	case j.cancelled:
		s.Status, s.Reason = events.StatusCancelled, events.ReasonUser
	case j.code == 0:
		s.Status, s.ExitCode = events.StatusCompleted, &j.code
	default:
		s.Status, s.Reason, s.ExitCode = events.StatusFailed, events.ReasonExit, &j.code
	}
	return s
}

func (r *localRunner) Query(ctx context.Context, q events.Query) (events.QueryReply, error) {
	var reply events.QueryReply
	for _, id := range q.IDs {
		r.mu.Lock()
		j := r.jobs[id]
		r.mu.Unlock()
		if j == nil {
			reply.Unknown = append(reply.Unknown, id)
			continue
		}
		if q.Block {
			select {
			case <-j.done:
			case <-ctx.Done():
				return reply, ctx.Err()
			}
		}
		r.mu.Lock()
		reply.Snapshots = append(reply.Snapshots, r.snapshot(j))
		r.mu.Unlock()
	}
	return reply, nil
}

func (r *localRunner) Cancel(ctx context.Context, c events.Cancel) (events.CancelReply, error) {
	signal := syscall.SIGTERM
	if c.Kill {
		signal = syscall.SIGKILL
	}
	r.mu.Lock()
	var live []*localJob
	for _, j := range r.jobs {
		if j.ended.IsZero() {
			j.cancelled = true
			live = append(live, j)
			// The group may have ended since; then there is nothing to signal.
			_ = syscall.Kill(-j.command.Process.Pid, signal)
		}
	}
	r.mu.Unlock()
	for _, j := range live {
		select {
		case <-j.done:
		case <-ctx.Done():
			return events.CancelReply{}, ctx.Err()
		}
	}
	return events.CancelReply{}, nil
}

func (r *localRunner) Logs(_ context.Context, q events.FileRequest) (events.FileReply, error) {
	file, err := os.Open(r.output(q.ID))
	if err != nil {
		return events.FileReply{}, events.Errorf(events.CodeUnknownID, events.LayerGate, "logs: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return events.FileReply{}, events.Errorf(events.CodeInternal, events.LayerGate, "logs: %w", err)
	}
	data := make([]byte, events.MaxChunk)
	n, err := file.ReadAt(data, q.Offset)
	if err != nil && err != io.EOF {
		return events.FileReply{}, events.Errorf(events.CodeInternal, events.LayerGate, "logs: %w", err)
	}
	next := q.Offset + int64(n)
	return events.FileReply{SubagentID: q.ID, Data: data[:n], Offset: q.Offset, Next: next, Size: info.Size(), EOF: next == info.Size()}, nil
}
