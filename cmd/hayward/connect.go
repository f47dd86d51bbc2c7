package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/paths"
)

const (
	// startTimeout bounds the start of a daemon, in the background or in process.
	startTimeout = 20 * time.Second
	// leaveTimeout bounds the end of a daemon in process: its children's grace and
	// proof of end are within.
	leaveTimeout = 90 * time.Second
)

// connection is a client and how to let go of it.
type connection struct {
	*client.Client
	close func() error
}

// done closes the connection; the first error leads.
func (c *connection) done(err error) error { return errors.Join(err, c.close()) }

// connect reaches the daemon, starting one when there is none.
func (a *app) connect(ctx context.Context) (*connection, error) {
	p, err := a.paths()
	if err != nil {
		return nil, err
	}
	o := a.clientOptions(p)
	inside := a.inside()
	if o.Inside == "" && inside == "" { // a daemon that is started in there would end with the subagent
		o.Revive = func(ctx context.Context) error { return a.startDaemon(ctx, p) }
	}
	c, err := client.Connect(ctx, o)
	if err != nil && inside != "" && o.Inside == "" {
		return nil, insideError(inside, err)
	}
	if err != nil {
		return nil, err
	}
	return &connection{c, c.Close}, nil
}

// connectIfRunning reaches the daemon that runs. There is none when the error
// has code unreachable.
func (a *app) connectIfRunning(ctx context.Context) (*connection, error) {
	p, err := a.paths()
	if err != nil {
		return nil, err
	}
	c, err := client.Connect(ctx, a.clientOptions(p))
	if err != nil {
		return nil, err
	}
	return &connection{c, c.Close}, nil
}

func (a *app) clientOptions(p paths.Paths) client.Options {
	o := client.Options{
		Socket: p.ClientSocket(), TokenFile: p.ClientToken(), Environ: a.environ,
		Name: fmt.Sprintf("hayward-cli-%d", os.Getpid()),
	}
	if id, socket := client.Inside(a.getenv); id != "" {
		o.Inside, o.Socket = id, socket
	}
	return o
}

// connectInProcess runs a daemon of its own in this process, with a state that
// is gone afterwards. Closing the connection ends its subagents first.
func (a *app) connectInProcess(ctx context.Context) (*connection, error) {
	p, err := a.paths()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hayward-")
	if err != nil {
		return nil, events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "make a state directory: %w", err)
	}
	p.State, p.Runtime = filepath.Join(dir, "state"), filepath.Join(dir, "run")
	for _, d := range []string{p.State, p.Runtime} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("make a state directory: %w", err), os.RemoveAll(dir))
		}
	}

	o := a.daemonOptions()
	ready, ended := make(chan struct{}), make(chan error, 1)
	o.Paths, o.Log, o.Ready = p, a.inProcessLog(), func() { close(ready) }
	daemonCtx, leave := context.WithCancel(context.WithoutCancel(ctx))
	go func() { ended <- runDaemon(daemonCtx, o) }()
	// stop ends the daemon, unless it has ended by itself with an error.
	stop := func(err error) error {
		leave()
		if err == nil {
			timer := time.NewTimer(leaveTimeout)
			defer timer.Stop()
			select {
			case err = <-ended:
			case <-timer.C:
				return events.Errorf(events.CodeTimeout, events.LayerCoordinator, "the daemon in this process did not leave within %v; its state is in %s", leaveTimeout, dir)
			}
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-ready:
	case err := <-ended:
		if err == nil {
			err = errors.New("the daemon in this process left before it was ready")
		}
		return nil, stop(err)
	case <-timer.C:
		late := events.Errorf(events.CodeTimeout, events.LayerCoordinator, "the daemon in this process was not ready within %v", startTimeout)
		return nil, errors.Join(late, stop(nil))
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), stop(nil))
	}
	c, err := client.Connect(ctx, a.clientOptions(p))
	if err != nil {
		return nil, errors.Join(err, stop(nil))
	}
	return &connection{c, func() error { return errors.Join(c.Close(), stop(nil)) }}, nil
}

// reach is connect, or connectInProcess with --no-daemon.
func (a *app) reach(ctx context.Context, noDaemon bool) (*connection, error) {
	if noDaemon {
		return a.connectInProcess(ctx)
	}
	return a.connect(ctx)
}
