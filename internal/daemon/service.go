package daemon

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/crashpoint"
	"github.com/hayward-dev/hayward/internal/lograte"
	"github.com/hayward-dev/hayward/spawner"
)

// maxResolving bounds the spawns of clients whose paths are being checked at once: a
// hanging file system must not take the other events with it.
const maxResolving = 64

// service is the bus side of the coordinator: the six events as one micro
// service, beside it those for files and administration.
type service struct {
	nc      *nats.Conn
	replies replier
	coord   *coordinator.Coordinator
	files   *files
	admin   *admin
	callers *callers
	log     *zap.Logger
	// profiles is the path of the global sandbox.toml.
	profiles string
	// instruments count requests; nil counts nothing.
	instruments *instruments
	traces      *traces
	agents      spawner.Agents
	resumes     *resumes
	// hidden are the directories that no subagent reaches.
	hidden []string

	// lastUse is when a client last asked for anything, in Unix nanoseconds.
	lastUse atomic.Int64
	// resolving holds a token for each spawn of a client being resolved.
	resolving chan struct{}
	// untaken are the acknowledgements that were not taken.
	untaken lograte.Logger
	// ctx ends with the service; wg are the requests being worked on.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	services []micro.Service
	acks     *nats.Subscription
	// children takes the requests of subagents.
	children *rpc
}

func newService(nc *nats.Conn, coord *coordinator.Coordinator, f *files, a *admin, interested func(string) bool, log *zap.Logger) *service {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &service{
		nc: nc, replies: replier{nc, log}, coord: coord, files: f, admin: a, log: log,
		callers:   newCallers(interested, coord.Abandon),
		resolving: make(chan struct{}, maxResolving), ctx: ctx, cancel: cancel,
	}
	s.lastUse.Store(time.Now().UnixNano())
	return s
}

// start registers every endpoint.
func (s *service) start() error {
	s.wg.Go(func() { s.callers.run(s.ctx) })
	main, err := micro.AddService(s.nc, micro.Config{
		Name:        events.ServiceName,
		Version:     events.ServiceVersion,
		Description: "Runs subagents as sandboxed child processes.",
	})
	if err != nil {
		return events.Errorf(events.CodeInternal, events.LayerCoordinator, "register the service: %w", err)
	}
	s.services = append(s.services, main)
	for _, kind := range events.Kinds {
		request, reply := events.Schema(kind)
		err := main.AddEndpoint(string(kind), micro.HandlerFunc(func(r micro.Request) { s.onEvent(kind, r) }),
			micro.WithEndpointSubject(events.RequestSubject(kind)),
			micro.WithEndpointMetadata(map[string]string{"request_schema": string(request), "response_schema": string(reply)}))
		if err != nil {
			return events.Errorf(events.CodeInternal, events.LayerCoordinator, "register %s: %w", kind, err)
		}
	}
	if err := s.addServices(); err != nil {
		return err
	}
	s.acks, err = s.nc.Subscribe(events.AckPrefix+".*", func(m *nats.Msg) { s.onAck("", m.Subject[len(events.AckPrefix)+1:]) })
	if err != nil {
		return events.Errorf(events.CodeInternal, events.LayerCoordinator, "subscribe to acknowledgements: %w", err)
	}
	s.children = newRPC(s, s.files.root)
	return s.children.start()
}

// addServices registers the services for files and administration.
func (s *service) addServices() error {
	type endpoint struct {
		name   string
		handle func(context.Context, []byte) (any, *events.Error)
	}
	for _, svc := range []struct {
		name, description string
		subject           func(string) string
		endpoints         []endpoint
	}{
		{events.FilesServiceName, "What subagents wrote, and their stdin.", events.FilesSubject, []endpoint{
			{events.FilesLogs, s.files.logs},
			{events.FilesTranscript, s.files.transcript},
			{events.FilesInspect, s.files.inspect},
			{events.FilesStdin, s.files.stdin},
		}},
		{events.AdminServiceName, "The coordinator itself.", events.AdminSubject, []endpoint{
			{events.AdminStatus, s.admin.status},
			{events.AdminShutdown, s.admin.shutdown},
			{events.AdminRemove, s.admin.remove},
			{events.AdminPrune, s.admin.prune},
		}},
	} {
		m, err := micro.AddService(s.nc, micro.Config{Name: svc.name, Version: events.ServiceVersion, Description: svc.description})
		if err != nil {
			return events.Errorf(events.CodeInternal, events.LayerCoordinator, "register %s: %w", svc.name, err)
		}
		s.services = append(s.services, m)
		for _, e := range svc.endpoints {
			err := m.AddEndpoint(e.name, micro.HandlerFunc(func(r micro.Request) { s.work(r, e.handle) }),
				micro.WithEndpointSubject(svc.subject(e.name)))
			if err != nil {
				return events.Errorf(events.CodeInternal, events.LayerCoordinator, "register %s.%s: %w", svc.name, e.name, err)
			}
		}
	}
	return nil
}

