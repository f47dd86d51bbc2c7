package daemon

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/bus"
	"github.com/hayward-dev/hayward/internal/lograte"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/spawner"
)

// rpc serves the requests that subagents send on their own subjects. Who asks is the
// id in the subject, on which the server lets nobody else publish.
type rpc struct {
	*service
	root rundir.Root
	sub  *nats.Subscription

	// foreign are the lines that a subagent can cause.
	foreign lograte.Logger

	// asks bounds the requests of each subagent, acks its acknowledgements.
	asks *childRequests
	acks *ackRates
}

func newRPC(s *service, root rundir.Root) *rpc {
	return &rpc{service: s, root: root, asks: newChildRequests(), acks: newAckRates()}
}

func (r *rpc) start() (err error) {
	r.sub, err = r.nc.Subscribe(events.RPCSubjects(), r.take)
	if err != nil {
		return events.Errorf(events.CodeInternal, events.LayerCoordinator, "subscribe to the requests of subagents: %w", err)
	}
	return nil
}

func (r *rpc) stop() {
	if r == nil || r.sub == nil {
		return
	}
	if err := r.sub.Unsubscribe(); err != nil {
		r.log.Warn("requests of subagents still subscribed", zap.Error(err))
	}
}

// take decodes, submits and returns; the coordinator answers.
func (r *rpc) take(m *nats.Msg) {
	id, request, ok := events.ParseRPC(m.Subject)
	if !ok {
		return
	}
	if token, isAck := strings.CutPrefix(request, events.RPCAck+"."); isAck {
		r.ackOf(id, token)
		return
	}
	if m.Reply != "" && !bus.ReplyAllowed(id, m.Reply) {
		r.foreign.Log(r.log.Warn, "request of a subagent with a foreign reply subject dropped", zap.String("id", id), zap.String("request", request))
		return
	}
	reply := responder{replier: r.replies, subject: m.Reply, ackSubject: func(token string) string { return events.RPCAckSubject(id, token) }}
	answer, err := r.asks.begin(id, reply)
	if err != nil {
		reply.fail(err)
		return
	}
	if request == events.RPCLogs {
		r.wg.Go(func() {
			value, err := r.files.within(id).logs(r.ctx, m.Data)
			answer.Answer(coordinator.Answer{Reply: value, Error: err})
		})
		return
	}
	event, err := events.DecodeChildRequest(events.Kind(request), id, m.Data)
	if err != nil {
		answer.Answer(coordinator.Answer{Error: err})
		return
	}
	spawn, isSpawn := event.(events.Spawn)
	if !isSpawn {
		r.submitFor(id, coordinator.Request{Event: event, Responder: answer})
		return
	}
	traced := r.traces.begin(micro.Headers(m.Header))
	r.wg.Go(func() {
		request, err := r.checked(id, spawn, answer.of)
		if err != nil {
			answer.Answer(coordinator.Answer{Error: err})
			return
		}
		request.Trace, request.Responder = traced, answer
		if !spawn.RunInBackground {
			request.Responder = r.callers.watchAs(m.Reply, answer)
		}
		r.submitFor(id, request)
	})
}

// ackOf takes an acknowledgement that the subagent id sent. What is left out here
// leaves an end unread, and it is handed out again.
func (r *rpc) ackOf(id, token string) {
	if !coordinator.ValidToken(token) {
		r.foreign.Log(r.log.Warn, "acknowledgement of a subagent without a token dropped", zap.String("id", id))
		return
	}
	if !r.acks.allow(id, time.Now()) {
		r.foreign.Log(r.log.Warn, "acknowledgement of a subagent dropped, they come too fast", zap.String("id", id))
		return
	}
	r.onAck(id, token)
}

// checked resolves a spawn of the subagent id once it has its turn among those that
// are its own, and then one of the tokens that all subagents share.
func (r *rpc) checked(id string, s events.Spawn, own *childLoad) (coordinator.Request, *events.Error) {
	var none coordinator.Request
	select {
	case own.resolving <- struct{}{}:
		defer func() { <-own.resolving }()
	case <-r.ctx.Done():
		return none, events.Errorf(events.CodeShuttingDown, events.LayerCoordinator, "spawn: %w", context.Cause(r.ctx))
	}
	asking, err := r.asking(id)
	if err != nil {
		return none, err
	}
	// The state decides; this keeps the coordinator from reading what it would refuse.
	if err := coordinator.CheckSpawns(asking.Spec.Spawns, id, s); err != nil {
		return none, err
	}
	if err := beginResolving(r.asks.resolving); err != nil {
		return none, err
	}
	defer func() { <-r.asks.resolving }()
	return r.resolve(asking, s)
}

// resolve reads what a spawn of a subagent means, within what that is.
func (r *rpc) resolve(asking spawner.Asking, s events.Spawn) (coordinator.Request, *events.Error) {
	var none coordinator.Request
	s, err := asking.Before(s)
	if err == nil {
		s, err = asking.Reach(s)
	}
	if err != nil {
		return none, err
	}
	if settle := r.admin.opts.Settle; settle != nil {
		if err := settle(&s); err != nil {
			return none, err
		}
	}
	s, agent, err := asking.Types(r.agents).Resolve(s)
	if err == nil {
		s, agent, err = asking.After(s, agent)
	}
	if err == nil {
		s, err = spawner.Resolve(r.ctx, s, agent, r.profiles)
	}
	if err == nil {
		err = spawner.CheckHost(s.ID)
	}
	if err != nil {
		return none, err
	}
	return coordinator.Request{Event: s, Agent: agent, Spawns: spawner.Spawns(s, agent).And(asking.Spec.Spawns)}, nil
}

// asking reads what the subagent id was spawned as, and what it leaves to others.
func (r *rpc) asking(id string) (spawner.Asking, *events.Error) {
	a := spawner.Asking{Hidden: r.hidden}
	dir, err := r.root.Open(id)
	if err == nil {
		a.Spec, err = dir.ReadSpec()
		dir.Close()
	}
	if err != nil {
		return a, events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "spawn in %s: %w", id, err)
	}
	if a.Spec.Spawns == nil {
		return a, nil
	}
	if a.Above, err = agentsAbove(r.root, a.Spec); err != nil {
		return a, events.Errorf(events.CodeStoreDamaged, events.LayerCoordinator, "spawn in %s: %w", id, err)
	}
	var refusal *events.Error
	a.Inheritance, refusal = spawner.ReadInheritance(r.root, id)
	return a, refusal
}

// agentsAbove reads the settings of the agents that spec is nested in, the nearest
// first.
func agentsAbove(root rundir.Root, spec events.Spec) ([]*events.AgentSpec, error) {
	var above []*events.AgentSpec
	for spec.ParentID != "" {
		dir, err := root.Open(spec.ParentID)
		if err != nil {
			return nil, err
		}
		spec, err = dir.ReadSpec()
		dir.Close()
		if err != nil {
			return nil, err
		}
		if spec.Agent != nil {
			above = append(above, spec.Agent)
		}
	}
	return above, nil
}

func (r *rpc) submitFor(id string, request coordinator.Request) {
	request.Caller = coordinator.Caller{Principal: id}
	if err := r.coord.Submit(request); err != nil {
		request.Responder.Answer(coordinator.Answer{Error: err})
	}
}

// within are the files that the subagent id may read: those of what it spawned.
func (f *files) within(id string) *files {
	g := *f
	g.ask = func(ctx context.Context, e events.SubagentEvent) (any, *events.Error) { return f.askAs(ctx, id, e) }
	return &g
}
