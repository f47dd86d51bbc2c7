package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
)

// logsFlags are the flags of logs and transcript.
type logsFlags struct {
	session string
	follow  bool
	tail    int
	since   time.Duration
	stderr  bool
}

func (f *logsFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.session, "session", "", "look in this session only")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on until the subagent has ended")
	cmd.Flags().IntVar(&f.tail, "tail", 0, "begin that many lines before the end")
	cmd.Flags().DurationVar(&f.since, "since", 0, "begin with what was written at most that long ago")
}

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs ID...",
		Short: "Print the output of subagents",
		Long: `Print what subagents wrote to stdout, or with --stderr to stderr, byte for byte.

Several are printed one after the other, each under its name; with --follow at the
same time, with the name before each line. With --json there is one object for
each part: its offset, and its text or, where that is not UTF-8, base64.`,
		Example: `  hayward logs docs
  hayward logs -f --tail 20 docs
  hayward logs --stderr --since 5m 5f3a`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeIDs(true),
		RunE: a.verb(func(ctx context.Context, cmd *cobra.Command, ids []string) error {
			return a.logs(ctx, cmd, f, ids)
		}),
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.stderr, "stderr", false, "stderr instead of stdout")
	return cmd
}

// request is the request for one subagent, its id resolved, beginning where the
// flags say.
func (f logsFlags) request(ctx context.Context, c *connection, cmd *cobra.Command, id string) (events.FileRequest, error) {
	r := events.FileRequest{ParentSessionID: f.session, ID: id, Follow: f.follow}
	if f.stderr {
		r.Stream = "stderr"
	}
	switch flags := cmd.Flags(); {
	case flags.Changed("tail"):
		r.Tail = &f.tail
	case f.since > 0:
		offset, err := sinceOffset(ctx, c, r, time.Now().Add(-f.since))
		if err != nil {
			return r, err
		}
		r.Offset = offset
	}
	return r, nil
}

func (f logsFlags) check(cmd *cobra.Command) error {
	switch {
	case f.tail < 0:
		return usage("--tail must not be negative")
	case f.since < 0:
		return usage("--since must not be negative")
	case f.since > 0 && cmd.Flags().Changed("tail"):
		return usage("--since and --tail exclude each other")
	}
	return nil
}

func (a *app) logs(ctx context.Context, cmd *cobra.Command, f logsFlags, ids []string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	if f.follow && len(ids) > 1 {
		return c.done(a.followAll(ctx, cmd, c, f, ids))
	}
	for i, id := range ids {
		r, err := f.request(ctx, c, cmd, id)
		if err != nil {
			return c.done(err)
		}
		if len(ids) > 1 && !a.json {
			gap := ""
			if i > 0 {
				gap = "\n"
			}
			if err := a.printf("%s==> %s <==\n", gap, oneLine(id)); err != nil {
				return c.done(err)
			}
		}
		if err := c.EachLogPart(ctx, r, a.showPart(r)); err != nil {
			return c.done(err)
		}
	}
	return c.done(nil)
}

// showPart writes parts of one stream to stdout.
func (a *app) showPart(r events.FileRequest) func(events.FileReply) error {
	if !a.json {
		return func(p events.FileReply) error { return a.write(p.Data) }
	}
	stream := r.Stream
	if stream == "" {
		stream = "stdout"
	}
	return func(p events.FileReply) error {
		part := logPart{SubagentID: p.SubagentID, Stream: stream, Offset: p.Offset, Bytes: len(p.Data), Text: string(p.Data)}
		if !utf8.Valid(p.Data) {
			part.Text, part.Encoding = base64.StdEncoding.EncodeToString(p.Data), "base64"
		}
		return a.printJSON(part)
	}
}

// logPart is one line of logs --json.
type logPart struct {
	SubagentID string `json:"subagent_id"`
	Stream     string `json:"stream"`
	Offset     int64  `json:"offset"`
	Bytes      int    `json:"bytes"`
	Text       string `json:"text"`
	Encoding   string `json:"encoding,omitempty"`
}

// followAll follows several subagents at once. The first error ends all.
func (a *app) followAll(ctx context.Context, cmd *cobra.Command, c *connection, f logsFlags, ids []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // guards stdout
	var following sync.WaitGroup
	errs := make(chan error, len(ids))
	for _, id := range ids {
		following.Go(func() {
			errs <- func() error {
				r, err := f.request(ctx, c, cmd, id)
				if err != nil {
					return err
				}
				lines := &lineWriter{prefix: oneLine(id) + " | ", to: func(p []byte) error {
					mu.Lock()
					defer mu.Unlock()
					return a.write(p)
				}}
				show := a.showPart(r)
				err = c.EachLogPart(ctx, r, func(p events.FileReply) error {
					if !a.json {
						_, err := lines.Write(p.Data)
						return err
					}
					mu.Lock()
					defer mu.Unlock()
					return show(p)
				})
				if err != nil {
					return err
				}
				return lines.flush()
			}()
		})
	}
	var first error
	for range ids {
		if err := <-errs; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	following.Wait()
	return first
}

// maxPrefixed is where a line without an end is broken.
const maxPrefixed = 64 << 10

// lineWriter passes on whole lines, each with a prefix.
type lineWriter struct {
	prefix string
	to     func([]byte) error
	rest   []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	var out bytes.Buffer
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 && len(w.rest) < maxPrefixed {
			break
		}
		if i < 0 {
			i = len(w.rest) - 1
		}
		fmt.Fprintf(&out, "%s%s\n", w.prefix, bytes.TrimSuffix(w.rest[:i+1], []byte("\n")))
		w.rest = w.rest[i+1:]
	}
	if out.Len() == 0 {
		return len(p), nil
	}
	return len(p), w.to(out.Bytes())
}

// flush passes on a last line that has no end.
func (w *lineWriter) flush() error {
	if len(w.rest) == 0 {
		return nil
	}
	last := append([]byte(w.prefix), append(w.rest, '\n')...)
	w.rest = nil
	return w.to(last)
}
