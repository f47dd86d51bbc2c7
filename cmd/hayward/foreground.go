package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

// foreground is a foreground spawn under way. Its members belong to the
// goroutine of the verb.
type foreground struct {
	a       *app
	cmd     *cobra.Command
	c       *connection
	running *client.Running
	signals chan os.Signal
	// ctx is that of the spawn; detach ends it and leaves the subagent alone.
	ctx    context.Context
	detach context.CancelFunc
	// interrupts counts the signals that ask for the end, last is the latest.
	interrupts int
	last       syscall.Signal
	// cancels are under way; cancelErrs has one place for each that is ever sent.
	cancels    sync.WaitGroup
	cancelErrs chan error
	// owned tells that the daemon ends with this process, so that nothing can go
	// on without it.
	owned bool
}

func (a *app) spawnForeground(ctx context.Context, cmd *cobra.Command, f spawnFlags, request events.Spawn) error {
	// SIGPIPE is caught so that a reader of stdout that left is an error of a
	// write, after which the subagent is ended. It is not ignored, because a daemon
	// started on the way would inherit that.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it stays ignored
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)

	c, err := a.reachUnder(ctx, signals, f.noDaemon)
	if err != nil {
		return err
	}
	spawnCtx, detach := context.WithCancel(ctx)
	defer detach()
	fg := &foreground{
		a: a, cmd: cmd, c: c, signals: signals, ctx: spawnCtx, detach: detach,
		cancelErrs: make(chan error, 2), owned: f.noDaemon,
	}
	return c.done(fg.run(request))
}

// reachUnder connects; a signal meanwhile ends the attempt.
func (a *app) reachUnder(ctx context.Context, signals <-chan os.Signal, noDaemon bool) (*connection, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		c   *connection
		err error
	}
	done := make(chan result, 1)
	go func() {
		c, err := a.reach(ctx, noDaemon)
		done <- result{c, err}
	}()
	var stopped error
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGPIPE && stopped == nil {
				stopped = &interruption{s.(syscall.Signal)}
				cancel(stopped)
			}
		case r := <-done:
			if stopped == nil {
				return r.c, r.err
			}
			if r.err == nil {
				return nil, errors.Join(stopped, r.c.close())
			}
			return nil, stopped
		}
	}
}

func (fg *foreground) run(request events.Spawn) error {
	streams := client.Streams{}
	if request.Prompt == "" && request.PromptFile == "" && len(request.Command) > 0 {
		if stdin := fg.a.stdinSource(); stdin != nil {
			streams.Stdin = stdin
		}
	}
	if !fg.a.json {
		fg.a.began = true // stdout is the command's from here on
		streams.Stdout, streams.Stderr = fg.a.stdout, fg.a.stderr
	}
	running, err := fg.c.Start(fg.ctx, request, streams)
	if err != nil {
		return err
	}
	fg.running = running
	defer func() {
		fg.detach()
		fg.cancels.Wait()
	}()
	if err := fg.await(); err != nil {
		return err
	}
	reply, err := running.Wait()
	return fg.finish(reply, err)
}

// await returns when there is a result, or the reason to leave without one.
func (fg *foreground) await() error {
	for {
		select {
		case <-fg.running.Done():
			return nil
		case s := <-fg.signals:
			switch {
			case s == syscall.SIGPIPE:
			case s == syscall.SIGHUP && !fg.owned:
				fg.detach()
				<-fg.running.Done()
				fg.a.say("%s: %s goes on without a terminal", fg.cmd.CommandPath(), fg.running.ID())
				return &interruption{syscall.SIGHUP}
			case fg.interrupt(s.(syscall.Signal)):
				return &interruption{fg.last}
			}
		case err := <-fg.cancelErrs:
			if err != nil {
				return fmt.Errorf("end %s: %w", fg.running.ID(), err)
			}
		}
	}
}

