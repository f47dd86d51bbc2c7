package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/paths"
)

// leftTimeout bounds the wait for a daemon to be gone after it said good-bye.
const leftTimeout = 30 * time.Second

func (a *app) shutdownCommand() *cobra.Command {
	var r events.ShutdownRequest
	cmd := &cobra.Command{
		Use:   "shutdown",
		Short: "End the daemon",
		Long: `End the daemon and return once it is gone. Its subagents are ended before, unless
--handover leaves them running: the next daemon takes them over.

Without a daemon there is nothing to do, and none is started.`,
		Example: `  hayward shutdown
  hayward shutdown --handover`,
		Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.shutdown(ctx, cmd, r)
		}),
	}
	cmd.Flags().BoolVar(&r.Handover, "handover", false, "leave the subagents running")
	cmd.Flags().BoolVar(&r.Kill, "kill", false, "kill the subagents at once")
	cmd.MarkFlagsMutuallyExclusive("handover", "kill")
	return cmd
}

// shutdownResult is what shutdown --json prints.
type shutdownResult struct {
	// Running tells whether there was a daemon.
	Running bool `json:"running"`
	events.ShutdownReply
}

func (a *app) shutdown(ctx context.Context, cmd *cobra.Command, r events.ShutdownRequest) error {
	p, err := a.paths()
	if err != nil {
		return err
	}
	c, err := a.connectIfRunning(ctx)
	var result shutdownResult
	switch {
	case events.HasCode(err, events.CodeUnreachable):
		// One that is starting or leaving does not listen, but holds its lock.
		if err := awaitUnlocked(ctx, p); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		result.Running = true
		result.ShutdownReply, err = c.Shutdown(ctx, r)
		if events.HasCode(err, events.CodeUnreachable) {
			err = nil // it left before its answer was out: the lock tells the rest
		}
		if err := c.done(err); err != nil {
			return err
		}
		if err := awaitUnlocked(ctx, p); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(result)
	}
	switch {
	case !result.Running:
		a.say("%s: no daemon was running", cmd.CommandPath())
	case r.Handover:
		a.say("%s: the daemon has left; %s", cmd.CommandPath(), counted(result.Left, "subagent goes on", "subagents go on"))
	default:
		a.say("%s: the daemon has left; %s", cmd.CommandPath(), counted(result.Ended, "subagent was ended", "subagents were ended"))
	}
	if result.Left > 0 && !r.Handover {
		return events.Errorf(events.CodeTimeout, events.LayerCoordinator, "%s did not end in time", counted(result.Left, "subagent", "subagents"))
	}
	return nil
}

// counted is n with the words for one or for several.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// awaitUnlocked waits until no daemon holds the state.
func awaitUnlocked(ctx context.Context, p paths.Paths) error {
	late := events.Errorf(events.CodeTimeout, events.LayerCoordinator, "a daemon still holds %s after %v", p.State, leftTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, leftTimeout, late)
	defer cancel()
	for locked(p.Lock()) {
		if err := sleep(ctx, pollPause); err != nil {
			if errors.Is(err, error(late)) {
				return late
			}
			return fmt.Errorf("wait for the daemon to leave: %w", err)
		}
	}
	return nil
}
