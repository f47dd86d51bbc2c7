package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

func (a *app) transcriptCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "transcript ID",
		Short: "Print what happened in a subagent, item by item",
		Long: `Print what happened in a subagent, item by item: the conversation of an agent, with
its tool calls, their results and its tokens; the output of a command. With --json
the items are printed as they are kept, one a line, nothing shortened.`,
		Example: `  hayward transcript docs
  hayward transcript -f --json docs | jq -r 'select(.kind == "output").text'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeIDs(true),
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, ids []string) error {
			return a.transcript(ctx, cmd, f, ids[0])
		}),
	}
	f.add(cmd)
	return cmd
}

func (a *app) transcript(ctx context.Context, cmd *cobra.Command, f logsFlags, id string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	r := events.FileRequest{ParentSessionID: f.session, ID: id, Follow: f.follow}
	if cmd.Flags().Changed("tail") {
		r.Tail = &f.tail
	}
	var begin time.Time
	if f.since > 0 {
		begin = time.Now().Add(-f.since)
	}
	items := &itemWriter{each: func(line []byte, item events.Item) error {
		if item.At.Before(begin) {
			return nil
		}
		if a.json {
			return a.write(append(line, '\n'))
		}
		if said, ok := shownSaid(item); ok {
			return a.write([]byte(said))
		}
		return a.write([]byte(shownItem(item)))
	}}
	if _, err := c.CopyTranscript(ctx, items, r); err != nil {
		return c.done(err)
	}
	return c.done(items.close(f.follow))
}

// itemWriter cuts a transcript into items.
type itemWriter struct {
	each func(line []byte, item events.Item) error
	rest []byte
}

func (w *itemWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		line := bytes.Clone(w.rest[:i])
		w.rest = w.rest[i+1:]
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var item events.Item
		if err := events.DecodeRecord(line, &item); err != nil {
			return 0, fmt.Errorf("the transcript has a damaged line: %w", err)
		}
		if err := w.each(line, item); err != nil {
			return 0, err
		}
	}
}

// close tells of a last item that is not whole. While the subagent runs, it may
// be under way.
func (w *itemWriter) close(ended bool) error {
	if ended && len(w.rest) > 0 {
		return fmt.Errorf("the transcript ends in the middle of an item: %w", io.ErrUnexpectedEOF)
	}
	return nil
}

// shownItem is an item for people, one line or more.
func shownItem(i events.Item) string {
	head := i.At.Local().Format("15:04:05.000") + " " + string(i.Kind)
	var body string
	switch {
	case i.TextOmitted || i.Encoding != "":
		body = fmt.Sprintf("%d bytes at %d", i.Bytes, i.Offset)
	case i.Exit != nil && i.Exit.Code != nil:
		body = fmt.Sprintf("code %d", *i.Exit.Code)
	case i.Exit != nil:
		body = i.Exit.Signal
	case len(i.Argv) > 0:
		body = strings.Join(i.Argv, " ")
	default:
		body = strings.TrimSuffix(i.Text, "\n")
	}
	if i.Stream != "" {
		head += " " + i.Stream
	}
	var b strings.Builder
	for line := range strings.SplitSeq(body, "\n") {
		b.WriteString(head + " | " + printable(line) + "\n")
	}
	return b.String()
}

// sinceOffset finds where a stream's output of a time begins, from the
// transcript: behind all that was written before it.
func sinceOffset(ctx context.Context, c *connection, r events.FileRequest, begin time.Time) (int64, error) {
	stream := r.Stream
	if stream == "" {
		stream = "stdout"
	}
	var offset int64
	items := &itemWriter{each: func(_ []byte, item events.Item) error {
		if item.From == "" && item.Stream == stream && item.At.Before(begin) {
			offset = max(offset, item.Offset+item.Bytes)
		}
		return nil
	}}
	_, err := c.CopyTranscript(ctx, items, events.FileRequest{ParentSessionID: r.ParentSessionID, ID: r.ID})
	return offset, err
}