// onAck takes the acknowledgement of a reply, by a subagent or a client. One that
// comes after the daemon was told to leave is no fault: the next one hands the
// completion out again.
func (s *service) onAck(by, token string) {
	if err := s.coord.AckBy(by, token); err != nil {
		level := zap.WarnLevel
		if err.Code == events.CodeShuttingDown {
			level = zap.InfoLevel
		}
		say := func(line string, fields ...zap.Field) { s.log.Log(level, line, fields...) }
		s.untaken.Log(say, "acknowledgement not taken, the end stays unread", zap.Error(err))
	}
	crashpoint.Hit(crashpoint.AckTaken)
}

// onEvent decodes, submits and returns; the coordinator answers.
func (s *service) onEvent(kind events.Kind, r micro.Request) {
	s.lastUse.Store(time.Now().UnixNano())
	reply, ok := s.replies.to(r.Reply())
	if !ok {
		s.log.Warn("request with a foreign reply subject dropped", zap.String("event", string(kind)))
		return
	}
	reply.asked = s.instruments.asks(kind)
	event, err := events.DecodeRequest(kind, r.Data())
	if err != nil {
		reply.fail(err)
		return
	}
	reply.asked.of(event)
	spawn, isSpawn := event.(events.Spawn)
	if !isSpawn {
		s.submit(coordinator.Request{Event: event, Responder: reply})
		return
	}
	if err := beginResolving(s.resolving); err != nil {
		reply.fail(err)
		return
	}
	traced := s.traces.begin(r.Headers())
	s.wg.Go(func() {
		defer func() { <-s.resolving }()
		if settle := s.admin.opts.Settle; settle != nil {
			if err := settle(&spawn); err != nil {
				reply.fail(err)
				return
			}
		}
		request, err := s.resolve(spawn)
		if err != nil {
			reply.fail(err)
			return
		}
		request.Trace, request.Responder = traced, reply
		if asked, is := request.Event.(events.Spawn); is && !asked.RunInBackground {
			request.Responder = s.callers.watch(reply)
		}
		s.submit(request)
	})
}

// resolve fills in what a spawn leaves open and refuses what cannot start.
func (s *service) resolve(spawn events.Spawn) (coordinator.Request, *events.Error) {
	spawn, resumed, err := s.resumes.settle(s.ctx, spawn)
	if err != nil {
		return coordinator.Request{}, err
	}
	spawn, agent, err := s.agents.Resolve(spawn)
	if err == nil {
		err = resumed.check(agent)
	}
	if err == nil {
		spawn, err = spawner.Resolve(s.ctx, spawn, agent, s.profiles)
	}
	if err == nil {
		err = spawner.CheckHost(spawn.ID)
	}
	return coordinator.Request{
		Event: spawn, Agent: agent, Spawns: spawner.Spawns(spawn, agent), Resume: resumed.source,
		Warnings: append(resumed.warnings, s.agents.Doubts(spawn)...),
	}, err
}

// beginResolving takes one of the tokens, or refuses: what is not checked yet is
// neither valid nor invalid.
func beginResolving(tokens chan struct{}) *events.Error {
	select {
	case tokens <- struct{}{}:
		return nil
	default:
		return events.Errorf(events.CodeBusy, events.LayerCoordinator, "spawn: %d spawns are being checked already", cap(tokens)).
			WithRemedy("ask again in a moment").WithDetail("depth", strconv.Itoa(len(tokens)))
	}
}

// submit asks in the name of a client.
func (s *service) submit(r coordinator.Request) {
	r.Caller = coordinator.Caller{Principal: "client"}
	if err := s.coord.Submit(r); err != nil {
		r.Responder.Answer(coordinator.Answer{Error: err})
	}
}

// work answers a request that may take its time in a goroutine of its own.
func (s *service) work(r micro.Request, handle func(context.Context, []byte) (any, *events.Error)) {
	s.lastUse.Store(time.Now().UnixNano())
	reply, ok := s.replies.to(r.Reply())
	if !ok {
		s.log.Warn("request with a foreign reply subject dropped", zap.String("subject", r.Subject()))
		return
	}
	data := r.Data()
	s.wg.Go(func() {
		value, err := handle(s.ctx, data)
		reply.Answer(coordinator.Answer{Reply: value, Error: err})
	})
}

// stop takes no more requests and waits for those being worked on.
func (s *service) stop(cause error) {
	for _, m := range s.services {
		if err := m.Stop(); err != nil {
			s.log.Warn("service not stopped", zap.Error(err))
		}
	}
	s.children.stop()
	s.cancel(cause)
	s.wg.Wait()
	// The last answers are with the server before the connection goes.
	if err := s.nc.FlushTimeout(closeTimeout); err != nil {
		s.log.Warn("last answers not flushed", zap.Error(err))
	}
}
