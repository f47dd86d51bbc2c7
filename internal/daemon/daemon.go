package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/gateway"
	"github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/childbin"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/deadlines"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/internal/store"
	"github.com/hayward-dev/hayward/internal/tempdir"
	"github.com/hayward-dev/hayward/internal/tracing"
	"github.com/hayward-dev/hayward/sandbox"
	"github.com/hayward-dev/hayward/spawner"
)

// Why Run returned.
var (
	// ErrShutdown: a client asked for it.
	ErrShutdown = errors.New("shutdown was asked for")
	// ErrIdle: nobody needed the daemon any more.
	ErrIdle = errors.New("idle")
)

// Run serves one coordinator until ctx ends, a client shuts it down, it is idle,
// or something it cannot work without fails. It returns nil for the first
// three. Every child has ended or, at a handover, was left running.
func Run(ctx context.Context, o Options) error {
	d, err := open(ctx, o)
	if err != nil {
		return err
	}
	return d.serve(ctx)
}

// daemon is everything that one Run owns, in the order in which it was made.
type daemon struct {
	opts Options
	// deadlines are those of opts, none of them zero.
	deadlines deadlines.Set
	log       *zap.Logger
	ctx       context.Context
	leave     context.CancelCauseFunc

	undo     []func()
	store    *store.Store
	bus      *bus.Server
	coord    *coordinator.Coordinator
	spawner  *spawner.Spawner
	gateway  *gateway.Gateway
	service  *service
	observed observed
	left     coordinator.Restore
	handover bool
	// stopped tells that Options.Stopping was called.
	stopped bool
}

// open takes everything up to, and without, the clients' socket.
func open(ctx context.Context, o Options) (_ *daemon, err error) {
	d := &daemon{opts: o, deadlines: o.Deadlines.WithDefaults(), log: o.Log}
	if d.log == nil {
		d.log = zap.NewNop()
	}
	d.ctx, d.leave = context.WithCancelCause(context.WithoutCancel(ctx))
	d.onClose(func() { d.leave(nil) })
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if err := d.openState(ctx); err != nil {
		return nil, err
	}
	if err := d.wire(); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *daemon) onClose(f func()) { d.undo = append(d.undo, f) }

func (d *daemon) close() {
	for i := len(d.undo) - 1; i >= 0; i-- {
		d.undo[i]()
	}
	d.undo = nil
}

// openState locks the state directory, starts the bus without a listener and
// loads the records.
func (d *daemon) openState(ctx context.Context) error {
	p := d.opts.Paths
	for _, dir := range []string{p.State, p.Runtime, p.Bus(), p.Subagents(), p.Bin(), p.Cache} {
		if err := privateDir(dir); err != nil {
			return err
		}
	}
	lock, err := lockState(ctx, p.Lock())
	if err != nil {
		return err
	}
	d.onClose(func() { lock.Close() })

	d.bus, err = bus.Start(ctx, bus.Options{
		StoreDir: p.Store(), SyncAlways: d.opts.SyncAlways, TCP: d.opts.TCP,
		WriteDeadline: d.deadlines.BusWrite, Log: d.log.Named("bus"),
	})
	if err != nil {
		return fmt.Errorf("start the bus: %w", err)
	}
	d.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := d.bus.Shutdown(ctx); err != nil {
			d.log.Error("bus not shut down", zap.Error(err))
		}
	})
	nc, err := d.bus.Conn("store")
	if err != nil {
		return fmt.Errorf("connect to the own bus: %w", err)
	}
	d.onClose(nc.Close)
	root, err := rundir.Open(p.Subagents())
	if err != nil {
		return fmt.Errorf("open the run directories: %w", err)
	}
	d.onClose(func() { root.Close() })
	options := []store.Option{store.WithBackend(d.bus), store.WithWriteTimeout(d.deadlines.Put)}
	if !d.opts.SyncAlways {
		options = append(options, store.WithDeferredSync())
	}
	d.store, err = store.Open(ctx, nc, root, d.log.Named("store"), options...)
	if err != nil {
		return err
	}
	if !d.opts.SyncAlways {
		d.onClose(d.syncEvery(bus.DefaultSyncInterval, d.store.Sync))
	}
	return nil
}

