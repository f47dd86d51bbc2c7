package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// maxSilentProbes is how many probes in a row may go wrong before the
// coordinator counts as not answering.
const maxSilentProbes = 3

// lost reports whether err means that a request has no reply.
func lost(err error) bool { return errors.Is(err, errLost) }

// Spawn asks for a subagent. In the background it returns once the subagent is
// accepted, else with the result or at the await budget. The allow-listed
// environment is added to s.Env, and an id is minted when s has none.
//
// Ending ctx does not end the subagent: give it an id to find it again, or use
// [Client.Start].
func (c *Client) Spawn(ctx context.Context, s events.Spawn) (Reply[events.SpawnReply], error) {
	minted := s.ID == ""
	if minted {
		s.ID = events.NewID()
	}
	return c.spawn(ctx, s, minted, func() {})
}

// spawn carries out a spawn that has an id; minted tells that it is ours alone.
// It calls accepted, perhaps more than once, when it learns that the
// subagent is known to the coordinator.
func (c *Client) spawn(ctx context.Context, s events.Spawn, minted bool, accepted func()) (Reply[events.SpawnReply], error) {
	var none Reply[events.SpawnReply]
	if s.ResumeFrom == "" { // else what is not named stays as its source had it
		s.Env = c.environment(s.Env)
	}
	if err := s.Validate(); err != nil {
		return none, err
	}
	subject := c.subject(events.KindSpawn)
	body, err := events.Marshal(s)
	if err != nil {
		return none, err
	}

	q := call{subject: subject, body: body, limit: callTimeout}
	if !s.RunInBackground {
		q.limit = 0
		q.probe = c.spawnProbe(s, accepted)
	}
	began := time.Now()
	var p pacer
	for sent := 0; ; sent++ {
		msg, err := c.attemptIdle(ctx, q)
		if lost(err) {
			if err := c.standBy(ctx, &p); err != nil {
				return none, fmt.Errorf("spawn %s: %w", s.ID, err)
			}
			continue
		}
		if err != nil {
			return none, fmt.Errorf("spawn %s: %w", s.ID, err)
		}
		reply, err := decode[events.SpawnReply](c, subject, msg)
		if err == nil {
			accepted()
			return reply, nil
		}
		if sent == 0 {
			return none, err
		}
		// An earlier copy of this request may have been accepted and its reply lost.
		// Then this copy is refused, by the id or by what the subagent occupies.
		own, queryErr := c.accepted(ctx, s, minted, began)
		if queryErr != nil {
			return none, fmt.Errorf("spawn %s: %w", s.ID, queryErr)
		}
		if !own {
			return none, err
		}
		accepted()
		return c.collect(ctx, s, began)
	}
}

func (c *Client) environment(explicit map[string]string) map[string]string {
	env := BaseEnvironment(c.opts.Environ)
	maps.Copy(env, explicit)
	return env
}

// snapshot reads one subagent by its full id; ok is false when it is unknown.
func (c *Client) snapshot(ctx context.Context, session, id string) (s events.Snapshot, ok bool, err error) {
	r, err := c.Query(ctx, events.Query{ParentSessionID: session, IDs: []string{id}})
	switch {
	case events.HasCode(err, events.CodeUnknownID):
		return s, false, nil
	case err != nil:
		return s, false, err
	case len(r.Value.Snapshots) == 0:
		return s, false, nil
	}
	return r.Value.Snapshots[0], true, nil
}

// spawnProbe finds a lost reply while the connection lives: it ends the attempt
// with errLost when the subagent ended long ago or is not known at all, and with
// code timeout when the coordinator does not answer either.
func (c *Client) spawnProbe(s events.Spawn, accepted func()) func(context.Context) error {
	var ended, unknown, silent int
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, max(c.opts.ProbeEvery, time.Second))
		defer cancel()
		snapshot, ok, err := c.snapshot(ctx, s.ParentSessionID, s.ID)
		switch {
		case err != nil:
			ended, unknown = 0, 0
			if silent++; silent >= maxSilentProbes {
				return events.Errorf(events.CodeTimeout, events.LayerCoordinator, "the coordinator does not answer: %w", err)
			}
			return nil
		case !ok:
			ended = 0
			unknown++
		default:
			accepted()
			unknown = 0
			if snapshot.State == events.StateCompleted {
				ended++
			}
		}
		silent = 0
		// One such finding may only mean that the reply is under way.
		if ended > 1 || unknown > 1 {
			ended, unknown = 0, 0
			return fmt.Errorf("%w: the coordinator is past it", errLost)
		}
		return nil
	}
}

// accepted reports whether the subagent of s exists and is of this call: an id
// that the caller named may have been taken before.
func (c *Client) accepted(ctx context.Context, s events.Spawn, minted bool, began time.Time) (bool, error) {
	snapshot, ok, err := c.snapshot(ctx, s.ParentSessionID, s.ID)
	if err != nil || !ok {
		return false, err
	}
	return minted || !snapshot.CreatedAt.Before(began), nil
}

// collect is the rest of a spawn that was accepted and whose reply is lost.
func (c *Client) collect(ctx context.Context, s events.Spawn, began time.Time) (Reply[events.SpawnReply], error) {
	q := events.Query{ParentSessionID: s.ParentSessionID, IDs: []string{s.ID}}
	var r Reply[events.QueryReply]
	var err error
	switch {
	case s.RunInBackground:
		r, err = c.Query(ctx, q)
	case s.AwaitBudgetMS != nil && *s.AwaitBudgetMS > 0:
		q.MarkRead = true
		r, err = c.Wait(ctx, q, max(millis(s.AwaitBudgetMS, 0)-time.Since(began), time.Millisecond))
	default:
		q.MarkRead = true
		r, err = c.Wait(ctx, q, 0)
	}
	if err != nil {
		return Reply[events.SpawnReply]{}, fmt.Errorf("spawn %s: %w", s.ID, err)
	}
	if len(r.Value.Snapshots) == 0 {
		return Reply[events.SpawnReply]{}, events.Errorf(events.CodeUnknownID, events.LayerCoordinator, "spawn %s: it was accepted and is not known any more", s.ID)
	}
	reply := events.SpawnReply{Snapshot: r.Value.Snapshots[0], Accepted: true, Warnings: r.Value.Warnings}
	if s.RunInBackground || !reply.Status.Terminal() {
		reply.Backgrounded, reply.Success = true, nil
	}
	return Reply[events.SpawnReply]{Value: reply, c: c, ack: r.ack}, nil
}
