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

// session is that of everything that is spawned here.
const session = "bench"

// instance is a coordinator that runs for a measurement, with a connection to it.
type instance struct {
	ctx     context.Context
	program string
	state   string
	work    string // the workspace of what is spawned
	daemon  *exec.Cmd
	c       *client.Client
	alone   int64 // PSS of the daemon in KiB, before anything lived in it
}

// start starts a coordinator on the state directory and connects to it.
func start(ctx context.Context, program, state string, flags ...string) (_ *instance, err error) {
	b := &instance{ctx: ctx, program: program, state: state, work: state + "-work"}
	if err := os.MkdirAll(b.work, 0o700); err != nil {
		return nil, err
	}
	if _, err := b.serve(flags...); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	p, err := paths.FromEnvironment(func(name string) string {
		if name == "HAYWARD_STATE_DIR" {
			return state
		}
		return os.Getenv(name)
	})
	if err == nil {
		b.c, err = client.Connect(ctx, client.Options{Socket: p.ClientSocket(), TokenFile: p.ClientToken()})
	}
	if err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

// serve starts the daemon and returns how long it took until it was ready.
func (b *instance) serve(flags ...string) (time.Duration, error) {
	ready, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer ready.Close()
	b.daemon = exec.CommandContext(b.ctx, b.program, append([]string{"serve", "--ready-fd", "3", "--log-level", "error"}, flags...)...)
	b.daemon.Cancel = func() error { return b.daemon.Process.Signal(os.Interrupt) }
	b.daemon.Env, b.daemon.Stderr, b.daemon.ExtraFiles = b.environ(), os.Stderr, []*os.File{w}
	began := time.Now()
	err = b.daemon.Start()
	w.Close() // it is the daemon's now
	if err != nil {
		return 0, fmt.Errorf("start the daemon: %w", err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		return 0, fmt.Errorf("the daemon is not ready: %w", err)
	}
	return time.Since(began), nil
}

// environ reaches this coordinator.
func (b *instance) environ() []string { return append(os.Environ(), "HAYWARD_STATE_DIR="+b.state) }

// stop ends the daemon and its subagents.
func (b *instance) stop() error {
	var errs []error
	if b.c != nil {
		errs = append(errs, b.c.Close())
	}
	if b.daemon != nil && b.daemon.Process != nil {
		errs = append(errs, b.daemon.Process.Signal(os.Interrupt), b.daemon.Wait())
	}
	b.c, b.daemon = nil, nil
	return errors.Join(errs...)
}

// spawn takes /bin/true from the request to its end, as told to the client.
func (b *instance) spawn(profile string) measure {
	return func() (time.Duration, error) {
		began := time.Now()
		reply, err := b.c.Spawn(b.ctx, events.Spawn{
			ParentSessionID: session, Command: []string{"/bin/true"}, Cwd: b.work, Workspace: b.work, Sandbox: profile,
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

// query asks for one subagent that has ended.
func (b *instance) query(id string) measure {
	return func() (time.Duration, error) {
		began := time.Now()
		reply, err := b.c.Query(b.ctx, events.Query{IDs: []string{id}})
		took := time.Since(began)
		if err == nil && len(reply.Value.Snapshots) != 1 {
			err = fmt.Errorf("%s is unknown", id)
		}
		return took, err
	}
}

// list asks for the first entries of what lives.
func (b *instance) list(entries int) measure {
	return func() (time.Duration, error) {
		began := time.Now()
		reply, err := b.c.ListActive(b.ctx, events.ListActive{Max: entries})
		took := time.Since(began)
		if err == nil && len(reply.Value.Subagents) != entries {
			err = fmt.Errorf("a page has %d entries instead of %d", len(reply.Value.Subagents), entries)
		}
		return took, err
	}
}

// ping asks the service framework of the coordinator for its name: a request on
// the same connection that reaches neither the drain loop nor the store.
func (b *instance) ping() (time.Duration, error) {
	began := time.Now()
	_, err := b.c.Conn().RequestWithContext(b.ctx, "$SRV.PING.hayward", nil)
	return time.Since(began), err
}

// anEnd is the id of a subagent that has ended and was read.
func (b *instance) anEnd() (string, error) {
	reply, err := b.c.Spawn(b.ctx, events.Spawn{ParentSessionID: session, Command: []string{"/bin/true"}, Cwd: b.work, Workspace: b.work})
	if err != nil {
		return "", err
	}
	return reply.Value.SubagentID, reply.Ack(b.ctx)
}

// emptyProgram is the floor of a start: a Go program that does nothing.
const emptyProgram = "package main\n\nfunc main() {}\n"

// empty starts the program that does nothing and waits for it.
type empty string

func buildEmpty(ctx context.Context, dir string) (empty, error) {
	source, path := filepath.Join(dir, "empty.go"), filepath.Join(dir, "empty")
	if err := os.WriteFile(source, []byte(emptyProgram), 0o600); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the empty program: %w: %s", err, out)
	}
	return empty(path), nil
}

func (e empty) run() (time.Duration, error) { return toEnd(string(e))() }

// toEnd starts a program without an environment and waits for it.
func toEnd(argv ...string) measure {
	return func() (time.Duration, error) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return 0, err
		}
		defer null.Close()
		began := time.Now()
		p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Env: []string{}, Files: []*os.File{null, null, null}})
		if err != nil {
			return 0, err
		}
		state, err := p.Wait()
		took := time.Since(began)
		if err == nil && !state.Success() {
			err = fmt.Errorf("%v: %v", argv, state)
		}
		return took, err
	}
}