// interrupt asks for the end of the subagent: gracefully, at the second time by
// killing it. It reports whether everything is gone already, and only output that
// nobody takes is left.
func (fg *foreground) interrupt(s syscall.Signal) (gone bool) {
	fg.last = s
	select {
	case <-fg.running.Ended():
		return true
	default:
	}
	if fg.interrupts++; fg.interrupts > 2 {
		return false
	}
	kill := fg.interrupts > 1
	if kill {
		fg.a.say("%s: killing %s", fg.cmd.CommandPath(), fg.running.ID())
	} else {
		fg.a.say("%s: ending %s; interrupt again to kill it", fg.cmd.CommandPath(), fg.running.ID())
	}
	fg.cancels.Go(func() { fg.cancelErrs <- fg.cancel(kill) })
	return false
}

// cancel ends the subagent, once it is known: a cancel that overtakes its spawn
// would find nothing. That it is gone shows in the reply of the spawn.
func (fg *foreground) cancel(kill bool) error {
	select {
	case <-fg.running.Accepted():
	case <-fg.running.Done():
		return nil
	}
	for {
		reply, err := fg.c.Cancel(fg.ctx, events.Cancel{
			Target: events.CancelTarget{IDs: []string{fg.running.ID()}},
			Kill:   kill, Reason: events.ReasonUser, Actor: "interrupt",
		})
		if err != nil {
			select {
			case <-fg.running.Done():
				return nil // it ended meanwhile, and so did the connection
			default:
				return err
			}
		}
		if len(reply.Value.Results) == 0 || reply.Value.Results[0].Outcome != events.CancelDraining {
			return nil
		}
	}
}

// finish hands over the result and decides the exit code.
func (fg *foreground) finish(reply client.Reply[events.SpawnReply], err error) error {
	var stream *client.StreamError
	if err != nil && !errors.As(err, &stream) {
		return fg.a.explainProfile(err)
	}
	result := reply.Value
	fg.a.warn(fg.cmd, result.Warnings)
	if fg.a.json {
		if err := fg.a.printJSON(result); err != nil {
			return err
		}
	}
	// Output that did not arrive is an end that was not handed over.
	if stream == nil || stream.Stream == "stdin" {
		if ackErr := reply.Ack(fg.ctx); ackErr != nil {
			fg.a.say("%s: warning: %s; its end stays unread", fg.cmd.CommandPath(), oneLine(ackErr.Error()))
		}
	}
	switch {
	case stream != nil && errors.Is(err, syscall.EPIPE):
		return exitStatus(exitSignal + int(syscall.SIGPIPE))
	case fg.interrupts > 0 && result.Status == events.StatusCancelled:
		return &interruption{fg.last}
	case stream != nil:
		return err
	case result.Backgrounded:
		fg.a.say("%s: %s goes on in the background", fg.cmd.CommandPath(), result.SubagentID)
		return nil
	}
	fg.explain(result)
	return status(snapshotExit(result.Snapshot))
}

// quarantined says what happened to a file.
func quarantined(path string) string {
	return "it made what git outside would have run commands from; that is now " + oneLine(path)
}

// explain says why the subagent ended, where its exit code does not.
func (fg *foreground) explain(r events.SpawnReply) {
	verb := fg.cmd.CommandPath()
	for _, path := range r.Quarantined {
		fg.a.say("%s: %s", verb, quarantined(path))
	}
	switch {
	case r.Status == events.StatusCompleted:
	case r.Error != nil:
		fg.a.say("%s: %s", verb, oneLine(r.Error.Error()))
	case r.Status == events.StatusCancelled:
		by := ""
		if r.Actor != "" {
			by = " by " + r.Actor
		}
		fg.a.say("%s: %s was cancelled (%s)%s", verb, r.SubagentID, r.Reason, oneLine(by))
	case r.Reason != events.ReasonExit:
		fg.a.say("%s: %s failed: %s", verb, r.SubagentID, r.Reason)
	case r.SandboxHint != nil:
		fg.a.say("%s: %s", verb, oneLine(r.SandboxHint.String()))
	}
}
