package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

// inside returns the id of the subagent that this program runs in, or empty. One
// that names a state directory of its own has a coordinator of its own.
func (a *app) inside() string {
	if a.getenv("HAYWARD_STATE_DIR") != "" {
		return ""
	}
	return a.getenv("HAYWARD_SUBAGENT_ID")
}

// insideError is why the coordinator is out of reach in there.
func insideError(id string, err error) error {
	return events.Errorf(events.CodeForbidden, events.LayerPermission,
		"this runs inside subagent %s, which may not spawn and cannot look at others: %s", id, events.AsError(err).Message).
		WithRemedy("run it outside, allow it with spawn --may-spawn and limits.depth, or set HAYWARD_STATE_DIR to a directory in here for a coordinator of its own")
}

// spawnInside spawns in the foreground from within a subagent. There is no feed and
// no stdin to be sent: the output comes at the end. An interrupt leaves the subagent
// to its spawner, with which it ends.
func (a *app) spawnInside(ctx context.Context, cmd *cobra.Command, request events.Spawn) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	request.AwaitBudgetMS = new(int64)
	reply, err := c.Spawn(ctx, request)
	if err == nil {
		err = a.showInside(ctx, cmd, c, reply)
	}
	return wrapVerb(ctx, c.done(a.explainProfile(err)))
}

func (a *app) showInside(ctx context.Context, cmd *cobra.Command, c *connection, reply client.Reply[events.SpawnReply]) error {
	s := reply.Value.Snapshot
	a.warn(cmd, reply.Value.Warnings)
	if a.json {
		if err := a.printJSON(reply.Value); err != nil {
			return err
		}
	} else {
		a.began = true // stdout is the command's from here on
		for stream, w := range map[string]io.Writer{"stdout": a.stdout, "stderr": a.stderr} {
			if _, err := c.CopyLog(ctx, w, events.FileRequest{ID: s.SubagentID, Stream: stream}); err != nil {
				return err
			}
		}
	}
	if err := reply.Ack(ctx); err != nil {
		a.say("%s: warning: %s; its end stays unread", cmd.CommandPath(), oneLine(err.Error()))
	}
	if s.Error != nil {
		a.say("%s: %s", cmd.CommandPath(), oneLine(s.Error.Error()))
	}
	return status(snapshotExit(s))
}
