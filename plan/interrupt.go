package plan

import (
	"context"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// actor is recorded with what a run cancels.
const actor = "hayward run"

// interrupt goes one stage further: end gracefully, then kill, then nothing.
func (r *run) interrupt() {
	switch r.stage {
	case stageRunning:
		r.stage = stageEnding
		close(r.stopping)
		r.giveUp.Reset(gracePatience)
	case stageEnding:
		r.stage = stageKilling
		r.giveUp.Reset(killPatience)
	default:
		return
	}
	kill := r.stage == stageKilling
	if r.options.Observer != nil {
		r.options.Observer.Interrupted(len(r.inFlight), kill)
	}
	if r.stopCanceller != nil {
		r.stopCanceller()
		r.stopCanceller = nil
	}
	if len(r.inFlight) > 0 {
		ctx, stop := context.WithCancel(r.work)
		r.stopCanceller = stop
		r.workers.Go(func() { r.cancelAll(ctx, kill) })
	}
}

// cancelAll cancels the prompt of this run, which is everything in flight, again
// and again until ctx ends: a spawn may have been under way at the first time.
// The coordinator refuses later spawns of a cancelled prompt.
func (r *run) cancelAll(ctx context.Context, kill bool) {
	timeout := int64(events.DefaultCancelMS)
	cancel := events.Cancel{
		ParentSessionID: r.options.RunID,
		Target:          events.CancelTarget{ParentPromptID: r.options.RunID},
		Kill:            kill, Reason: events.ReasonUser, Actor: actor, TimeoutMS: &timeout,
	}
	slot := &r.cancelErrs[0]
	if kill {
		slot = &r.cancelErrs[1]
	}
	for {
		request, done := context.WithTimeout(ctx, events.DefaultCancelMS*time.Millisecond+replySlack)
		_, err := r.runner.Cancel(request, cancel)
		done()
		if ctx.Err() != nil {
			return
		}
		*slot = err
		timer := time.NewTimer(lastPause / 4)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
