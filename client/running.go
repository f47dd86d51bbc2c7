package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hayward-dev/hayward/events"
)

// Streams are what a foreground command is connected to. Nil ones are not.
type Streams struct {
	// Stdin is sent until its end. It is closed once the command reads no more or
	// has ended; Close must end a Read that is in flight.
	Stdin io.ReadCloser
	// Stdout and Stderr get the command's output as it comes, each written by one
	// goroutine. One that fails ends the command, as a closed pipe would.
	Stdout io.Writer
	Stderr io.Writer
}

// Running is a foreground subagent with its streams.
type Running struct {
	c        *Client
	spawn    events.Spawn
	streams  Streams
	minted   bool
	accepted signal
	ended    signal
	done     chan struct{}

	// Written before done is closed, read after.
	reply Reply[events.SpawnReply]
	err   error
}

// maxStreamErrors is two for each output, the failure and that of the cancel
// that follows, and one for stdin.
const maxStreamErrors = 5

// signal is a channel that is closed once.
type signal struct {
	once sync.Once
	ch   chan struct{}
}

func (s *signal) fire() { s.once.Do(func() { close(s.ch) }) }

// Start spawns s in the foreground, without an await budget unless it has one,
// and connects it to the streams. Ending ctx lets go of the subagent, which then
// goes on with its stdin closed.
func (c *Client) Start(ctx context.Context, s events.Spawn, streams Streams) (*Running, error) {
	minted := s.ID == ""
	if minted {
		s.ID = events.NewID()
	}
	s.RunInBackground = false
	if s.AwaitBudgetMS == nil {
		s.AwaitBudgetMS = new(int64)
	}
	if streams.Stdin != nil {
		s.Stdin = events.StdinStream
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	feed, err := c.Feed(ctx, FeedFilter{ID: s.ID})
	if err != nil {
		return nil, fmt.Errorf("spawn %s: %w", s.ID, err)
	}
	r := &Running{
		c: c, spawn: s, streams: streams, minted: minted,
		accepted: signal{ch: make(chan struct{})},
		ended:    signal{ch: make(chan struct{})},
		done:     make(chan struct{}),
	}
	go func() {
		defer close(r.done)
		r.reply, r.err = r.run(ctx, feed)
	}()
	return r, nil
}

// ID is the subagent's id, known before it is accepted.
func (r *Running) ID() string { return r.spawn.ID }

// Accepted is closed once the coordinator knows the subagent.
func (r *Running) Accepted() <-chan struct{} { return r.accepted.ch }

// Ended is closed once the subagent has ended; its output may still be coming.
func (r *Running) Ended() <-chan struct{} { return r.ended.ch }

// Done is closed once [Running.Wait] will not block.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait returns the result after all output was written. The error is that of
// the spawn or of a stream; with the latter the result is set as well, and
// [StreamError] tells.
func (r *Running) Wait() (Reply[events.SpawnReply], error) {
	<-r.done
	return r.reply, r.err
}

// StreamError is a failure of one of the caller's [Streams].
type StreamError struct {
	// Stream is "stdin", "stdout" or "stderr".
	Stream string
	Err    error
}

// Error implements error.
func (e *StreamError) Error() string { return e.Stream + ": " + e.Err.Error() }

// Unwrap returns what happened.
func (e *StreamError) Unwrap() error { return e.Err }

func (r *Running) run(ctx context.Context, feed *Feed) (Reply[events.SpawnReply], error) {
	// Three lives: watching and stdin end with the subagent, the output goes on
	// until all of it was copied, unless the spawn was refused.
	inputCtx, endInput := context.WithCancel(ctx)
	defer endInput()
	outputCtx, endOutput := context.WithCancel(ctx)
	defer endOutput()

	var input, output sync.WaitGroup
	errs := make(chan error, maxStreamErrors)
	input.Go(func() { r.watch(inputCtx, feed) })
	if r.streams.Stdin != nil {
		input.Go(func() { r.feedStdin(inputCtx, errs) })
	}
	for stream, w := range map[string]io.Writer{"stdout": r.streams.Stdout, "stderr": r.streams.Stderr} {
		if w != nil {
			output.Go(func() { r.follow(outputCtx, stream, w, errs) })
		}
	}

	reply, err := r.c.spawn(ctx, r.spawn, r.minted, r.accepted.fire)
	if err != nil || reply.Value.Backgrounded {
		endOutput()
	} else {
		r.ended.fire()
	}
	endInput()
	input.Wait()
	output.Wait()
	close(errs)
	if err != nil {
		return reply, err
	}
	var streamErrs []error
	for e := range errs {
		streamErrs = append(streamErrs, e)
	}
	return reply, errors.Join(streamErrs...)
}

// watch learns from the feed that the subagent is accepted. It is only faster
// than the reply and the probes of the spawn, so its errors end it and nothing
// else.
func (r *Running) watch(ctx context.Context, feed *Feed) {
	for {
		_, err := feed.Next(ctx)
		if errors.Is(err, ErrFeedGap) {
			continue
		}
		if err != nil {
			break
		}
		r.accepted.fire()
	}
	_ = feed.Close() // its errors are those of the connection, which every call reports
}

// follow copies one output stream to its end.
func (r *Running) follow(ctx context.Context, stream string, w io.Writer, errs chan<- error) {
	select {
	case <-r.accepted.ch:
	case <-ctx.Done():
		return
	}
	_, err := r.c.CopyLog(ctx, w, events.FileRequest{
		ParentSessionID: r.spawn.ParentSessionID, ID: r.spawn.ID, Stream: stream, Follow: true,
	})
	if err == nil || ctx.Err() != nil {
		return
	}
	errs <- &StreamError{Stream: stream, Err: err}
	var broken *writeError
	if !errors.As(err, &broken) {
		return
	}
	if _, err := r.c.Cancel(ctx, events.Cancel{
		ParentSessionID: r.spawn.ParentSessionID,
		Target:          events.CancelTarget{IDs: []string{r.spawn.ID}},
		Actor:           "closed " + stream,
	}); err != nil && ctx.Err() == nil {
		errs <- &StreamError{Stream: stream, Err: fmt.Errorf("end %s whose output nobody takes: %w", r.spawn.ID, err)}
	}
}

// feedStdin sends stdin. It begins before the command runs: while the subagent
// is queued or starting, the pump tries again.
func (r *Running) feedStdin(ctx context.Context, errs chan<- error) {
	select {
	case <-r.accepted.ch:
	case <-ctx.Done():
		// Nothing was read, and the caller's reader is still to be closed.
	}
	pump := &stdinPump{c: r.c, session: r.spawn.ParentSessionID, id: r.spawn.ID}
	if err := pump.run(ctx, r.streams.Stdin); err != nil && ctx.Err() == nil {
		errs <- &StreamError{Stream: "stdin", Err: err}
	}
}