// closeTimeout bounds the orderly end of each part.
const closeTimeout = 10 * time.Second

// privateDir makes a directory that only this user may enter. One that is there
// may be read by others, but must not be changed by them: they could replace
// what we trust in it.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "make %s: %w", dir, err).
			WithRemedy("HAYWARD_STATE_DIR and HAYWARD_RUNTIME_DIR name other places")
	}
	st, err := os.Stat(dir)
	if err != nil {
		return events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "look at %s: %w", dir, err)
	}
	owner := -1
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		owner = int(sys.Uid)
	}
	if owner != os.Geteuid() || st.Mode().Perm()&0o022 != 0 {
		return events.Errorf(events.CodeForbidden, events.LayerPermission,
			"%s can be changed by other users (mode %04o, owner %d)", dir, st.Mode().Perm(), owner).
			WithRemedy("chmod 700 it, or name another place with HAYWARD_STATE_DIR and HAYWARD_RUNTIME_DIR")
	}
	return nil
}

// wire makes the parts and introduces them to each other.
func (d *daemon) wire() error {
	p := d.opts.Paths
	nc, err := d.bus.Conn("coordinator")
	if err != nil {
		return fmt.Errorf("connect to the own bus: %w", err)
	}
	d.onClose(nc.Close)
	binary, err := childbin.Install(p.Bin())
	if err != nil {
		return fmt.Errorf("install hayward-child: %w", err)
	}
	busDir, err := os.OpenFile(p.Bus(), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("open the children's socket directory: %w", err)
	}
	d.onClose(func() { busDir.Close() })
	root, err := rundir.Open(p.Subagents())
	if err != nil {
		return fmt.Errorf("open the run directories: %w", err)
	}
	d.onClose(func() { root.Close() })
	temp, err := tempdir.Root()
	if err != nil {
		return fmt.Errorf("find the root of the temporary directories: %w", err)
	}
	// What does not exist cannot be kept from being made by a child.
	if err := os.MkdirAll(p.Config, 0o700); err != nil {
		d.log.Warn("configuration directory not made", zap.Error(err))
	}
	home := "/"
	if u, err := user.Current(); err == nil {
		home = u.HomeDir
	}

	if err := d.prepareObserved(); err != nil {
		return err
	}
	trees, err := d.openWorktrees()
	if err != nil {
		return err
	}
	track := newTracker(d.deadlines.HeartbeatLost, d.log.Named("tracker"))
	control := controller{nc}
	f := &files{root: root, usage: func(id string) (own, tree events.Usage) { return d.gateway.Shown(id) }, tracker: track, control: control, ask: d.ask, askAs: d.askAs}
	f.lookup = func(ctx context.Context, session, ref string) (events.Record, *events.Error) {
		return d.coord.Lookup(ctx, session, ref)
	}
	obs := &observer{tracker: track, traces: d.observed.traces}
	if err := d.openGateway(root); err != nil {
		return err
	}
	f.cost = d.gateway.CostSoFar
	hidden := []string{p.State, p.Runtime, trees.Root.Path()}
	d.spawner = spawner.New(spawner.Config{
		Root: root, ChildBinary: binary, Bus: busDir, BusPath: p.Bus(),
		Hidden:    hidden,
		CacheRoot: p.Cache, Support: sandbox.Probe(), Deadlines: d.deadlines,
		Home: home, TempRoot: temp, ModelCost: d.gateway.Settle,
		Profiles: p.Profiles(), Protected: []string{p.Config}, Secrets: d.secrets(),
		ModelCredential: d.gateway.Credential, ModelUsage: d.gateway.Forget,
		Exited:    func(ctx context.Context, id string, run int) (int, error) { return d.coord.Exited(ctx, id, run) },
		Program:   program(),
		Worktrees: trees,
		Audit:     d.openAudit(), Credentials: d.bus, Controller: control, Observer: obs, Log: d.log.Named("spawner"),
	})
	d.onClose(d.spawner.Close)

	d.coord = coordinator.New(coordinator.Config{
		Limits: d.opts.Limits, Retention: d.opts.Retention, StartDeadline: d.deadlines.Start,
		WorktreeDeadline: d.opts.Worktrees.worktreeDeadline(), Grace: d.deadlines.Grace, KillProof: d.deadlines.KillProof,
		MaxRuntime: d.deadlines.Run, MaxMemory: d.opts.MaxMemory, PutDeadline: d.deadlines.Put, AckDeadline: d.deadlines.Lease, CancelReply: d.deadlines.CancelReply,
	}, coordinator.Deps{
		Journal: d.observed.stages, Spawner: releases{d.spawner, d.observed.traces}, Publisher: publisher{d.store, track}, Files: f, Log: d.log.Named("coordinator"),
	})
	obs.Coordinator = d.coord

	loaded, err := d.store.Load(d.ctx)
	if err != nil {
		return err
	}
	for _, name := range append(loaded.Damaged, loaded.Recovered...) {
		d.log.Warn("record damaged or recovered", zap.String(map[bool]string{true: "id", false: "what"}[events.ValidID(name)], name))
	}
	for _, s := range loaded.Records {
		if s.Record.Live() && s.Record.Process == nil {
			d.spawner.Clear(s.Record.ID)
		}
		if s.Record.Live() && s.Record.TokenHash != "" {
			d.bus.Grant(s.Record.ID, s.Record.TokenHash)
			track.begin(s.Record.ID)
		}
	}
	if err := track.subscribe(nc); err != nil {
		return fmt.Errorf("subscribe to the children: %w", err)
	}
	d.restoreUsage(loaded.Records)
	d.observed.stages.restore(loaded.Records)
	d.sweepBinaries(binary, loaded.Records)
	d.left = coordinator.Restore{Stored: loaded.Records, Gates: loaded.Gates}
	d.service = newService(nc, d.coord, f, &admin{
		opts: d.opts, deadlines: d.deadlines, coord: d.coord, tracker: track, dropped: d.bus.Dropped,
		started: time.Now(), recovered: loaded.Recovered, damaged: loaded.Damaged,
		leave: func(handover bool) { d.handover = handover; d.leave(ErrShutdown) },
	}, d.bus.Interested, d.log.Named("service"))
	d.service.profiles = p.Profiles()
	d.service.agents = d.agents(home)
	d.service.hidden = hidden
	d.service.resumes = &resumes{root: root, trees: trees.Root, policy: d.opts.Resume, agents: d.service.agents, lookup: f.lookup}
	return d.observe(d.ctx, track)
}

