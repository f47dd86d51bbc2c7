package daemon

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

// admin serves questions about the coordinator itself.
type admin struct {
	opts      Options
	limits    coordinator.Limits
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
		Limits: map[string]int64{
			"per_session":  int64(a.limits.PerSession),
			"total":        int64(a.limits.Total),
			"queue_length": int64(a.limits.QueueLength),
			"depth":        int64(a.limits.Depth),
		},
		Origins: map[string]string{
			"per_session": origin(a.opts.MaxPerSession), "total": origin(a.opts.MaxTotal),
			"queue_length": "default", "depth": "default",
		},
	}
	return reply, nil
}

func origin(flag int) string {
	if flag != 0 {
		return "flag"
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
