package plan

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// actor is recorded with what a run cancels.
const actor = "hayward run"

// interrupt ends the run gracefully, the second time at once. A run that
// fail_fast ends already only takes notice the first time.
func (r *run) interrupt() {
	first := !r.interrupted
	r.interrupted = true
	if first && r.stage == stageEnding {
		if r.options.Observer != nil {
			r.options.Observer.Interrupted(len(r.inFlight), false)
		}
		return
	}
	r.escalate()
}

// failFast ends the run because the subagent called name failed.
func (r *run) failFast(name string) {
	if r.stage != stageRunning {
		return
	}
	r.failedBy = name
	if r.options.Observer != nil {
		r.options.Observer.FailedFast(name, len(r.inFlight))
	}
	r.escalate()
}

// escalate goes one stage further: end gracefully, then kill, then nothing.
func (r *run) escalate() {
	switch r.stage {
	case stageRunning:
		r.stage = stageEnding
		close(r.stopping)
		r.giveUp.Reset(gracePatience)
	case stageEnding:
		r.stage = stageKilling
		r.giveUp.Reset(killPatience)
		r.stopHooks()
	default:
		return
	}
	kill := r.stage == stageKilling
	if r.options.Observer != nil && (r.interrupted || kill) {
		r.options.Observer.Interrupted(len(r.inFlight), kill)
	}
	if r.stopCanceller != nil {
		r.stopCanceller()
		r.stopCanceller = nil
	}
	if len(r.inFlight) > 0 {
		ctx, stop := context.WithCancel(r.work)
		r.stopCanceller = stop
		cancels := r.cancels(kill)
		r.workers.Go(func() { r.cancelAll(ctx, kill, cancels) })
	}
}

// cancels are the requests that end what is in flight: the prompt of this
// execution, whose later spawns are refused from then on, and what earlier ones
// left under prompts of theirs.
func (r *run) cancels(kill bool) []events.Cancel {
	targets := []events.CancelTarget{{ParentPromptID: r.options.Prompt}}
	var ids []string
	for i := range r.inFlight {
		if n := &r.nodes[i]; r.options.Earlier[n.sub.Name].Live {
			ids = append(ids, n.id)
		}
	}
	sort.Strings(ids)
	for page := range slices.Chunk(ids, events.MaxQueryIDs) {
		targets = append(targets, events.CancelTarget{IDs: page})
	}
	reason := events.ReasonUser
	if r.failedBy != "" {
		reason = events.ReasonFailFast
	}
	timeout := int64(events.DefaultCancelMS)
	requests := make([]events.Cancel, len(targets))
	for i, t := range targets {
		requests[i] = events.Cancel{
			ParentSessionID: r.options.RunID, Target: t,
			Kill: kill, Reason: reason, Actor: actor, TimeoutMS: &timeout,
		}
	}
	return requests
}

// cancelAll makes the requests again and again until ctx ends: a spawn may have
// been under way at the first time.
func (r *run) cancelAll(ctx context.Context, kill bool, requests []events.Cancel) {
	slot := &r.cancelErrs[0]
	if kill {
		slot = &r.cancelErrs[1]
	}
	for {
		errs := make([]error, len(requests))
		var all sync.WaitGroup
		for i, cancel := range requests {
			all.Go(func() {
				request, done := context.WithTimeout(ctx, events.DefaultCancelMS*time.Millisecond+replySlack)
				defer done()
				_, errs[i] = r.runner.Cancel(request, cancel)
			})
		}
		all.Wait()
		if ctx.Err() != nil {
			return
		}
		*slot = errors.Join(errs...)
		timer := time.NewTimer(lastPause / 4)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
