package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hayward-dev/hayward/events"
)

const (
	// spawnTimeout bounds one spawn request; the reply comes once the record is
	// durable.
	spawnTimeout = 15 * time.Second
	// queryTimeout is how long one query waits for the end, and replySlack how
	// much later its reply may come.
	queryTimeout = time.Minute
	replySlack   = 15 * time.Second
	// The pause before a request is made again doubles between these.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// outcome is how one subagent ended, as far as the run knows.
type outcome struct {
	// snapshot is the terminal one, or nil if the subagent never ran or its end is
	// not known.
	snapshot *events.Snapshot
	// never is true when no subagent was made.
	never bool
	// lost is true when the end is not known; err then says why.
	lost bool
	// err is why there is no snapshot.
	err error
}

// driver takes one subagent from spawn to end. It lives in its own goroutine
// and reads of the run only what never changes.
type driver struct {
	run   *run
	id    string
	spawn events.Spawn
	// accepted is true when the coordinator has it already.
	accepted bool
}

func (d *driver) drive() outcome {
	if d.accepted {
		return d.await(nil)
	}
	o, ended := d.accept()
	if ended {
		return o
	}
	return d.await(o.err)
}

// accept spawns until the coordinator said yes or no. ended is true when there
// is nothing to wait for. Otherwise o.err is nil, or the refusal of a request
// that came after one which may have been taken.
func (d *driver) accept() (o outcome, ended bool) {
	select {
	case d.run.spawns <- struct{}{}:
		defer func() { <-d.run.spawns }()
	case <-d.run.stopping:
		return outcome{never: true, err: errStopped}, true
	}
	again := newRetry()
	// unsure is true once a request may have been taken without our knowing.
	unsure := false
	for {
		if !unsure && d.stopping() {
			return outcome{never: true, err: errStopped}, true
		}
		ctx, cancel := context.WithTimeout(d.run.work, spawnTimeout)
		_, err := d.run.runner.Spawn(ctx, d.spawn)
		cancel()
		switch answer := classify(err); {
		case err == nil, events.HasCode(err, events.CodeDuplicateID):
			// The id was minted here, so a duplicate is an earlier request of ours.
			return outcome{}, false
		case answer == refused && unsure:
			return outcome{err: err}, false
		case answer == refused:
			return outcome{never: true, err: err}, true
		case answer == held:
			// The coordinator answers, and what holds it ends some time.
			again.answered()
		case answer == unknown:
			unsure = true
		}
		if !again.wait(d.run.work) {
			return outcome{lost: unsure, never: !unsure, err: fmt.Errorf("spawn: %w", err)}, true
		}
	}
}

// await asks for the end until it comes. refusal, if not nil, is why nothing was
// made in case the coordinator does not know the id.
func (d *driver) await(refusal error) outcome {
	again := newRetry()
	wait := queryTimeout.Milliseconds()
	query := events.Query{
		ParentSessionID: d.spawn.ParentSessionID, IDs: []string{d.id},
		Block: true, TimeoutMS: &wait, MarkRead: true,
	}
	for {
		ctx, cancel := context.WithTimeout(d.run.work, queryTimeout+replySlack)
		reply, err := d.run.runner.Query(ctx, query)
		cancel()
		switch {
		case err == nil && len(reply.Snapshots) == 1:
			if s := reply.Snapshots[0]; s.Status.Terminal() {
				return outcome{snapshot: &s}
			}
			again.answered()
			if reply.TimedOut {
				continue
			}
		case err == nil && refusal != nil:
			return outcome{never: true, err: refusal}
		case err == nil:
			return outcome{lost: true, err: events.Errorf(events.CodeUnknownID, events.LayerCoordinator,
				"query %s: the coordinator no longer knows it", d.id)}
		case classify(err) == refused:
			return outcome{lost: true, err: fmt.Errorf("query: %w", err)}
		}
		if !again.wait(d.run.work) {
			return outcome{lost: true, err: fmt.Errorf("query: %w", err)}
		}
	}
}

func (d *driver) stopping() bool {
	select {
	case <-d.run.stopping:
		return true
	default:
		return false
	}
}

// errStopped is why a subagent was never made in a run that is being ended.
var errStopped = errors.New("the run was ended before it started")

// answer is what an error of a request means for making it again.
type answer int

const (
	// refused: a definite no.
	refused answer = iota
	// held: not now; nothing was taken.
	held
	// unknown: whether the request was taken is not known.
	unknown
)

func classify(err error) answer {
	var e *events.Error
	if !errors.As(err, &e) {
		return unknown
	}
	switch e.Code {
	case events.CodeBusy:
		return held
	case events.CodeTimeout, events.CodeUnreachable, events.CodeShuttingDown:
		return unknown
	case events.CodeLimit: // what is full empties
		return held
	}
	return refused
}

// retry paces requests that are made again.
type retry struct {
	pause time.Duration
	since time.Time
}

func newRetry() *retry { return &retry{pause: firstPause, since: time.Now()} }

// answered starts the patience anew: the coordinator is there.
func (r *retry) answered() { r.since = time.Now() }

// wait pauses; false when patience or the run is at its end.
func (r *retry) wait(ctx context.Context) bool {
	if time.Since(r.since) >= patience {
		return false
	}
	timer := time.NewTimer(r.pause)
	defer timer.Stop()
	r.pause = min(2*r.pause, lastPause)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