// ask puts an event to the coordinator as a client would.
func (d *daemon) ask(ctx context.Context, e events.SubagentEvent) (any, *events.Error) {
	return d.askAs(ctx, "client", e)
}

// askAs puts an event to the coordinator as principal would.
func (d *daemon) askAs(ctx context.Context, principal string, e events.SubagentEvent) (any, *events.Error) {
	answer := make(responseChannel, 1)
	if err := d.coord.Submit(coordinator.Request{Caller: coordinator.Caller{Principal: principal}, Event: e, Responder: answer}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	select {
	case a := <-answer:
		return a.Reply, a.Error
	case <-ctx.Done():
		return nil, events.Errorf(events.CodeTimeout, events.LayerCoordinator, "%s: the coordinator did not answer: %w", e.EventKind(), ctx.Err())
	}
}

// responseChannel is a responder for questions from within; 1-buffered.
type responseChannel chan coordinator.Answer

// Answer implements [coordinator.Responder].
func (c responseChannel) Answer(a coordinator.Answer) { c <- a }

// observer passes on what happens to children, the tracker first: a child may
// report as soon as it is let go.
type observer struct {
	*coordinator.Coordinator
	tracker *tracker
	traces  *traces
}

// Forked implements [spawner.Observer].
func (o *observer) Forked(id string, run int, fork events.Fork) {
	o.tracker.begin(id)
	o.traces.mark(id, func(m *tracing.Marks, now time.Time) { m.Forked = now })
	o.Coordinator.Forked(id, run, fork)
}

// publisher tells the tracker of durable states before it publishes them.
type publisher struct {
	coordinator.Publisher
	tracker *tracker
}

// Publish implements [coordinator.Publisher].
func (p publisher) Publish(ctx context.Context, e events.FeedEvent) error {
	p.tracker.onFeed(e)
	err := p.Publisher.Publish(ctx, e)
	crashpoint.Hit(crashpoint.FeedPublished)
	return err
}
