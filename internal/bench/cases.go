package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/paths"
)

// bench is a coordinator of its own and what is measured against it.
type bench struct {
	ctx     context.Context
	dir     string
	work    string // the workspace of what is spawned
	program string // hayward
	empty   string // a Go program that does nothing
	daemon  *exec.Cmd
	c       *client.Client
}

// emptyProgram is the floor of a start: a Go program that does nothing.
const emptyProgram = "package main\n\nfunc main() {}\n"

func open(ctx context.Context, program string, serveFlags ...string) (_ *bench, err error) {
	b := &bench{ctx: ctx, program: program}
	if b.dir, err = os.MkdirTemp("", "hayward-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	b.work = filepath.Join(b.dir, "work")
	if err := os.Mkdir(b.work, 0o700); err != nil {
		return nil, err
	}
	if err := b.buildEmpty(); err != nil {
		return nil, err
	}
	state := filepath.Join(b.dir, "state")
	env := append(os.Environ(), "HAYWARD_STATE_DIR="+state)
	ready, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	b.daemon = exec.CommandContext(ctx, program, append([]string{"serve", "--ready-fd", "3", "--log-level", "error"}, serveFlags...)...)
	b.daemon.Cancel = func() error { return b.daemon.Process.Signal(os.Interrupt) }
	b.daemon.Env, b.daemon.Stderr, b.daemon.ExtraFiles = env, os.Stderr, []*os.File{w}
	err = b.daemon.Start()
	w.Close() // it is the daemon's now
	if err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		return nil, fmt.Errorf("the daemon is not ready: %w", err)
	}
	p, err := paths.FromEnvironment(func(name string) string {
		if name == "HAYWARD_STATE_DIR" {
			return state
		}
		return os.Getenv(name)
	})
	if err != nil {
		return nil, err
	}
	b.c, err = client.Connect(ctx, client.Options{Socket: p.ClientSocket(), TokenFile: p.ClientToken()})
	return b, err
}

func (b *bench) buildEmpty() error {
	source := filepath.Join(b.dir, "empty.go")
	b.empty = filepath.Join(b.dir, "empty")
	if err := os.WriteFile(source, []byte(emptyProgram), 0o600); err != nil {
		return err
	}
	out, err := exec.CommandContext(b.ctx, "go", "build", "-o", b.empty, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the empty program: %w: %s", err, out)
	}
	return nil
}

func (b *bench) close() error {
	var errs []error
	if b.c != nil {
		errs = append(errs, b.c.Close())
	}
	if b.daemon != nil && b.daemon.Process != nil {
		errs = append(errs, b.daemon.Process.Signal(os.Interrupt), b.daemon.Wait())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// spawn takes /bin/true from the request to its end, as told to the client.
func (b *bench) spawn(profile string) measure {
	return func() (time.Duration, error) {
		began := time.Now()
		reply, err := b.c.Spawn(b.ctx, events.Spawn{
			ParentSessionID: "bench", Command: []string{"/bin/true"}, Cwd: b.work, Workspace: b.work, Sandbox: profile,
		})
		took := time.Since(began)
		if err != nil {
			return took, err
		}
		if reply.Value.Status != events.StatusCompleted {
			return took, fmt.Errorf("%s ended as %s: %w", reply.Value.SubagentID, reply.Value.Status, reply.Value.Error)
		}
		return took, reply.Ack(b.ctx)
	}
}

// start starts the empty program and waits for it.
func (b *bench) start() (time.Duration, error) {
	began := time.Now()
	p, err := os.StartProcess(b.empty, []string{b.empty}, &os.ProcAttr{Env: []string{}})
	if err != nil {
		return 0, err
	}
	_, err = p.Wait()
	return time.Since(began), err
}

// query asks for one subagent that has ended.
func (b *bench) query(id string) measure {
	return func() (time.Duration, error) {
		began := time.Now()
		reply, err := b.c.Query(b.ctx, events.Query{ParentSessionID: "bench", IDs: []string{id}})
		took := time.Since(began)
		if err == nil && len(reply.Value.Snapshots) != 1 {
			err = fmt.Errorf("%s is unknown", id)
		}
		return took, err
	}
}

// ping asks the service framework of the coordinator for its name: a request on
// the same connection that reaches neither the drain loop nor the store.
func (b *bench) ping() (time.Duration, error) {
	began := time.Now()
	_, err := b.c.Conn().RequestWithContext(b.ctx, "$SRV.PING.hayward", nil)
	return time.Since(began), err
}

// anEnd is the id of a subagent that has ended and was read.
func (b *bench) anEnd() (string, error) {
	reply, err := b.c.Spawn(b.ctx, events.Spawn{ParentSessionID: "bench", Command: []string{"/bin/true"}, Cwd: b.work, Workspace: b.work})
	if err != nil {
		return "", err
	}
	return reply.Value.SubagentID, reply.Ack(b.ctx)
}
