package daemon

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/deadlines"
)

// admin serves questions about the coordinator itself.
type admin struct {
	opts      Options
	deadlines deadlines.Set
	coord     *coordinator.Coordinator
	tracker   *tracker
	dropped   func() int64
	started   time.Time
	recovered []string
	damaged   []string
	// leave makes Run return; it is called after the reply was handed over.
	leave func(handover bool)
}

func (a *admin) status(ctx context.Context, data []byte) (any, *events.Error) {
	if err := decodeEmpty(data, &events.StatusRequest{}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	stats, err := a.coord.Stats(ctx)
	if err != nil {
		return nil, events.AsError(err)
	}
	reply := events.StatusReply{
		Version: a.opts.Version, PID: os.Getpid(), UptimeMS: time.Since(a.started).Milliseconds(),
		StateDir: a.opts.Paths.State,
		Queued:   stats.Queued, Pending: stats.Pending, Active: stats.Active, Completed: stats.Completed, Unread: stats.Unread,
		Recovered: a.recovered, Damaged: a.damaged,
		LateReports: a.tracker.late.Load() + stats.LateReports, DroppedMessages: a.dropped(),
		Goroutines: runtime.NumGoroutine(),
	}
	reply.Limits, reply.Origins = a.limits()
	reply.AtLimit = string(a.coord.Limits().AtLimit)
	return reply, nil
}

// limits returns the limits and deadlines in force and where each comes from.
func (a *admin) limits() (values map[string]int64, origins map[string]string) {
	values, origins = make(map[string]int64), make(map[string]string)
	note := func(name string, value int64, set bool) {
		values[name], origins[name] = value, a.origin(name, set)
	}
	asked, l := a.opts.Limits, a.coord.Limits()
	note("per_session", int64(l.PerSession), asked.PerSession != 0)
	note("total", int64(l.Total), asked.Total != 0)
	note("queue_length", int64(l.QueueLength), asked.QueueLength != 0)
	note("depth", int64(l.Depth), asked.Depth != 0)
	for t, n := range l.PerType {
		note("per_type."+t, int64(n), true)
	}
	origins["at_limit"] = a.origin("at_limit", asked.AtLimit != "")
	kept := a.coord.Retention()
	note("keep_finished", int64(kept.PerSession), a.opts.Retention.PerSession != 0)
	note("keep_for_ms", kept.Age.Milliseconds(), a.opts.Retention.Age != 0)
	note("max_memory_bytes", a.opts.MaxMemory, a.opts.MaxMemory != 0)
	for _, d := range deadlines.All {
		note(strings.ReplaceAll(d.Name, "-", "_")+"_ms", d.Of(&a.deadlines).Milliseconds(), *d.Of(&a.opts.Deadlines) > 0)
	}
	return values, origins
}

func (a *admin) origin(name string, set bool) string {
	switch origin, known := a.opts.Origins[name]; {
	case known:
		return origin
	case set:
		return "set"
	}
	return "default"
}

// shutdownTimeout bounds the wait for children at a shutdown by request.
const shutdownTimeout = 60 * time.Second

func (a *admin) shutdown(ctx context.Context, data []byte) (any, *events.Error) {
	var req events.ShutdownRequest
	if err := decodeEmpty(data, &req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, shutdownTimeout, fmt.Errorf("children left after %s", shutdownTimeout))
	defer cancel()
	ended, left, err := a.coord.Shutdown(ctx, req)
	if err != nil {
		return nil, events.AsError(err)
	}
	a.leave(req.Handover)
	return events.ShutdownReply{Ended: ended, Left: left}, nil
}

// removeTimeout bounds a removal; the loop answers before that.
const removeTimeout = 30 * time.Second

// remove takes finished subagents away by id.
func (a *admin) remove(ctx context.Context, data []byte) (any, *events.Error) {
	var req events.RemoveRequest
	if err := events.DecodeStrict(data, &req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	return orError(a.coord.Remove(ctx, req))
}

// prune takes finished subagents away by age and number.
func (a *admin) prune(ctx context.Context, data []byte) (any, *events.Error) {
	var req events.PruneRequest
	if err := decodeEmpty(data, &req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	return orError(a.coord.Prune(ctx, req))
}

// orError is a reply or an error, never both.
func orError(reply events.RemoveReply, err *events.Error) (any, *events.Error) {
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// decodeEmpty decodes a request whose body may be empty.
func decodeEmpty(data []byte, v any) *events.Error {
	if len(data) == 0 {
		return nil
	}
	return events.DecodeStrict(data, v)
}

// hideValues replaces each value by its length: what is in an environment may be
// secret.
func hideValues(env map[string]string) {
	for k, v := range env {
		env[k] = fmt.Sprintf("(%d bytes)", len(v))
	}
}
